"""What goes out, in the shape and within the limits of the channel's provider.

One place knows the limits. Titles and the like that are too long are cut with an ellipsis; what a
person must read is never cut but goes into several messages; ids come back to us, so they are
whole or refused.

A person who does not show their number is written to by their user id, in the field `recipient`;
`to` is then left out, since the provider would prefer it.
"""

import re
from collections.abc import Sequence
from typing import Any, Final

from tapgate.messenger.model.replies import File, Offer, Option, Outgoing, PinForm, Say, Template

Payload = dict[str, Any]

#: How many options a list shows when it also shows the one for more: `Offer.start` goes on by it.
OPTIONS_BESIDE_MORE: Final = 9

_ROWS = OPTIONS_BESIDE_MORE + 1
_BUTTONS = 3
_TEXT = 4096
_INTERACTIVE_BODY = 1024
_ROW_TITLE = 24
_ROW_DESCRIPTION = 72
_ROW_ID = 200
_BUTTON_TITLE = 20
_BUTTON_ID = 256
_CAPTION = 1024
_FILENAME = 240
_TEMPLATE_PARAMETER = 1024
#: Codes may only be sent by templates of the kind "authentication". These have a button that copies
#: the code, which wants it once more.
_WITH_COPY_BUTTON = frozenset({"one_time_code"})

_ELLIPSIS = "…"
_USER = "user:"
#: Where a text is best taken apart: after a paragraph, a line, a word.
_SEAMS = ("\n\n", "\n", " ")


class RenderError(ValueError):
    """Ours to put right: trying again would not help."""


def payloads(message: Outgoing, address: str) -> list[Payload]:
    """The bodies of the calls that send a message, in their order."""
    return [_envelope(address) | part for part in _parts(message)]


def shown(offer: Offer) -> tuple[Option, ...]:
    """The options that fit, from `start` on; the one for more last where there are more."""
    start = offer.start if 0 <= offer.start < len(offer.options) else 0
    rest = offer.options[start:]
    if len(rest) <= _ROWS:
        return rest
    return (*rest[:OPTIONS_BESIDE_MORE], offer.more)


def _envelope(address: str) -> Payload:
    envelope: Payload = {"messaging_product": "whatsapp", "recipient_type": "individual"}
    if address.startswith(_USER):
        return envelope | {"recipient": address.removeprefix(_USER)}
    return envelope | {"to": address.removeprefix("+")}


def _parts(message: Outgoing) -> list[Payload]:
    match message:
        case Say(text=text):
            return _texts(_apart(text, _TEXT))
        case Offer():
            return _offer(message)
        case PinForm():
            return _interactive(message.text, "flow", _flow(message))
        case File():
            return [_document(message)]
        case Template():
            return [_template(message)]


def _texts(texts: Sequence[str]) -> list[Payload]:
    return [{"type": "text", "text": {"body": text, "preview_url": False}} for text in texts]


def _offer(offer: Offer) -> list[Payload]:
    options = shown(offer)
    if not options:
        return _texts(_apart(offer.text, _TEXT))
    if len({option.id for option in options}) < len(options):
        raise RenderError("two options with one id")
    if _fit_on_buttons(options):
        return _interactive(offer.text, "button", {"buttons": [_button(one) for one in options]})
    rows = [_row(option) for option in options]
    action = {"button": _cut(offer.button, _BUTTON_TITLE), "sections": [{"rows": rows}]}
    return _interactive(offer.text, "list", action)


def _fit_on_buttons(options: Sequence[Option]) -> bool:
    """Without losing a description or the end of a title, and so that they can be told apart."""
    titles = {_line(option.title) for option in options}
    return (
        len(titles) == len(options) <= _BUTTONS
        and all(len(title) <= _BUTTON_TITLE for title in titles)
        and not any(option.description for option in options)
    )


def _button(option: Option) -> Payload:
    reply = {"id": _id(option, _BUTTON_ID), "title": _cut(option.title, _BUTTON_TITLE)}
    return {"type": "reply", "reply": reply}


def _row(option: Option) -> Payload:
    row = {"id": _id(option, _ROW_ID), "title": _cut(option.title, _ROW_TITLE)}
    description = option.description
    if not description.strip() and len(_line(option.title)) > _ROW_TITLE:
        description = option.title  # whole, below where it is cut
    if description.strip():
        row["description"] = _cut(description, _ROW_DESCRIPTION)
    return row


def _id(option: Option, longest: int) -> str:
    if not 0 < len(option.id) <= longest:
        raise RenderError("an id that the channel does not take")
    return option.id


def _flow(form: PinForm) -> Payload:
    """The first screen comes from our own data endpoint, so none is named here."""
    return {
        "name": "flow",
        "parameters": {
            "flow_message_version": "3",
            "flow_token": form.token,
            "flow_name": flow_name(form.form),
            "flow_cta": _cut(form.button, _BUTTON_TITLE),
            "flow_action": "data_exchange",
            "mode": "published",
        },
    }


def flow_name(form: str) -> str:
    """What a form is published as at the provider."""
    return f"tapgate_{form}"


def _interactive(text: str, kind: str, action: Payload) -> list[Payload]:
    """A text too long for what can be tapped on goes ahead of it, but for its end."""
    *ahead, body = _apart(text, _INTERACTIVE_BODY)
    interactive = {"type": kind, "body": {"text": body}, "action": action}
    return [*_texts(ahead), {"type": "interactive", "interactive": interactive}]


def _document(file: File) -> Payload:
    document = {"link": file.link, "filename": _cut(file.filename, _FILENAME)}
    if file.caption.strip():
        document["caption"] = _shortened(file.caption.strip(), _CAPTION)
    return {"type": "document", "document": document}


def _template(template: Template) -> Payload:
    content: Payload = {"name": template.name, "language": {"code": template.language}}
    if template.parameters:
        parameters = [
            {"type": "text", "text": _cut(parameter, _TEMPLATE_PARAMETER)}
            for parameter in template.parameters
        ]
        content["components"] = [{"type": "body", "parameters": parameters}]
        if template.name in _WITH_COPY_BUTTON:
            content["components"].append(
                {"type": "button", "sub_type": "url", "index": "0", "parameters": parameters[:1]}
            )
    return {"type": "template", "template": content}


def _cut(text: str, longest: int) -> str:
    """One line, never blank: the provider refuses both."""
    return _shortened(_line(text), longest) or _ELLIPSIS


def _line(text: str) -> str:
    return re.sub(r"\s+", " ", text).strip()


def _shortened(text: str, longest: int) -> str:
    return text if len(text) <= longest else text[: longest - 1].rstrip() + _ELLIPSIS


def _apart(text: str, longest: int) -> list[str]:
    """Pieces that fit, at least one, none of them blank."""
    rest, pieces = text.strip(), []
    while len(rest) > longest:
        end = _seam(rest, longest)
        pieces.append(rest[:end].rstrip())
        rest = rest[end:].lstrip()
    return [*pieces, rest or _ELLIPSIS]


def _seam(text: str, longest: int) -> int:
    """Not so early that a piece would be mostly empty."""
    for mark in _SEAMS:
        place = text.rfind(mark, longest // 2, longest + 1)
        if place != -1:
            return place
    return longest
