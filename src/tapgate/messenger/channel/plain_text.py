"""Replies where there is nothing to tap on: plain text, options by their number.

All options of an offer are there and numbered from 1, whatever page of it a list would show: an
answer by number counts over all of them.
"""

from collections.abc import Iterable

from tapgate.messenger.model.replies import (
    DocumentReply,
    Option,
    OptionList,
    OutgoingMessage,
    PinForm,
    PinRequest,
    TextReply,
)

RenderableMessage = PinRequest | OutgoingMessage


def render_plain_text(replies: Iterable[RenderableMessage]) -> str:
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
            return ""  # a template's words are known to the provider only


def _render_option(number: int, option: Option) -> str:
    described = f" - {option.description}" if option.description else ""
    return f"{number}. {option.title}{described}"
