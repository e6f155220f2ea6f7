"""Webhook endpoints and deliveries: what is asked for, what is shown, what is sent, when again."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Annotated, Any, Final

import msgspec

from tapgate import clock, ids, signing
from tapgate.edge.fields import Choice, Count
from tapgate.errors import ApiError, Code
from tapgate.notifications import claims
from tapgate.notifications.events import TYPES
from tapgate.notifications.webhooks.targets import TargetRule

EVERYTHING: Final = "*"
#: Nobody can ask for it: it is sent to one endpoint when somebody wants to see what arrives there.
TEST: Final = "webhook.test"

_MINUTE, _HOUR = 60, 3_600
#: After the first, second, ... failed attempt; after one more it is given up.
PAUSES: Final = (
    5,
    5 * _MINUTE,
    30 * _MINUTE,
    2 * _HOUR,
    5 * _HOUR,
    10 * _HOUR,
    14 * _HOUR,
    20 * _HOUR,
    24 * _HOUR,
)


class NewEndpoint(msgspec.Struct, kw_only=True):
    url: Annotated[str, TargetRule()]
    events: Annotated[list[Annotated[str, Choice(*TYPES, EVERYTHING)]], Count(1, 100)]


class Endpoint(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    url: str
    events: list[str]


class CreatedEndpoint(Endpoint, frozen=True, kw_only=True):
    """The only time that the secret is shown."""

    secret: str


class Delivery(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    event: str
    status: str
    attempts: int
    last_status: int | None
    created_at: str


class Due(msgspec.Struct, frozen=True, kw_only=True):
    """A delivery that this process alone may send for a while."""

    id: int
    endpoint_id: int
    attempts: int
    attempts_before: int
    next_attempt_at: datetime  # when the claim is over
    event_id: int
    event: str
    subject_id: int | None
    data: str | None
    occurred_at: datetime
    url: str
    secret: bytes


def no_such_endpoint() -> ApiError:
    return ApiError(Code.NOT_FOUND, "There is no such webhook endpoint")


def no_such_delivery() -> ApiError:
    return ApiError(Code.NOT_FOUND, "There is no such delivery")


def endpoint(row: Mapping[str, Any]) -> Endpoint:
    return Endpoint(**_facts(row))


def created_endpoint(row: Mapping[str, Any], secret: str) -> CreatedEndpoint:
    return CreatedEndpoint(**_facts(row), secret=secret)


def _facts(row: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "id": ids.show(ids.WEBHOOK_ENDPOINT, row["id"]),
        "url": row["url"],
        "events": row["events"],
    }


def delivery(row: Mapping[str, Any]) -> Delivery:
    return Delivery(
        id=ids.show(ids.DELIVERY, row["id"]),
        event=row["event"],
        status=row["status"],
        attempts=row["attempts"],
        last_status=row["last_status"],
        created_at=clock.rfc3339(row["created_at"]),
    )


def secret_context(endpoint_id: int) -> bytes:
    """What a secret is sealed for: nobody's opens as another's."""
    return b"webhook endpoint %d" % endpoint_id


def pause_after(failures: int) -> timedelta | None:
    """How long to wait after that many failed attempts; None when it is time to give up."""
    if failures > len(PAUSES):
        return None
    return claims.about(PAUSES[failures - 1], give_or_take=0.1)


def body(event: str, occurred_at: datetime, data: str) -> bytes:
    """The same bytes every time, since `data` is the text of what was stored once."""
    return msgspec.json.encode(
        {
            "type": event,
            "timestamp": clock.rfc3339(occurred_at),
            "data": msgspec.Raw(data.encode()),
        }
    )


def headers(delivery_id: int, secret: str, body: bytes, now: datetime) -> dict[str, str]:
    """Standard Webhooks: the id stays the same, time and signature are those of this attempt."""
    shown, timestamp = ids.show(ids.DELIVERY, delivery_id), int(now.timestamp())
    return {
        "Content-Type": "application/json",
        "webhook-id": shown,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": signing.standard_webhook_signature(secret, shown, timestamp, body),
    }
