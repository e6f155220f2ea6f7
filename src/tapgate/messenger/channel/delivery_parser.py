"""Parser for webhook deliveries from the channel's provider.

The provider redelivers a rejected delivery for days, so every field is optional: missing or
malformed parts are skipped, and unknown message types become `UnsupportedMessage`. Only a body that
is not a JSON object is rejected.
"""

import json
import re
from collections.abc import Iterator
from typing import Any, Final, NoReturn, TypeGuard

from tapgate.messenger.channel import provider_reports
from tapgate.messenger.model import (
    MAX_TEXT_LENGTH,
    ContactsShared,
    Content,
    Delivery,
    DeliveryStatus,
    FormClosed,
    ImageFile,
    InlineImage,
    NumberChanged,
    OptionChosen,
    PlaceShared,
    ReceivedMessage,
    SharedContact,
    TextContent,
    UnsupportedMessage,
    build_address,
)
from tapgate_client.schemas.provider_warnings import ProviderReport

#: These values are indexed or used as keys, so their length is limited. Real values are shorter.
_MAX_MESSAGE_ID_LENGTH = 500
_MAX_USER_ID_LENGTH = 200
_MAX_OPTION_ID_LENGTH = 256
_MAX_MEDIA_ID_LENGTH = 200
_MAX_TYPE_LENGTH = 40
_MAX_HEADER_LENGTH = 100
_MAX_ERROR_CODE_LENGTH = 40
#: Names, addresses and typed numbers are truncated, and further contacts ignored.
_MAX_LABEL_LENGTH = 200
_MAX_SHARED_CONTACTS = 10

#: Reactions to an earlier message, edits and deletions, which need no reply.
IGNORED_TYPES: Final = frozenset({"reaction", "edit", "revoke", "deleted"})
_IMAGE_MEDIA_TYPES: Final = frozenset({"image/jpeg", "image/png"})

_PHONE_PATTERN = re.compile(r"\+?([1-9]\d{5,14})", re.ASCII)
#: User ID for a hidden number: country code, then groups of letters and digits.
_USER_ID_PATTERN = re.compile(r"[A-Z]{2}(?:\.[A-Za-z0-9]+)+", re.ASCII)
_UNIX_SECONDS_PATTERN = re.compile(r"\d{1,11}", re.ASCII)
#: Characters that PostgreSQL cannot store in a text value.
_UNSTORABLE_PATTERN = re.compile("[\x00\ud800-\udfff]")


class MalformedDeliveryError(ValueError):
    """The body is not JSON or not a JSON object."""


def parse_delivery(
    body: bytes, *, has_inline_images: bool = False, phone_number_id: str | None = None
) -> Delivery:
    """Return a delivery's messages and status reports, in order.

    The provider stores images and sends their IDs. The simulator has no media store and sends
    images inline (`has_inline_images`). If `phone_number_id` is given, messages and reports for
    other phone numbers of the account are skipped.
    """
    delivery = Delivery([], [], [])
    decoded = _decode_delivery(body)
    delivery.provider_reports.extend(_iterate_provider_reports(decoded))
    for value in _iterate_values(decoded, phone_number_id):
        contacts = _as_objects(value.get("contacts"))
        for item in _as_objects(value.get("messages")):
            message = _parse_message(item, contacts, has_inline_images=has_inline_images)
            if message is not None:
                delivery.messages.append(message)
        for item in _as_objects(value.get("statuses")):
            status = _parse_status(item)
            if status is not None:
                delivery.statuses.append(status)
    return delivery


def _decode_delivery(body: bytes) -> dict[str, Any]:
    try:
        # Not msgspec: it rejects an unpaired surrogate, which a truncated text may end with.
        delivery = json.loads(body.decode(), parse_constant=_reject_constant)
    except (ValueError, RecursionError):
        raise MalformedDeliveryError("not JSON") from None
    if not isinstance(delivery, dict):
        raise MalformedDeliveryError("not an object")
    return delivery


