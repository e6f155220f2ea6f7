"""Form screens: texts and input validation.

Each form is a separate flow with one screen at the provider. `published/<flow>.json` is the
definition to upload there. The texts come from `tapgate.messenger.texts`.
"""

import re
from collections.abc import Mapping
from typing import Any, Final, Literal, NamedTuple

from tapgate.messenger import texts
from tapgate.messenger.flows.forms import Form
from tapgate.messenger.model import MAX_TEXT_LENGTH, FormSubmitted, Language

FormErrorCode = Literal[
    "four_digits", "mismatch", "unchanged", "six_digits", "try_again", "expired"
]

_PIN_PATTERN = re.compile(r"[0-9]{4}")
_CODE_PATTERN = re.compile(r"[0-9]{6}")


class Screen(NamedTuple):
    id: str
    #: Input fields, in display order.
    fields: tuple[str, ...]


SCREENS: Final[Mapping[str, Screen]] = {
    "pin": Screen("PIN", ("pin",)),
    "new_pin": Screen("NEW_PIN", ("new_pin", "repeated_pin")),
    "change_pin": Screen("CHANGE_PIN", ("pin", "new_pin", "repeated_pin")),
    "reset_pin": Screen("RESET_PIN", ("code", "new_pin", "repeated_pin")),
}


def render_screen(form: Form, error: str | None = None) -> dict[str, Any]:
    """Return a form's screen.

    The provider's client shows `error` above the screen.
    """
    screen, labels = SCREENS[form.form], texts.TEXTS[form.language]
    data = {
        "heading": labels[f"screen.heading.{form.form}"],
        "text": form.text[:MAX_TEXT_LENGTH],
        "hint": labels["screen.hint"],
        "button": labels["screen.button"],
        **{f"{field}_label": labels[f"screen.label.{field}"] for field in screen.fields},
    }
    return {"screen": screen.id, "data": data if error is None else data | {"error_message": error}}


def parse_submission(form: Form, data: Mapping[str, Any]) -> FormSubmitted | FormErrorCode:
    """Return the submitted values, or the first validation error's code."""
    fields = SCREENS[form.form].fields
    code = _parse_digits(data.get("code"), _CODE_PATTERN) if "code" in fields else None
    if "code" in fields and code is None:
        return "six_digits"
    pins = {field: _parse_digits(data.get(field)) for field in fields if field != "code"}
    if None in pins.values():
        return "four_digits"
    pin, new_pin = pins.get("pin"), pins.get("new_pin")
    if new_pin != pins.get("repeated_pin"):
        return "mismatch"
    if pin is not None and pin == new_pin:
        return "unchanged"
    return FormSubmitted(operation=form.operation, pin=pin, new_pin=new_pin, code=code)


def get_error_text(language: Language | None, code: FormErrorCode) -> str:
    return texts.TEXTS[language or "en"][f"screen.error.{code}"]


def _parse_digits(value: object, pattern: re.Pattern[str] = _PIN_PATTERN) -> str | None:
    return value if isinstance(value, str) and pattern.fullmatch(value) else None
