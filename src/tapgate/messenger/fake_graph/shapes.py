"""Whether a message has the shape and keeps to the limits that the provider documents."""

import re
from collections.abc import Callable
from typing import Any

from tapgate.messenger.fake_graph.errors import FakeError, invalid, missing

_PHONE = re.compile(r"\+?\d{6,15}", re.ASCII)
_USER_ID = re.compile(r"[A-Z]{2}\.(?:ENT\.)?[A-Za-z0-9]{1,128}", re.ASCII)
_LINK = re.compile(r"https?://[^/\s]+")
#: The templates that were registered as of this kind.
_AUTHENTICATION = frozenset({"one_time_code"})
_TEMPLATE = re.compile(r"[a-z0-9_]{1,512}", re.ASCII)
_LANGUAGE = re.compile(r"[a-z]{2,3}(?:_[A-Z]{2,3})?", re.ASCII)


def check(message: Any) -> str:
    """Whom it is to: digits, or a user id. Raises `FakeError` for what is not a message."""
    whole = _object(message, "body")
    if whole.get("messaging_product") != "whatsapp":
        raise FakeError(100, "The parameter messaging_product is required.")
    if whole.get("recipient_type", "individual") != "individual":
        raise FakeError(100, "Param recipient_type must be one of {INDIVIDUAL}")
    to = _recipient(whole)
    kind = whole.get("type", "text")
    judge = _KINDS.get(kind) if isinstance(kind, str) else None
    if judge is None:
        raise FakeError(131051, "Message type is not supported")
    judge(_object(whole.get(kind), kind))
    return to


def _recipient(whole: dict[str, Any]) -> str:
    """Both may be there; then the phone number counts."""
    to = whole.get("to")
    if isinstance(to, str) and _PHONE.fullmatch(to):
        return to.removeprefix("+")
    recipient = whole.get("recipient")
    if to is None and isinstance(recipient, str) and _USER_ID.fullmatch(recipient):
        return recipient
    if to is None and recipient is None:
        raise missing("to")
    raise invalid("to" if to is not None else "recipient", "is not a valid recipient")


def _text(text: dict[str, Any]) -> None:
    _string(text, "body", 4096)
    if not isinstance(text.get("preview_url", False), bool):
        raise invalid("preview_url", "must be a boolean")


def _document(document: dict[str, Any]) -> None:
    if not _LINK.match(_string(document, "link", 2048)):
        raise invalid("link", "is not a valid URL")
    _string(document, "filename", 240, optional=True)
    _string(document, "caption", 1024, optional=True)


def _template(template: dict[str, Any]) -> None:
    if not _TEMPLATE.fullmatch(_string(template, "name", 512)):
        raise invalid("template.name", "is not a template name")
    language = _object(template.get("language"), "language")
    if not _LANGUAGE.fullmatch(_string(language, "code", 10)):
        raise invalid("language.code", "is not supported")
    for component in _list(template, "components", 0, 10):
        for parameter in _list(_object(component, "component"), "parameters", 0, 100):
            _template_parameter(_object(parameter, "parameter"))
    if template["name"] in _AUTHENTICATION and not _has_copy_button(template):
        raise invalid("components", "of an authentication template must have its button")


def _has_copy_button(template: dict[str, Any]) -> bool:
    """With the code that the body shows."""
    parameters = {one["type"]: one["parameters"] for one in template.get("components", ())}
    return "body" in parameters and parameters.get("button") == parameters["body"][:1]


def _template_parameter(parameter: dict[str, Any]) -> None:
    if parameter.get("type") != "text":
        raise invalid("parameter.type", "is not supported")
    text = _string(parameter, "text", 1024)
    if re.search(r"[\n\t]| {5}", text):
        raise invalid("text", "cannot have new-line/tab characters or more than 4 spaces")