def _reject_constant(name: str) -> NoReturn:
    """Reject NaN and the infinities, which Python accepts but JSON does not allow."""
    raise ValueError(name)


def _iterate_values(
    delivery: dict[str, Any], phone_number_id: str | None
) -> Iterator[dict[str, Any]]:
    for entry in _as_objects(delivery.get("entry")):
        for change in _as_objects(entry.get("changes")):
            value = _as_object(change.get("value"))
            recipient_id = _as_object(value.get("metadata")).get("phone_number_id")
            # Other fields concern the account: see `provider_reports`.
            if change.get("field", "messages") == "messages" and (
                phone_number_id is None or recipient_id in (None, phone_number_id)
            ):
                yield value


def _iterate_provider_reports(delivery: dict[str, Any]) -> Iterator[ProviderReport]:
    for entry in _as_objects(delivery.get("entry")):
        for change in _as_objects(entry.get("changes")):
            value = _as_object(change.get("value"))
            report = provider_reports.parse_report(change.get("field"), value, entry.get("time"))
            if report is not None:
                yield report


def _parse_status(report: dict[str, Any]) -> DeliveryStatus | None:
    message_id = _parse_identifier(report.get("id"), _MAX_MESSAGE_ID_LENGTH)
    status = report.get("status")
    if message_id is None or status not in ("sent", "delivered", "read", "failed"):
        return None
    error = next(iter(_as_objects(report.get("errors"))), {}).get("code")
    return DeliveryStatus(
        channel_message_id=message_id, status=status, error_code=_parse_error_code(error)
    )


def _parse_error_code(value: object) -> str | None:
    """Return the error code, or None if it is missing, too long or blank."""
    if isinstance(value, int) and abs(value) < 10**_MAX_ERROR_CODE_LENGTH:
        value = str(value)
    return (
        _parse_identifier(_strip_unstorable(value).strip(), _MAX_ERROR_CODE_LENGTH)
        if isinstance(value, str)
        else None
    )


def _parse_message(
    message: dict[str, Any], contacts: list[dict[str, Any]], *, has_inline_images: bool
) -> ReceivedMessage | None:
    message_id = _parse_identifier(message.get("id"), _MAX_MESSAGE_ID_LENGTH)
    phone, user_id = _parse_sender(message, contacts)
    address = build_address(phone, user_id)
    # Group messages are ignored: replies about money must not be visible to a group.
    if message_id is None or address is None or message.get("group_id"):
        return None
    if _parse_identifier(message.get("type"), _MAX_TYPE_LENGTH) in IGNORED_TYPES:
        return None
    return ReceivedMessage(
        message_id=message_id,
        address=address,
        user_id=user_id,
        sent_at=_parse_unix_seconds(message.get("timestamp")),
        content=_parse_content(message, has_inline_images=has_inline_images),
    )


def _parse_sender(
    message: dict[str, Any], contacts: list[dict[str, Any]]
) -> tuple[str | None, str | None]:
    """Return the sender's phone number and user ID; each may be None."""
    sender = message.get("from")
    contact = _find_contact(message, contacts)
    phone = _parse_phone(sender) or _parse_phone(contact.get("wa_id"))
    candidates = (message.get("from_user_id"), message.get("user_id"), contact.get("user_id"))
    user_ids = (_parse_identifier(value, _MAX_USER_ID_LENGTH) for value in candidates)
    return phone, next(filter(None, user_ids), None) or _parse_user_id(sender)


