"""Form screens: texts and input validation.

Each form is a separate flow with one screen at the provider. `published/<flow>.json` is the
definition to upload there. The texts come from this module, in the person's language.
"""

import re
from collections.abc import Mapping
from typing import Any, Final, Literal, NamedTuple

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

#: The provider's limits in characters: labels 20, buttons 35, headings 80.
_LABELS: Final[Mapping[Language, Mapping[str, str]]] = {
    "en": {
        "pin": "Enter your PIN",
        "new_pin": "Choose a PIN",
        "change_pin": "Change your PIN",
        "reset_pin": "Reset your PIN",
        "code_label": "6-digit code",
        "pin_label": "Your PIN",
        "new_pin_label": "New PIN",
        "repeated_pin_label": "Repeat new PIN",
        "hint": "4 digits",
        "button": "Confirm",
    },
    "fr": {
        "pin": "Saisissez votre code PIN",
        "new_pin": "Choisissez un code PIN",
        "change_pin": "Changez votre code PIN",
        "reset_pin": "Réinitialisez votre code PIN",
        "code_label": "Code à 6 chiffres",
        "pin_label": "Votre code PIN",
        "new_pin_label": "Nouveau code PIN",
        "repeated_pin_label": "Répétez le code PIN",
        "hint": "4 chiffres",
        "button": "Confirmer",
    },
}

_ERROR_TEXTS: Final[Mapping[Language, Mapping[FormErrorCode, str]]] = {
    "en": {
        "four_digits": "A PIN must have exactly 4 digits.",
        "mismatch": "The new PINs don't match.",
        "unchanged": "The new PIN must be different from the current one.",
        "six_digits": "The code must have exactly 6 digits.",
        "try_again": "Sorry, that didn't work. Please try again in a moment.",
        "expired": "This form has expired. Please go back to the chat and start again.",
    },
    "fr": {
        "four_digits": "Le code PIN doit avoir exactement 4 chiffres.",
        "mismatch": "Les deux nouveaux codes PIN sont différents.",
        "unchanged": "Le nouveau code PIN doit être différent de l'actuel.",
        "six_digits": "Le code reçu doit avoir exactement 6 chiffres.",
        "try_again": "Désolé, cela n'a pas fonctionné. Veuillez réessayer dans un instant.",
        "expired": "Ce formulaire a expiré. Veuillez revenir à la discussion et recommencer.",
    },
}


def render_screen(form: Form, error: str | None = None) -> dict[str, Any]:
    """Return the screen of a form.

    The provider's client shows `error` above the screen.
    """
    screen, labels = SCREENS[form.form], _LABELS[form.language]
    data = {
        "heading": labels[form.form],
        "text": form.text[:MAX_TEXT_LENGTH],
        "hint": labels["hint"],
        "button": labels["button"],
        **{f"{field}_label": labels[f"{field}_label"] for field in screen.fields},
    }
    return {"screen": screen.id, "data": data if error is None else data | {"error_message": error}}


def parse_submission(form: Form, data: Mapping[str, Any]) -> FormSubmitted | FormErrorCode:
    """Return the submitted values, or the code of the first validation error."""
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
    return _ERROR_TEXTS[language or "en"][code]


def _parse_digits(value: object, pattern: re.Pattern[str] = _PIN_PATTERN) -> str | None:
    return value if isinstance(value, str) and pattern.fullmatch(value) else None
