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
    Content,
    Delivery,
    DeliveryStatus,
    FlowReply,
    ImageFile,
    InlineImage,
    NumberChangeContent,
    OptionTap,
    ReceivedMessage,
    TextContent,
    UnsupportedContent,
    build_address,
)

MAX_TEXT_LENGTH = 4096

#: All kept in indexes or used as keys, so they are bounded; the provider's own are shorter.
_MAX_MESSAGE_ID_LENGTH = 500
_MAX_USER_ID_LENGTH = 200
_MAX_OPTION_ID_LENGTH = 256
_MAX_TOKEN_LENGTH = 500
_MAX_MEDIA_ID_LENGTH = 200
_MAX_TYPE_LENGTH = 40
_MAX_ERROR_CODE_LENGTH = 40

#: About an earlier message: a reaction to it, its edit, its deletion. They need no answer.
IGNORED_TYPES: Final = frozenset({"reaction", "edit", "revoke", "deleted"})
_IMAGE_MEDIA_TYPES: Final = frozenset({"image/jpeg", "image/png"})

_PHONE_PATTERN = re.compile(r"\+?([1-9]\d{5,14})", re.ASCII)
#: A country and letters or digits: what stands for a person who does not show their number.
_USER_ID_PATTERN = re.compile(r"[A-Z]{2}(?:\.[A-Za-z0-9]+)+", re.ASCII)
_UNIX_SECONDS_PATTERN = re.compile(r"\d{1,11}", re.ASCII)
#: What PostgreSQL cannot store in a text.
_UNSTORABLE_PATTERN = re.compile("[\x00\ud800-\udfff]")


class MalformedDeliveryError(ValueError):
    """Not JSON, or not an object."""


def parse_delivery(
    body: bytes, *, pictures_inside: bool = False, phone_number_id: str | None = None
) -> Delivery:
    """Return the messages and status reports of a delivery, in their order.

    The provider stores pictures and sends their id; the simulator has no such store and sends the
    pictures inside. What is addressed to another phone number of the account is skipped.
    """
    contents = _INLINE_CONTENT_PARSERS if pictures_inside else _CONTENT_PARSERS
    values = [
        one
        for one in _iterate_values(_decode_delivery(body))
        if _is_for_number(one, phone_number_id)
    ]
    messages = [
        received
        for value in values
        for message in _as_objects(value.get("messages"))
        if (received := _parse_message(message, _as_objects(value.get("contacts")), contents))
        is not None
    ]
    reports = [
        status
        for value in values
        for report in _as_objects(value.get("statuses"))
        if (status := _parse_status(report)) is not None
    ]
    return Delivery(messages, reports)


def _decode_delivery(body: bytes) -> dict[str, Any]:
    try:
        # Not msgspec: it refuses half a surrogate pair, which a cut-off text may end with.
        delivery = json.loads(body.decode(), parse_constant=_reject_constant)
    except (ValueError, RecursionError):
        raise MalformedDeliveryError("not JSON") from None
    if not isinstance(delivery, dict):
        raise MalformedDeliveryError("not an object")
    return delivery


def _reject_constant(name: str) -> NoReturn:
    """NaN and the infinities, which Python reads and JSON does not have."""
    raise ValueError(name)


