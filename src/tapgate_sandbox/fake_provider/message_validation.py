"""Validates messages against the provider's documented format and limits."""

import re
from collections.abc import Callable
from typing import Any

from tapgate_sandbox.fake_provider.errors import (
    GraphApiError,
    build_invalid_error,
    build_missing_error,
)

_PHONE_PATTERN = re.compile(r"\+?\d{6,15}", re.ASCII)
_USER_ID_PATTERN = re.compile(r"[A-Z]{2}\.(?:ENT\.)?[A-Za-z0-9]{1,128}", re.ASCII)
_LINK_PATTERN = re.compile(r"https?://[^/\s]+")
#: Templates registered in the authentication category.
_AUTHENTICATION_TEMPLATES = frozenset({"one_time_code"})
_TEMPLATE_PATTERN = re.compile(r"[a-z0-9_]{1,512}", re.ASCII)
_LANGUAGE_PATTERN = re.compile(r"[a-z]{2,3}(?:_[A-Z]{2,3})?", re.ASCII)


def validate_message(message: Any) -> str:
    """Validate a message and return its recipient: the digits of a phone number, or a user ID.

    Raises `GraphApiError` if the message is invalid.
    """
    body = _require_object(message, "body")
    if body.get("messaging_product") != "whatsapp":
        raise GraphApiError(100, "The parameter messaging_product is required.")
    if body.get("recipient_type", "individual") != "individual":
        raise GraphApiError(100, "Param recipient_type must be one of {INDIVIDUAL}")
    to = _parse_recipient(body)
    kind = body.get("type", "text")
    validate = _VALIDATORS.get(kind) if isinstance(kind, str) else None
    if validate is None:
        raise GraphApiError(131051, "Message type is not supported")
    validate(_require_object(body.get(kind), kind))
    return to


def _parse_recipient(body: dict[str, Any]) -> str:
    """Return the recipient; if both fields are present, the phone number takes precedence."""
    to = body.get("to")
    if isinstance(to, str) and _PHONE_PATTERN.fullmatch(to):
        return to.removeprefix("+")
    recipient = body.get("recipient")
    if to is None and isinstance(recipient, str) and _USER_ID_PATTERN.fullmatch(recipient):
        return recipient
    if to is None and recipient is None:
        raise build_missing_error("to")
    raise build_invalid_error("to" if to is not None else "recipient", "is not a valid recipient")


def _validate_text(text: dict[str, Any]) -> None:
    _require_string(text, "body", 4096)
    if not isinstance(text.get("preview_url", False), bool):
        raise build_invalid_error("preview_url", "must be a boolean")


def _validate_document(document: dict[str, Any]) -> None:
    if not _LINK_PATTERN.match(_require_string(document, "link", 2048)):
        raise build_invalid_error("link", "is not a valid URL")
    _require_string(document, "filename", 240, optional=True)
    _require_string(document, "caption", 1024, optional=True)


def _validate_template(template: dict[str, Any]) -> None:
    if not _TEMPLATE_PATTERN.fullmatch(_require_string(template, "name", 512)):
        raise build_invalid_error("template.name", "is not a template name")
    language = _require_object(template.get("language"), "language")
    if not _LANGUAGE_PATTERN.fullmatch(_require_string(language, "code", 10)):
        raise build_invalid_error("language.code", "is not supported")
    for component in _require_list(template, "components", 0, 10):
        for parameter in _require_list(
            _require_object(component, "component"), "parameters", 0, 100
        ):
            _validate_template_parameter(_require_object(parameter, "parameter"))
    if template["name"] in _AUTHENTICATION_TEMPLATES and not _has_copy_button(template):
        raise build_invalid_error(
            "components", "must include the copy button of an authentication template"
        )


def _has_copy_button(template: dict[str, Any]) -> bool:
    """Return whether the template has a button with the same code as the body."""
    parameters = {item["type"]: item["parameters"] for item in template.get("components", ())}
    return "body" in parameters and parameters.get("button") == parameters["body"][:1]


def _validate_template_parameter(parameter: dict[str, Any]) -> None:
    if parameter.get("type") != "text":
        raise build_invalid_error("parameter.type", "is not supported")
    text = _require_string(parameter, "text", 1024)
    if re.search(r"[\n\t]| {5}", text):
        raise build_invalid_error(
            "text", "cannot have new-line/tab characters or more than 4 spaces"
        )


