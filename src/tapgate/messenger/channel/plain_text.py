"""Plain-text rendering of replies, with numbered options, for clients without buttons or lists.

All options are included and numbered from 1, regardless of the page that a list would show: a reply
by number refers to the complete list.
"""

from collections.abc import Iterable

from tapgate.messenger.model import (
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
            return ""  # only the provider has the text of a template


def _render_option(number: int, option: Option) -> str:
    suffix = f" - {option.description}" if option.description else ""
    return f"{number}. {option.title}{suffix}"
