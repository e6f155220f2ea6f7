"""Replies where there is nothing to tap on: plain text, options by their number.

All options of an offer are there and numbered from 1, whatever page of it a list would show: an
answer by number counts over all of them.
"""

from collections.abc import Iterable

from tapgate.messenger.model.replies import AskPin, File, Offer, Option, Outgoing, PinForm, Say

Spoken = AskPin | Outgoing


def as_text(replies: Iterable[Spoken]) -> str:
    return "\n\n".join(text for reply in replies if (text := _text(reply)))


def _text(reply: Spoken) -> str:
    match reply:
        case Say() | AskPin() | PinForm():
            return reply.text.strip()
        case Offer():
            options = "\n".join(
                _option(number, option) for number, option in enumerate(reply.options, 1)
            )
            return "\n\n".join(part for part in (reply.text.strip(), options) if part)
        case File():
            return f"{reply.caption.strip() or reply.filename}\n{reply.link}"
        case _:
            return ""  # a template's words are known to the provider only


def _option(number: int, option: Option) -> str:
    described = f" - {option.description}" if option.description else ""
    return f"{number}. {option.title}{described}"