def _iterate_values(delivery: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for entry in _as_objects(delivery.get("entry")):
        for change in _as_objects(entry.get("changes")):
            # Other fields tell of the account: its templates, its quality, what was echoed.
            if change.get("field", "messages") == "messages":
                yield _as_object(change.get("value"))


def _is_for_number(value: dict[str, Any], phone_number_id: str | None) -> bool:
    named = _as_object(value.get("metadata")).get("phone_number_id")
    return phone_number_id is None or named is None or named == phone_number_id


def _parse_status(report: dict[str, Any]) -> DeliveryStatus | None:
    message_id = _parse_identifier(report.get("id"), _MAX_MESSAGE_ID_LENGTH)
    status = report.get("status")
    if message_id is None or status not in ("sent", "delivered", "read", "failed"):
        return None
    error = next(iter(_as_objects(report.get("errors"))), {}).get("code")
    return DeliveryStatus(
        channel_message_id=message_id,
        status=status,
        error_code=_parse_error_code(error),
    )


def _parse_error_code(value: object) -> str | None:
    """The gateway refuses reports with a blank code."""
    if isinstance(value, int) and abs(value) < 10**_MAX_ERROR_CODE_LENGTH:
        value = str(value)
    return (
        _parse_identifier(_strip_unstorable(value).strip(), _MAX_ERROR_CODE_LENGTH)
        if isinstance(value, str)
        else None
    )


def _parse_message(
    message: dict[str, Any], contacts: list[dict[str, Any]], contents: "_ContentParsers"
) -> ReceivedMessage | None:
    message_id = _parse_identifier(message.get("id"), _MAX_MESSAGE_ID_LENGTH)
    phone, user_id = _parse_sender(message, contacts)
    address = build_address(phone, user_id)
    # What is said in a group is not said to us alone: nothing about money is answered there.
    if message_id is None or address is None or message.get("group_id"):
        return None
    if _parse_identifier(message.get("type"), _MAX_TYPE_LENGTH) in IGNORED_TYPES:
        return None
    return ReceivedMessage(
        message_id=message_id,
        address=address,
        user_id=user_id,
        sent_at=_parse_unix_seconds(message.get("timestamp")),
        content=_parse_content(message, contents),
    )


def _parse_sender(
    message: dict[str, Any], contacts: list[dict[str, Any]]
) -> tuple[str | None, str | None]:
    """Phone number and user id, of which either may be missing."""
    said_by = message.get("from")
    contact = _find_contact(message, contacts)
    phone = _parse_phone(said_by) or _parse_phone(contact.get("wa_id"))
    user_id = (
        _parse_identifier(message.get("from_user_id"), _MAX_USER_ID_LENGTH)
        or _parse_identifier(message.get("user_id"), _MAX_USER_ID_LENGTH)
        or _parse_identifier(contact.get("user_id"), _MAX_USER_ID_LENGTH)
        or _parse_user_id(said_by)
    )
    return phone, user_id


def _find_contact(message: dict[str, Any], contacts: list[dict[str, Any]]) -> dict[str, Any]:
    """Who a message is from; with several of them, only one who certainly is."""
    names = [name for key in ("from", "from_user_id") if (name := message.get(key)) is not None]
    for contact in contacts:
        if contact.get("wa_id") in names or contact.get("user_id") in names:
            return contact
    return contacts[0] if len(contacts) == 1 else {}


def _parse_content(message: dict[str, Any], contents: "_ContentParsers") -> Content:
    kind = _parse_identifier(message.get("type"), _MAX_TYPE_LENGTH) or "unknown"
    part = _as_object(message.get(kind))
    return contents.get(kind, _ignore_content)(part) or UnsupportedContent(kind=kind)


def _parse_text(part: dict[str, Any]) -> Content | None:
    body = part.get("body")
    return (
        TextContent(body=_strip_unstorable(body)[:MAX_TEXT_LENGTH])
        if isinstance(body, str)
        else None
    )


def _parse_interactive(part: dict[str, Any]) -> Content | None:
    for kind in ("list_reply", "button_reply"):
        tapped = _parse_identifier(_as_object(part.get(kind)).get("id"), _MAX_OPTION_ID_LENGTH)
        if tapped is not None:
            return OptionTap(id=tapped)
    if "nfm_reply" in part:
        return FlowReply(
            flow_token=_parse_flow_token(_as_object(part["nfm_reply"]).get("response_json"))
        )
    return None


def _parse_flow_token(response: object) -> str | None:
    """Nothing else of it is looked at: what was entered must not come this way."""
    if not isinstance(response, str):
        return None
    try:
        entered = json.loads(response)
    except (ValueError, RecursionError):
        return None
    return _parse_identifier(_as_object(entered).get("flow_token"), _MAX_TOKEN_LENGTH)


def _parse_button(part: dict[str, Any]) -> Content | None:
    tapped = _parse_identifier(part.get("payload"), _MAX_OPTION_ID_LENGTH)
    return None if tapped is None else OptionTap(id=tapped)


def _parse_image(part: dict[str, Any]) -> Content | None:
    media_id = _parse_identifier(part.get("id"), _MAX_MEDIA_ID_LENGTH)
    if media_id is None:
        return None
    return ImageFile(
        media_id=media_id,
        mime_type=_parse_identifier(part.get("mime_type"), 100),
        sha256=_parse_identifier(part.get("sha256"), 100),
    )


def _parse_document(part: dict[str, Any]) -> Content | None:
    """A picture sent as a file, uncompressed."""
    return _parse_image(part) if _is_image(part) else None


def _parse_inline_document(part: dict[str, Any]) -> Content | None:
    return _parse_inline_image(part) if _is_image(part) else None


def _is_image(part: dict[str, Any]) -> bool:
    mime_type = _parse_identifier(part.get("mime_type"), 100) or ""
    return mime_type.partition(";")[0].strip().lower() in _IMAGE_MEDIA_TYPES


def _parse_inline_image(part: dict[str, Any]) -> Content | None:
    data = part.get("data")
    if not isinstance(data, str):
        return _parse_image(part)
    return InlineImage(
        data=_strip_unstorable(data), mimetype=_parse_identifier(part.get("mime_type"), 100)
    )


def _parse_system(_: dict[str, Any]) -> Content:
    """A changed number or a changed identity; whatever else it may be, trust is lost cheaply."""
    return NumberChangeContent()


def _ignore_content(_: dict[str, Any]) -> None:
    return None


_ContentParsers = Mapping[str, Callable[[dict[str, Any]], Content | None]]

_CONTENT_PARSERS: Final[_ContentParsers] = {
    "text": _parse_text,
    "interactive": _parse_interactive,
    "button": _parse_button,
    "image": _parse_image,
    "document": _parse_document,
    "system": _parse_system,
}
_INLINE_CONTENT_PARSERS: Final[_ContentParsers] = {
    **_CONTENT_PARSERS,
    "image": _parse_inline_image,
    "document": _parse_inline_document,
}


def _as_object(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _as_objects(value: object) -> list[dict[str, Any]]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def _parse_identifier(value: object, longest: int) -> str | None:
    """An identifier or the like: never cut, since the rest of it would name something else."""
    if not isinstance(value, str):
        return None
    text = _strip_unstorable(value)
    return text if 0 < len(text) <= longest else None


def _strip_unstorable(text: str) -> str:
    return _UNSTORABLE_PATTERN.sub("", text)


def _parse_phone(value: object) -> str | None:
    found = _PHONE_PATTERN.fullmatch(value) if isinstance(value, str) else None
    return None if found is None else f"+{found[1]}"


def _parse_user_id(value: object) -> str | None:
    text = _parse_identifier(value, _MAX_USER_ID_LENGTH)
    return text if text is not None and _USER_ID_PATTERN.fullmatch(text) else None


def _parse_unix_seconds(value: object) -> int:
    if isinstance(value, int):
        value = str(value) if abs(value) < 10**12 else ""
    return int(value) if isinstance(value, str) and _UNIX_SECONDS_PATTERN.fullmatch(value) else 0