def _find_contact(message: dict[str, Any], contacts: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the contact that matches the sender, else the only contact, else an empty object."""
    senders = [message[key] for key in ("from", "from_user_id") if message.get(key) is not None]
    for contact in contacts:
        if contact.get("wa_id") in senders or contact.get("user_id") in senders:
            return contact
    return contacts[0] if len(contacts) == 1 else {}


def _parse_content(message: dict[str, Any], *, has_inline_images: bool) -> Content:
    kind = _parse_identifier(message.get("type"), _MAX_TYPE_LENGTH) or "unknown"
    part = _as_object(message.get(kind))
    content: Content | None = None
    match kind:
        case "text" if isinstance(body := part.get("body"), str):
            content = TextContent(body=_strip_unstorable(body)[:MAX_TEXT_LENGTH])
        case "interactive":
            content = _parse_interactive(part)
        case "button":
            content = _parse_option(part.get("payload"))
        case "image":
            content = _parse_image(part, has_inline_images=has_inline_images)
        case "document" if _is_image(part):
            content = _parse_image(part, has_inline_images=has_inline_images)
        case "contacts":
            content = _parse_contacts(message.get("contacts"))
        case "location":
            content = _parse_location(part)
        case "system":
            # Possibly not a number change, but revoking trust without need is harmless.
            content = NumberChanged()
    return content or UnsupportedMessage(kind=kind)


def _parse_interactive(part: dict[str, Any]) -> Content | None:
    for kind in ("list_reply", "button_reply"):
        option = _parse_option(_as_object(part.get(kind)).get("id"))
        if option is not None:
            return option
    # Form data must not arrive this way, so the reply's fields are ignored.
    return FormClosed() if "nfm_reply" in part else None


def _parse_option(value: object) -> OptionChosen | None:
    option_id = _parse_identifier(value, _MAX_OPTION_ID_LENGTH)
    return None if option_id is None else OptionChosen(id=option_id)


def _parse_image(part: dict[str, Any], *, has_inline_images: bool) -> Content | None:
    mime_type = _parse_identifier(part.get("mime_type"), _MAX_HEADER_LENGTH)
    if has_inline_images and isinstance(data := part.get("data"), str):
        return InlineImage(data=_strip_unstorable(data), mimetype=mime_type)
    media_id = _parse_identifier(part.get("id"), _MAX_MEDIA_ID_LENGTH)
    if media_id is None:
        return None
    sha256 = _parse_identifier(part.get("sha256"), _MAX_HEADER_LENGTH)
    return ImageFile(media_id=media_id, mime_type=mime_type, sha256=sha256)


def _parse_contacts(value: object) -> Content | None:
    contacts = [
        SharedContact(
            name=_parse_label(_as_object(item.get("name")).get("formatted_name")) or "",
            phones=_parse_contact_phones(item),
        )
        for item in _as_objects(value)[:_MAX_SHARED_CONTACTS]
    ]
    return ContactsShared(contacts=tuple(contacts)) if contacts else None


def _parse_contact_phones(contact: dict[str, Any]) -> tuple[str, ...]:
    """Return a contact's numbers, with the provider's own form of a number before the typed one."""
    phones = _as_objects(contact.get("phones"))[:_MAX_SHARED_CONTACTS]
    found = [_parse_phone(p.get("wa_id")) or _parse_label(p.get("phone")) for p in phones]
    return tuple(filter(None, found))


def _parse_location(part: dict[str, Any]) -> Content | None:
    latitude, longitude = part.get("latitude"), part.get("longitude")
    if not (_is_degree(latitude, 90) and _is_degree(longitude, 180)):
        return None
    address = _parse_label(part.get("address")) or _parse_label(part.get("name"))
    return PlaceShared(latitude=latitude, longitude=longitude, address=address)


def _is_degree(value: object, limit: int) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= limit


def _parse_label(value: object) -> str | None:
    return _strip_unstorable(value)[:_MAX_LABEL_LENGTH] if isinstance(value, str) else None


def _is_image(part: dict[str, Any]) -> bool:
    mime_type = _parse_identifier(part.get("mime_type"), _MAX_HEADER_LENGTH) or ""
    return mime_type.partition(";")[0].strip().lower() in _IMAGE_MEDIA_TYPES


def _as_object(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _as_objects(value: object) -> list[dict[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _parse_identifier(value: object, max_length: int) -> str | None:
    """Return the identifier, or None if it is empty, too long or not a string.

    It is not truncated, because two long identifiers could then become equal.
    """
    if not isinstance(value, str):
        return None
    text = _strip_unstorable(value)
    return text if 0 < len(text) <= max_length else None


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