def _validate_interactive(interactive: dict[str, Any]) -> None:
    kind = interactive.get("type")
    if kind not in _INTERACTIVE_VALIDATORS:
        raise build_invalid_error("interactive.type", "is not supported")
    max_length, validate_action = _INTERACTIVE_VALIDATORS[kind]
    _require_string(_require_object(interactive.get("body"), "body"), "text", max_length)
    for name in ("header", "footer"):
        if name in interactive:
            _require_string(_require_object(interactive[name], name), "text", 60)
    validate_action(_require_object(interactive.get("action"), "action"))


def _validate_buttons(action: dict[str, Any]) -> None:
    replies = []
    for button in _require_list(action, "buttons", 1, 3):
        if _require_object(button, "button").get("type") != "reply":
            raise build_invalid_error("button.type", "must be reply")
        replies.append(_require_object(button.get("reply"), "reply"))
    _require_distinct([_require_string(reply, "id", 256) for reply in replies], "button.id")
    _require_distinct([_require_string(reply, "title", 20) for reply in replies], "button.title")


def _validate_rows(action: dict[str, Any]) -> None:
    _require_string(action, "button", 20)
    sections = [
        _require_object(item, "section") for item in _require_list(action, "sections", 1, 10)
    ]
    for section in sections:
        _require_string(section, "title", 24, optional=len(sections) == 1)
    rows = [
        _require_object(row, "row")
        for section in sections
        for row in _require_list(section, "rows", 1, 10)
    ]
    if len(rows) > 10:
        raise build_invalid_error("rows", "must have at most 10 items in total")
    for row in rows:
        _require_string(row, "title", 24)
        _require_string(row, "description", 72, optional=True)
    _require_distinct([_require_string(row, "id", 200) for row in rows], "row.id")


def _validate_flow(action: dict[str, Any]) -> None:
    if action.get("name") != "flow":
        raise build_invalid_error("action.name", "must be flow")
    parameters = _require_object(action.get("parameters"), "parameters")
    if parameters.get("flow_message_version") != "3":
        raise build_invalid_error("flow_message_version", "must be 3")
    if ("flow_id" in parameters) == ("flow_name" in parameters):
        raise build_invalid_error("flow_id", "or flow_name is required, but not both")
    _require_string(parameters, "flow_id" if "flow_id" in parameters else "flow_name", 200)
    _require_string(parameters, "flow_token", 200)
    _require_string(parameters, "flow_cta", 20)
    if parameters.get("mode", "published") not in ("published", "draft"):
        raise build_invalid_error("mode", "must be draft or published")
    if parameters.get("flow_action", "navigate") not in ("navigate", "data_exchange"):
        raise build_invalid_error("flow_action", "must be navigate or data_exchange")
    if parameters.get("flow_action") == "data_exchange" and "flow_action_payload" in parameters:
        raise build_invalid_error("flow_action_payload", "is only allowed with navigate")


_VALIDATORS: dict[str, Callable[[dict[str, Any]], None]] = {
    "text": _validate_text,
    "interactive": _validate_interactive,
    "document": _validate_document,
    "template": _validate_template,
}
#: Maximum body length and action validator, by interactive type.
_INTERACTIVE_VALIDATORS: dict[object, tuple[int, Callable[[dict[str, Any]], None]]] = {
    "button": (1024, _validate_buttons),
    "list": (4096, _validate_rows),
    "flow": (1024, _validate_flow),
}


def _require_object(value: Any, name: str) -> dict[str, Any]:
    if value is None:
        raise build_missing_error(name)
    if not isinstance(value, dict):
        raise build_invalid_error(name, "must be an object")
    return value


def _require_list(parent: dict[str, Any], name: str, min_items: int, max_items: int) -> list[Any]:
    value = parent.get(name, [])
    if not isinstance(value, list) or not min_items <= len(value) <= max_items:
        raise build_invalid_error(name, f"must have {min_items} to {max_items} items")
    return value


def _require_string(
    parent: dict[str, Any], name: str, max_length: int, *, optional: bool = False
) -> str:
    value = parent.get(name)
    if value is None and optional:
        return ""
    if value is None:
        raise build_missing_error(name)
    if not isinstance(value, str) or not value.strip():
        raise build_invalid_error(name, "must be a non-empty string")
    if len(value) > max_length:
        raise build_invalid_error(name, f"must have at most {max_length} characters")
    return value


def _require_distinct(values: list[str], name: str) -> None:
    if len(set(values)) < len(values):
        raise build_invalid_error(name, "must be unique")