def _interactive(interactive: dict[str, Any]) -> None:
    kind = interactive.get("type")
    if kind not in _INTERACTIVES:
        raise invalid("interactive.type", "is not supported")
    longest, judge = _INTERACTIVES[kind]
    _string(_object(interactive.get("body"), "body"), "text", longest)
    for name in ("header", "footer"):
        if name in interactive:
            _string(_object(interactive[name], name), "text", 60)
    judge(_object(interactive.get("action"), "action"))


def _buttons(action: dict[str, Any]) -> None:
    replies = []
    for button in _list(action, "buttons", 1, 3):
        if _object(button, "button").get("type") != "reply":
            raise invalid("button.type", "must be reply")
        replies.append(_object(button.get("reply"), "reply"))
    _distinct([_string(reply, "id", 256) for reply in replies], "button.id")
    _distinct([_string(reply, "title", 20) for reply in replies], "button.title")


def _rows(action: dict[str, Any]) -> None:
    _string(action, "button", 20)
    sections = [_object(one, "section") for one in _list(action, "sections", 1, 10)]
    for section in sections:
        _string(section, "title", 24, optional=len(sections) == 1)
    rows = [_object(row, "row") for section in sections for row in _list(section, "rows", 1, 10)]
    if len(rows) > 10:
        raise invalid("rows", "must be 10 in all at most")
    for row in rows:
        _string(row, "title", 24)
        _string(row, "description", 72, optional=True)
    _distinct([_string(row, "id", 200) for row in rows], "row.id")


def _flow(action: dict[str, Any]) -> None:
    if action.get("name") != "flow":
        raise invalid("action.name", "must be flow")
    parameters = _object(action.get("parameters"), "parameters")
    if parameters.get("flow_message_version") != "3":
        raise invalid("flow_message_version", "must be 3")
    if ("flow_id" in parameters) == ("flow_name" in parameters):
        raise invalid("flow_id", "or flow_name is needed, and not both")
    _string(parameters, "flow_id" if "flow_id" in parameters else "flow_name", 200)
    _string(parameters, "flow_token", 200)
    _string(parameters, "flow_cta", 20)
    if parameters.get("mode", "published") not in ("published", "draft"):
        raise invalid("mode", "must be draft or published")
    if parameters.get("flow_action", "navigate") not in ("navigate", "data_exchange"):
        raise invalid("flow_action", "must be navigate or data_exchange")
    if parameters.get("flow_action") == "data_exchange" and "flow_action_payload" in parameters:
        raise invalid("flow_action_payload", "is for navigate only")


_KINDS: dict[str, Callable[[dict[str, Any]], None]] = {
    "text": _text,
    "interactive": _interactive,
    "document": _document,
    "template": _template,
}
#: The longest body, and what is judged besides it.
_INTERACTIVES: dict[object, tuple[int, Callable[[dict[str, Any]], None]]] = {
    "button": (1024, _buttons),
    "list": (4096, _rows),
    "flow": (1024, _flow),
}


def _object(value: Any, name: str) -> dict[str, Any]:
    if value is None:
        raise missing(name)
    if not isinstance(value, dict):
        raise invalid(name, "must be an object")
    return value


def _list(holder: dict[str, Any], name: str, least: int, most: int) -> list[Any]:
    value = holder.get(name, [])
    if not isinstance(value, list) or not least <= len(value) <= most:
        raise invalid(name, f"must have {least} to {most} items")
    return value


def _string(holder: dict[str, Any], name: str, longest: int, *, optional: bool = False) -> str:
    value = holder.get(name)
    if value is None and optional:
        return ""
    if value is None:
        raise missing(name)
    if not isinstance(value, str) or not value.strip():
        raise invalid(name, "must be a text that is not empty")
    if len(value) > longest:
        raise invalid(name, f"length must be {longest} at most")
    return value


def _distinct(values: list[str], name: str) -> None:
    if len(set(values)) < len(values):
        raise invalid(name, "must be unique")
