"""Template messages as the simulated phone shows them.

For real phones, the texts are registered with the provider. The messenger sends only a template's
name and parameters.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from tapgate.core.message_templates import BUTTONS, TEMPLATES
from tapgate.messenger.channel.sms_text import render_sms

#: Template with a button that copies its first parameter.
_OTP_TEMPLATE: Final = "one_time_code"


def render_template(template: Mapping[str, Any]) -> dict[str, Any]:
    """Return a template as a phone shows it: name, text and, for a one-time code, the code."""
    name, parameters = template["name"], _list_parameters(template)
    text = _render_text(name, template.get("language", {}).get("code", "en"), parameters)
    code = parameters[0] if name == _OTP_TEMPLATE and parameters else None
    shown: dict[str, Any] = {"name": name, "text": text}
    if code is not None:
        shown["code"] = code
    buttons = _list_buttons(template)
    return shown | ({"buttons": buttons} if buttons else {})


def _list_buttons(template: Mapping[str, Any]) -> list[dict[str, str]]:
    """Return the buttons with the titles that are registered with the provider."""
    language = template.get("language", {}).get("code", "en")
    titles = {
        button.payload: button.get_title(language)
        for buttons in BUTTONS.values()
        for button in buttons
    }
    payloads = [
        component["parameters"][0]["payload"]
        for component in template.get("components", [])
        if component.get("sub_type") == "quick_reply"
    ]
    return [
        {"id": payload, "title": titles.get(":".join(payload.split(":")[:2]), payload)}
        for payload in payloads
    ]


def render_sms_text(message: Mapping[str, Any]) -> str:
    """Return the text with which an outbox message went out as SMS."""
    if "template" not in message:  # its content is erased
        return ""
    template = TEMPLATES[message["template"]]
    return render_sms(template, message["language"], message["parameters"])


def _render_text(name: str, language: str, parameters: Sequence[str]) -> str:
    template = TEMPLATES.get(name)
    if template is None or template.parameter_count != len(parameters):
        return "\n".join([f"_Template {name}_", *parameters])
    return template.render(language, parameters)


def _list_parameters(template: Mapping[str, Any]) -> list[str]:
    return [
        parameter["text"]
        for component in template.get("components", [])
        if component["type"] == "body"
        for parameter in component["parameters"]
    ]
