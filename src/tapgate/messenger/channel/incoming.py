"""Reading what the channel's provider delivers.

A delivery that is not understood would be delivered again for days, so everything in it is
optional: what is missing or odd is left out, what is unknown becomes `Other`. Only what is not a
JSON object at all is refused.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, NoReturn

from tapgate.messenger.model.incoming import (
    ChangedNumber,
    Content,
    Delivery,
    DeliveryStatus,
    FlowReply,
    ImageFile,
    Other,
    PictureInside,
    Received,
    Tap,
    Words,
    address_of,
)

LONGEST_TEXT = 4096

#: All kept in indexes or used as keys, so they are bounded; the provider's own are shorter.
_LONGEST_MESSAGE_ID = 500
_LONGEST_USER_ID = 200
_LONGEST_TAP_ID = 256
_LONGEST_TOKEN = 500
_LONGEST_MEDIA_ID = 200
_LONGEST_KIND = 40
_MAX_ERROR_CODE = 40

#: About an earlier message: a reaction to it, its edit, its deletion. They need no answer.
UNANSWERED_TYPES: Final = frozenset({"reaction", "edit", "revoke", "deleted"})
_PICTURE_TYPES: Final = frozenset({"image/jpeg", "image/png"})

_PHONE = re.compile(r"\+?([1-9]\d{5,14})", re.ASCII)
#: A country and letters or digits: what stands for a person who does not show their number.
_USER_ID = re.compile(r"[A-Z]{2}(?:\.[A-Za-z0-9]+)+", re.ASCII)
_SECONDS = re.compile(r"\d{1,11}", re.ASCII)
#: What PostgreSQL cannot store in a text.
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


class MalformedDelivery(ValueError):  # noqa: N818 - what it is, not only that it failed
    """Not JSON, or not an object."""


def read(
    body: bytes, *, pictures_inside: bool = False, phone_number_id: str | None = None
) -> Delivery:
    """Return the messages and status reports of a delivery, in their order.

    The provider stores pictures and sends their id; the simulator has no such store and sends the
    pictures inside. What is addressed to another phone number of the account is skipped.
    """
    contents = _WITH_PICTURES_INSIDE if pictures_inside else _CONTENTS
    values = [one for one in _values(_decoded(body)) if _is_for(one, phone_number_id)]
    messages = [
        received
        for value in values
        for message in _objects(value.get("messages"))
        if (received := _received(message, _objects(value.get("contacts")), contents)) is not None
    ]
    reports = [
        status
        for value in values
        for report in _objects(value.get("statuses"))
        if (status := _status(report)) is not None
    ]
    return Delivery(messages, reports)


def _decoded(body: bytes) -> dict[str, Any]:
    try:
        # Not msgspec: it refuses half a surrogate pair, which a cut-off text may end with.
        delivery = json.loads(body.decode(), parse_constant=_no_number)
    except (ValueError, RecursionError):
        raise MalformedDelivery("not JSON") from None
    if not isinstance(delivery, dict):
        raise MalformedDelivery("not an object")
    return delivery


def _no_number(name: str) -> NoReturn:
    """NaN and the infinities, which Python reads and JSON does not have."""
    raise ValueError(name)


def _values(delivery: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for entry in _objects(delivery.get("entry")):
        for change in _objects(entry.get("changes")):
            # Other fields tell of the account: its templates, its quality, what was echoed.
            if change.get("field", "messages") == "messages":
                yield _object(change.get("value"))


def _is_for(value: dict[str, Any], phone_number_id: str | None) -> bool:
    named = _object(value.get("metadata")).get("phone_number_id")
    return phone_number_id is None or named is None or named == phone_number_id


def _status(report: dict[str, Any]) -> DeliveryStatus | None:
    message_id = _text(report.get("id"), _LONGEST_MESSAGE_ID)
    status = report.get("status")
    if message_id is None or status not in ("sent", "delivered", "read", "failed"):
        return None
    error = next(iter(_objects(report.get("errors"))), {}).get("code")
    return DeliveryStatus(
        channel_message_id=message_id,
        status=status,
        error_code=_error_code(error),
    )


def _error_code(value: object) -> str | None:
    """The gateway refuses reports with a blank code."""
    if isinstance(value, int) and abs(value) < 10**_MAX_ERROR_CODE:
        value = str(value)
    return _text(_clean(value).strip(), _MAX_ERROR_CODE) if isinstance(value, str) else None


def _received(
    message: dict[str, Any], contacts: list[dict[str, Any]], contents: "_Contents"
) -> Received | None:
    message_id = _text(message.get("id"), _LONGEST_MESSAGE_ID)
    phone, user_id = _sender(message, contacts)
    address = address_of(phone, user_id)
    # What is said in a group is not said to us alone: nothing about money is answered there.
    if message_id is None or address is None or message.get("group_id"):
        return None
    if _text(message.get("type"), _LONGEST_KIND) in UNANSWERED_TYPES:
        return None
    return Received(
        message_id=message_id,
        address=address,
        user_id=user_id,
        sent_at=_unix_seconds(message.get("timestamp")),
        content=_content(message, contents),
    )


def _sender(
    message: dict[str, Any], contacts: list[dict[str, Any]]
) -> tuple[str | None, str | None]:
    """Phone number and user id, of which either may be missing."""
    said_by = message.get("from")
    contact = _contact(message, contacts)
    phone = _phone(said_by) or _phone(contact.get("wa_id"))
    user_id = (
        _text(message.get("from_user_id"), _LONGEST_USER_ID)
        or _text(message.get("user_id"), _LONGEST_USER_ID)
        or _text(contact.get("user_id"), _LONGEST_USER_ID)
        or _user_id(said_by)
    )
    return phone, user_id


def _contact(message: dict[str, Any], contacts: list[dict[str, Any]]) -> dict[str, Any]:
    """Who a message is from; with several of them, only one who certainly is."""
    names = [name for key in ("from", "from_user_id") if (name := message.get(key)) is not None]
    for contact in contacts:
        if contact.get("wa_id") in names or contact.get("user_id") in names:
            return contact
    return contacts[0] if len(contacts) == 1 else {}


def _content(message: dict[str, Any], contents: "_Contents") -> Content:
    kind = _text(message.get("type"), _LONGEST_KIND) or "unknown"
    part = _object(message.get(kind))
    return contents.get(kind, _nothing)(part) or Other(kind=kind)


def _words(part: dict[str, Any]) -> Content | None:
    body = part.get("body")
    return Words(body=_clean(body)[:LONGEST_TEXT]) if isinstance(body, str) else None


def _interactive(part: dict[str, Any]) -> Content | None:
    for kind in ("list_reply", "button_reply"):
        tapped = _text(_object(part.get(kind)).get("id"), _LONGEST_TAP_ID)
        if tapped is not None:
            return Tap(id=tapped)
    if "nfm_reply" in part:
        return FlowReply(flow_token=_flow_token(_object(part["nfm_reply"]).get("response_json")))
    return None


def _flow_token(response: object) -> str | None:
    """Nothing else of it is looked at: what was entered must not come this way."""
    if not isinstance(response, str):
        return None
    try:
        entered = json.loads(response)
    except (ValueError, RecursionError):
        return None
    return _text(_object(entered).get("flow_token"), _LONGEST_TOKEN)


def _button(part: dict[str, Any]) -> Content | None:
    tapped = _text(part.get("payload"), _LONGEST_TAP_ID)
    return None if tapped is None else Tap(id=tapped)


def _image(part: dict[str, Any]) -> Content | None:
    media_id = _text(part.get("id"), _LONGEST_MEDIA_ID)
    if media_id is None:
        return None
    return ImageFile(
        media_id=media_id,
        mime_type=_text(part.get("mime_type"), 100),
        sha256=_text(part.get("sha256"), 100),
    )


def _document(part: dict[str, Any]) -> Content | None:
    """A picture sent as a file, uncompressed."""
    return _image(part) if _is_picture(part) else None


def _document_inside(part: dict[str, Any]) -> Content | None:
    return _picture_inside(part) if _is_picture(part) else None


def _is_picture(part: dict[str, Any]) -> bool:
    mime_type = _text(part.get("mime_type"), 100) or ""
    return mime_type.partition(";")[0].strip().lower() in _PICTURE_TYPES


def _picture_inside(part: dict[str, Any]) -> Content | None:
    data = part.get("data")
    if not isinstance(data, str):
        return _image(part)
    return PictureInside(data=_clean(data), mimetype=_text(part.get("mime_type"), 100))


def _system(_: dict[str, Any]) -> Content:
    """A changed number or a changed identity; whatever else it may be, trust is lost cheaply."""
    return ChangedNumber()


def _nothing(_: dict[str, Any]) -> None:
    return None


_Contents = Mapping[str, Callable[[dict[str, Any]], Content | None]]

_CONTENTS: Final[_Contents] = {
    "text": _words,
    "interactive": _interactive,
    "button": _button,
    "image": _image,
    "document": _document,
    "system": _system,
}
_WITH_PICTURES_INSIDE: Final[_Contents] = {
    **_CONTENTS,
    "image": _picture_inside,
    "document": _document_inside,
}


def _object(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _objects(value: object) -> list[dict[str, Any]]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def _text(value: object, longest: int) -> str | None:
    """An identifier or the like: never cut, since the rest of it would name something else."""
    if not isinstance(value, str):
        return None
    text = _clean(value)
    return text if 0 < len(text) <= longest else None


def _clean(text: str) -> str:
    return _UNSTORABLE.sub("", text)


def _phone(value: object) -> str | None:
    found = _PHONE.fullmatch(value) if isinstance(value, str) else None
    return None if found is None else f"+{found[1]}"


def _user_id(value: object) -> str | None:
    text = _text(value, _LONGEST_USER_ID)
    return text if text is not None and _USER_ID.fullmatch(text) else None


def _unix_seconds(value: object) -> int:
    if isinstance(value, int):
        value = str(value) if abs(value) < 10**12 else ""
    return int(value) if isinstance(value, str) and _SECONDS.fullmatch(value) else 0
