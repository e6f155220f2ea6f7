"""Rendering of outgoing messages: as provider payloads within the provider's limits, or as text.

Long titles, descriptions, labels, filenames, captions and template parameters are truncated with an
ellipsis. Message text is split into several messages instead. Option IDs are never
truncated, because the provider sends them back: an ID that is too long raises `RenderError`.

A person with a hidden number is addressed by user ID in the field `recipient`. The field `to` is
then omitted, because the provider gives it precedence.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Any

from tapgate.core.message_templates import get_buttons
from tapgate.messenger.model import (
    MAX_BUTTON_TITLE_LENGTH,
    MAX_BUTTONS,
    MAX_INTERACTIVE_BODY_LENGTH,
    MAX_ROW_DESCRIPTION_LENGTH,
    MAX_ROW_TITLE_LENGTH,
    MAX_TEXT_LENGTH,
    OPTIONS_PER_PAGE,
    DocumentReply,
    Option,
    OptionList,
    OutgoingMessage,
    PinForm,
    PinRequest,
    Template,
    TextReply,
)
from tapgate.messenger.texts import truncate

Payload = dict[str, Any]
RenderableMessage = PinRequest | OutgoingMessage

_MAX_ROWS = OPTIONS_PER_PAGE + 1
_MAX_ROW_ID_LENGTH = 200
_MAX_BUTTON_ID_LENGTH = 256
_MAX_CAPTION_LENGTH = 1024
_MAX_FILENAME_LENGTH = 240
_MAX_TEMPLATE_PARAMETER_LENGTH = 1024
#: The provider requires authentication templates for one-time codes. Their copy button has the code
#: as its own parameter.
_COPY_BUTTON_TEMPLATES = frozenset({"one_time_code"})

_ELLIPSIS = "…"
_USER_PREFIX = "user:"
#: Preferred split positions, in this order: between paragraphs, lines, words.
_SPLIT_MARKS = ("\n\n", "\n", " ")


class RenderError(ValueError):
    """The message is invalid due to a bug in the messenger; a retry cannot succeed."""


def render_payloads(message: OutgoingMessage, address: str) -> list[Payload]:
    """Return the request bodies that send a message, in order."""
    return [_build_envelope(address) | part for part in _render_parts(message)]


def select_visible_options(options: OptionList) -> tuple[Option, ...]:
    """Return the page of options at `start`, ending with "more" if others follow."""
    start = options.start if 0 <= options.start < len(options.options) else 0
    rest = options.options[start:]
    if len(rest) <= _MAX_ROWS:
        return rest
    return (*rest[:OPTIONS_PER_PAGE], options.more)


def render_plain_text(replies: Iterable[RenderableMessage]) -> str:
    """Render replies as text with numbered options, for clients without buttons or lists.

    All options are numbered from 1, regardless of the page that a list would show: a reply by
    number refers to the complete list.
    """
    return "\n\n".join(text for reply in replies if (text := _render_reply(reply)))


def _render_reply(reply: RenderableMessage) -> str:
    match reply:
        case TextReply() | PinRequest() | PinForm():
            return reply.text.strip()
        case OptionList():
            options = "\n".join(
                _render_option(number, option) for number, option in enumerate(reply.options, 1)
            )
            return "\n\n".join(part for part in (reply.text.strip(), options) if part)
        case DocumentReply():
            return f"{reply.caption.strip() or reply.filename}\n{reply.link}"
        case _:
            return ""  # only the provider has the template text


def _render_option(number: int, option: Option) -> str:
    suffix = f" - {option.description}" if option.description else ""
    return f"{number}. {option.title}{suffix}"


def _build_envelope(address: str) -> Payload:
    envelope: Payload = {"messaging_product": "whatsapp", "recipient_type": "individual"}
    if address.startswith(_USER_PREFIX):
        return envelope | {"recipient": address.removeprefix(_USER_PREFIX)}
    return envelope | {"to": address.removeprefix("+")}


def _render_parts(message: OutgoingMessage) -> list[Payload]:
    match message:
        case TextReply(text=text):
            return _render_texts(_split_text(text, MAX_TEXT_LENGTH))
        case OptionList():
            return _render_option_list(message)
        case PinForm():
            return _render_interactive(message.text, "flow", _render_flow(message))
        case DocumentReply():
            return [_render_document(message)]
        case Template():
            return [_render_template(message)]


def _render_texts(texts: Sequence[str]) -> list[Payload]:
    return [{"type": "text", "text": {"body": text, "preview_url": False}} for text in texts]


def _render_option_list(option_list: OptionList) -> list[Payload]:
    options = select_visible_options(option_list)
    if not options:
        return _render_texts(_split_text(option_list.text, MAX_TEXT_LENGTH))
    if len({option.id for option in options}) < len(options):
        raise RenderError("two options have the same ID")
    if _can_use_buttons(options):
        return _render_interactive(
            option_list.text, "button", {"buttons": [_render_button(item) for item in options]}
        )
    rows = [_render_row(option) for option in options]
    action = {
        "button": _truncate_line(option_list.button, MAX_BUTTON_TITLE_LENGTH),
        "sections": [{"rows": rows}],
    }
    return _render_interactive(option_list.text, "list", action)


def _can_use_buttons(options: Sequence[Option]) -> bool:
    """Return whether buttons can show distinct, complete titles and no option has a description."""
    titles = {_to_single_line(option.title) for option in options}
    return (
        len(titles) == len(options) <= MAX_BUTTONS
        and all(len(title) <= MAX_BUTTON_TITLE_LENGTH for title in titles)
        and not any(option.description for option in options)
    )


def _render_button(option: Option) -> Payload:
    reply = {
        "id": _require_id(option, _MAX_BUTTON_ID_LENGTH),
        "title": _truncate_line(option.title, MAX_BUTTON_TITLE_LENGTH),
    }
    return {"type": "reply", "reply": reply}


def _render_row(option: Option) -> Payload:
    row = {
        "id": _require_id(option, _MAX_ROW_ID_LENGTH),
        "title": _truncate_line(option.title, MAX_ROW_TITLE_LENGTH),
    }
    description = option.description
    if not description.strip() and len(_to_single_line(option.title)) > MAX_ROW_TITLE_LENGTH:
        description = option.title  # the complete title, below the truncated one
    if description.strip():
        row["description"] = _truncate_line(description, MAX_ROW_DESCRIPTION_LENGTH)
    return row


def _require_id(option: Option, max_length: int) -> str:
    if not 0 < len(option.id) <= max_length:
        raise RenderError("an option ID is empty or too long")
    return option.id


def _render_flow(form: PinForm) -> Payload:
    """Return the action that opens a form; the data endpoint supplies its first screen."""
    return {
        "name": "flow",
        "parameters": {
            "flow_message_version": "3",
            "flow_token": form.token,
            "flow_name": get_flow_name(form.form),
            "flow_cta": _truncate_line(form.button, MAX_BUTTON_TITLE_LENGTH),
            "flow_action": "data_exchange",
            "mode": "published",
        },
    }


def get_flow_name(form: str) -> str:
    """Return the name under which a form is published at the provider."""
    return f"tapgate_{form}"


def _render_interactive(text: str, kind: str, action: Payload) -> list[Payload]:
    """Return an interactive message, preceded by text messages if the text is too long for it."""
    *preceding, body = _split_text(text, MAX_INTERACTIVE_BODY_LENGTH)
    interactive = {"type": kind, "body": {"text": body}, "action": action}
    return [*_render_texts(preceding), {"type": "interactive", "interactive": interactive}]


def _render_document(file: DocumentReply) -> Payload:
    document = {"link": file.link, "filename": _truncate_line(file.filename, _MAX_FILENAME_LENGTH)}
    if file.caption.strip():
        document["caption"] = truncate(file.caption.strip(), _MAX_CAPTION_LENGTH)
    return {"type": "document", "document": document}


def _render_template(template: Template) -> Payload:
    content: Payload = {"name": template.name, "language": {"code": template.language}}
    if template.parameters:
        parameters = [
            {"type": "text", "text": _truncate_line(parameter, _MAX_TEMPLATE_PARAMETER_LENGTH)}
            for parameter in template.parameters
        ]
        content["components"] = [{"type": "body", "parameters": parameters}]
        if template.name in _COPY_BUTTON_TEMPLATES:
            content["components"].append(
                {"type": "button", "sub_type": "url", "index": "0", "parameters": parameters[:1]}
            )
        for index, button in enumerate(get_buttons(template.button)):
            payload = {"type": "payload", "payload": button.payload}
            content["components"].append(
                {
                    "type": "button",
                    "sub_type": "quick_reply",
                    "index": str(index),
                    "parameters": [payload],
                }
            )
    return {"type": "template", "template": content}


def _truncate_line(text: str, max_length: int) -> str:
    """Return a single non-blank line; the provider rejects line breaks and blank texts."""
    return truncate(_to_single_line(text), max_length) or _ELLIPSIS


def _to_single_line(text: str) -> str:
    return re.sub(r"\s+", " ", text).strip()


def _split_text(text: str, max_length: int) -> list[str]:
    """Split the text into one or more non-blank parts of at most `max_length` characters."""
    rest, parts = text.strip(), []
    while len(rest) > max_length:
        end = _find_split(rest, max_length)
        parts.append(rest[:end].rstrip())
        rest = rest[end:].lstrip()
    return [*parts, rest or _ELLIPSIS]


def _find_split(text: str, max_length: int) -> int:
    """Return a split position from `max_length // 2` on, so that no part is too short."""
    for mark in _SPLIT_MARKS:
        position = text.rfind(mark, max_length // 2, max_length + 1)
        if position != -1:
            return position
    return max_length
