"""The rendered and parsed screens match the flows published at the provider."""

import json
import re
from pathlib import Path
from typing import Any, get_args

from cases import each
from tapgate.messenger.flows import screens
from tapgate.messenger.flows.forms import Form
from tapgate.messenger.flows.screens import FormErrorCode
from tapgate.messenger.model import LANGUAGES, FormKind, FormSubmitted

PUBLISHED_DIR = Path(screens.__file__).with_name("published")
FORMS = get_args(FormKind)


def build_form(form: str, language: str = "en", text: str = "10.00 SLE to Aminata K.") -> Form:
    return Form(token_hash=b"", address="", form=form, operation="op", language=language, text=text)


def load_published(form: str) -> dict[str, Any]:
    return json.loads((PUBLISHED_DIR / f"tapgate_{form}.json").read_bytes())


def get_screen(form: str) -> dict[str, Any]:
    (screen,) = load_published(form)["screens"]
    return screen


def list_components(form: str, kind: str) -> list[dict[str, Any]]:
    return [item for item in get_screen(form)["layout"]["children"] if item["type"] == kind]


def test_published_flows_match_the_forms() -> None:
    names = {path.name for path in PUBLISHED_DIR.iterdir()}
    assert names == {f"tapgate_{form}.json" for form in FORMS}
    assert set(screens.SCREENS) == set(FORMS)


@each("form", FORMS)
def test_flow_has_one_terminal_screen(form: str) -> None:
    flow, screen = load_published(form), screens.SCREENS[form]
    assert flow["version"] == "7.0"
    assert flow["data_api_version"] == "3.0"
    assert flow["routing_model"] == {screen.id: []}
    assert get_screen(form)["id"] == screen.id
    assert get_screen(form)["terminal"] is get_screen(form)["success"] is True


@each("form", FORMS)
def test_screen_declares_and_uses_exactly_the_rendered_data(form: str) -> None:
    declared = get_screen(form)["data"]
    used = set(re.findall(r"\$\{data\.(\w+)\}", json.dumps(get_screen(form)["layout"])))
    for language in LANGUAGES:
        response = screens.render_screen(build_form(form, language))
        assert response["screen"] == get_screen(form)["id"]
        assert set(response["data"]) == set(declared) == used
        assert all(isinstance(value, str) and value for value in response["data"].values())
    assert all(field["type"] == "string" and field["__example__"] for field in declared.values())


@each("form", FORMS)
def test_screen_submits_exactly_the_parsed_fields(form: str) -> None:
    fields = list(screens.SCREENS[form].fields)
    (footer,) = list_components(form, "Footer")
    assert [field["name"] for field in list_components(form, "TextInput")] == fields
    assert get_screen(form)["sensitive"] == fields
    assert footer["on-click-action"] == {
        "name": "data_exchange",
        "payload": {field: f"${{form.{field}}}" for field in fields},
    }
    for field in list_components(form, "TextInput"):
        assert (field["input-type"], field["min-chars"], field["max-chars"]) == (
            "passcode",
            *((6, 6) if field["name"] == "code" else (4, 4)),
        )
        assert field["required"] is True


def test_screen_texts_fit_the_client_limits() -> None:
    max_length = {"heading": 80, "button": 35, "hint": 80, "text": 4096}
    for form in FORMS:
        for language in LANGUAGES:
            data = screens.render_screen(build_form(form, language, "x" * 9000))["data"]
            for name, value in data.items():
                assert len(value) <= max_length.get(name, 20), (language, name)


def test_error_message_is_present_only_on_error() -> None:
    assert "error_message" not in screens.render_screen(build_form("pin"))["data"]
    found = screens.render_screen(build_form("pin"), "Wrong PIN.")["data"]["error_message"]
    assert found == "Wrong PIN."


def test_every_form_error_has_a_text_in_every_language() -> None:
    for kind in get_args(FormErrorCode):
        words = {screens.get_error_text(language, kind) for language in LANGUAGES}
        assert len(words) == len(LANGUAGES)
        assert screens.get_error_text(None, kind) == screens.get_error_text("en", kind)


@each(
    "form, data, outcome",
    [
        ("pin", {"pin": "0042"}, FormSubmitted(operation="op", pin="0042")),
        ("pin", {"pin": 4271}, "four_digits"),
        ("pin", {"pin": "0042", "new_pin": "1"}, FormSubmitted(operation="op", pin="0042")),
        ("pin", {}, "four_digits"),
        ("pin", {"pin": "123"}, "four_digits"),
        ("pin", {"pin": "12345"}, "four_digits"),
        ("pin", {"pin": "1234\n"}, "four_digits"),
        ("pin", {"pin": "١٢٣٤"}, "four_digits"),
        ("pin", {"pin": " 1234"}, "four_digits"),
        ("pin", {"pin": True}, "four_digits"),
        ("pin", {"pin": -42}, "four_digits"),
        ("pin", {"pin": 10000}, "four_digits"),
        ("pin", {"pin": 1234.0}, "four_digits"),
        ("pin", {"pin": ["1234"]}, "four_digits"),
        ("pin", {"pin": None}, "four_digits"),
        (
            "new_pin",
            {"new_pin": "6174", "repeated_pin": "6174"},
            FormSubmitted(operation="op", new_pin="6174"),
        ),
        ("new_pin", {"new_pin": "6174", "repeated_pin": "6175"}, "mismatch"),
        ("new_pin", {"new_pin": "6174"}, "four_digits"),
        (
            "change_pin",
            {"pin": "4821", "new_pin": "6174", "repeated_pin": "6174"},
            FormSubmitted(operation="op", pin="4821", new_pin="6174"),
        ),
        ("change_pin", {"pin": "4821", "new_pin": "4821", "repeated_pin": "4821"}, "unchanged"),
        ("change_pin", {"pin": "4821", "new_pin": "6174", "repeated_pin": "4821"}, "mismatch"),
        ("change_pin", {"new_pin": "6174", "repeated_pin": "6174"}, "four_digits"),
        ("reset_pin", {"new_pin": "6174", "repeated_pin": "6174"}, "six_digits"),
        (
            "reset_pin",
            {"code": "604829", "new_pin": "6174", "repeated_pin": "6174"},
            FormSubmitted(operation="op", new_pin="6174", code="604829"),
        ),
    ],
)
def test_submission_is_validated(
    form: str, data: dict[str, Any], outcome: FormSubmitted | str
) -> None:
    assert screens.parse_submission(build_form(form), data) == outcome
