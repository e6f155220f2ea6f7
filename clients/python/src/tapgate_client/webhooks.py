"""Webhook verification, and signing for funding partners."""

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from tapgate_client import signing
from tapgate_client.clock import Clock, system_clock
from tapgate_client.exceptions import SignatureError

#: Signature header in a funding partner's webhook.
PARTNER_SIGNATURE_HEADER = "X-Webhook-Signature"


class Event(msgspec.Struct, frozen=True, kw_only=True):
    """Event delivered by webhook. A repeated `id` is a redelivery."""

    id: str
    type: str
    timestamp: str
    data: dict[str, Any]


class _EventBody(msgspec.Struct):
    type: str
    timestamp: str
    data: dict[str, Any]


def verify(
    secret: str | Iterable[str],
    headers: Mapping[str, str],
    body: bytes,
    *,
    clock: Clock = system_clock,
) -> Event:
    """Return a webhook request's event, or raise `SignatureError`.

    `secret` is the endpoint's secret (`whsec_...`), or several secrets of which one must match,
    such as the old and the new secret during a rotation. `body` is the raw request body. Header
    names are case-insensitive.
    """
    by_name = {name.lower(): value for name, value in headers.items()}
    try:
        message_id, timestamp = by_name["webhook-id"], by_name["webhook-timestamp"]
        signatures = by_name["webhook-signature"]
    except KeyError as missing:
        raise SignatureError(f"the {missing.args[0]} header is missing") from None
    sent_at = signing.parse_unix_seconds(timestamp)
    if sent_at is None or not signing.is_timely(sent_at, clock()):
        raise SignatureError("the timestamp is not within 5 minutes of the current time")
    secrets = [secret] if isinstance(secret, str) else secret
    if str(int(timestamp)) != timestamp or not any(
        signing.verify_standard_webhook(candidate, signatures, message_id, int(timestamp), body)
        for candidate in secrets
    ):
        raise SignatureError("no signature matches")
    try:
        content = msgspec.json.decode(body, type=_EventBody)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        raise SignatureError("the body is not a valid event") from None
    return Event(id=message_id, type=content.type, timestamp=content.timestamp, data=content.data)


def sign_partner_webhook(webhook_secret: str, body: bytes) -> str:
    """Return the `X-Webhook-Signature` of a funding partner's webhook.

    `partner_webhooks.send` adds this signature itself.
    """
    return signing.webhook_signature(webhook_secret.encode(), body)
