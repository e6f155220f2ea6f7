"""Webhook event data: loading and redaction.

The ledger writes events without data, and an attempt to deliver such an event loads the record. A
transaction's record is stored only after an attempt has failed, so that the next one sends the same
bytes; that makes an event a tenth as large. Other records are stored at once, because they do not
show what they were when the event occurred. Every attempt omits personal data about subscribers who
are restricted at that time. Leased deliveries are prepared together, with a constant number of
statements.
"""

import json
from collections import defaultdict
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple

import msgspec

from tapgate.auth.disclosure import Audience, Subject, find_hidden_subjects
from tapgate.events.webhooks.model import LeasedDelivery
from tapgate.http.api.services import Services
from tapgate.ledger.rules import loaded_rules
from tapgate.ledger.rules.compliance import remove_personal_details
from tapgate.runtime.store.database import Database
from tapgate.runtime.store.transaction import Transaction
from tapgate_client import ids, money
from tapgate_client.errors import ApiError
from tapgate_client.schemas.webhooks import get_resource_type

#: Loads transaction, alert, agent or card records by their numeric ids. Missing records
#: are omitted.
RecordLoader = Callable[[Services, Collection[int]], Awaitable[Mapping[int, msgspec.Struct]]]
RecordLoaders = Mapping[str, RecordLoader]


class EventData(NamedTuple):
    """Event data as JSON text."""

    sent: str
    #: The same before redaction, if the event has no stored data.
    unstored: str | None = None


#: Event data, or the error that prevented loading it.
EventResult = EventData | Exception
#: The same before redaction.
_Texts = dict[int, str | Exception]

#: Records that show the state at the time of the event also when they are loaded later.
_LOADED_AGAIN: Final = frozenset({"transaction"})

#: Transaction field values when the event occurred. The transaction may have changed since.
_FIELDS_AT_EVENT: Final[Mapping[str, dict[str, Any]]] = {
    loaded_rules.TRANSACTION_COMPLETED: {"status": "completed"},
    loaded_rules.TRANSACTION_FAILED: {"status": "failed"},
    loaded_rules.TRANSACTION_UNDER_REVIEW: {
        "status": "under_review",
        "approval_code": None,
        "completed_at": None,
        "failure_code": None,
    },
}


#: ID types for resources that the ledger names by `subject_id`.
_SUBJECT_IDS: Final = {"transaction": ids.TRANSACTION, "alert": ids.ALERT}


class RecordUnavailableError(Exception):
    """The record for an event's data cannot be loaded."""


async def load_event_data(
    services: Services, loaders: RecordLoaders, deliveries: Sequence[LeasedDelivery]
) -> dict[int, EventResult]:
    """Return these deliveries' event data, by event id, redacted if necessary."""
    texts: _Texts = {
        delivery.event_id: delivery.data for delivery in deliveries if delivery.data is not None
    }
    stored = set(texts)
    without_data = {delivery.event_id: delivery for delivery in deliveries if delivery.data is None}
    by_resource_type = defaultdict[str, list[LeasedDelivery]](list)
    for delivery in without_data.values():
        by_resource_type[get_resource_type(delivery.event)].append(delivery)
    for resource_type, events in by_resource_type.items():
        is_stored = resource_type not in _LOADED_AGAIN
        texts |= await _load(services, loaders.get(resource_type), events, is_stored=is_stored)
        if is_stored:
            stored.update(event.event_id for event in events)
    sent = await _redact(services, {each.event_id: each for each in deliveries}, texts)
    return {
        event_id: text
        if isinstance(text, Exception)
        else EventData(str(sent[event_id]), None if event_id in stored else text)
        for event_id, text in texts.items()
    }


async def store_event_data(database: Database, texts: Mapping[int, str]) -> None:
    """Store what a failed attempt sent, for the next attempts."""
    if texts:
        await database.execute(
            """UPDATE events SET data = coalesce(events.data, loaded.data::jsonb)
               FROM unnest($1::bigint[], $2::text[]) AS loaded (id, data)
               WHERE events.id = loaded.id""",
            list(texts),
            list(texts.values()),
        )


async def _load(
    services: Services,
    load: RecordLoader | None,
    events: Sequence[LeasedDelivery],
    *,
    is_stored: bool,
) -> _Texts:
    try:
        if load is None:
            raise RecordUnavailableError
        subject_ids = {event.subject_id for event in events if event.subject_id is not None}
        records = await load(services, subject_ids)
        built = {
            event.event_id: build_event_data(event.event, record)
            for event in events
            if (record := records.get(event.subject_id or 0)) is not None
        }
        missing = {event.event_id: RecordUnavailableError() for event in events}
        return {**missing, **await _encode(services.database, built, is_stored=is_stored)}
    except ApiError:  # the database is unavailable
        raise
    except Exception as error:
        if len(events) == 1:
            return {events[0].event_id: error}
    # One record must not affect the others.
    results: _Texts = {}
    for event in events:
        results |= await _load(services, load, [event], is_stored=is_stored)
    return results


async def _encode(
    database: Database, data: Mapping[int, dict[str, Any]], *, is_stored: bool
) -> Mapping[int, str]:
    """Return the data as PostgreSQL writes it, and store it for events that have none yet."""
    # Sorted, so that `width_bucket` finds an event's data by binary search.
    event_ids = sorted(data)
    rows = await database.fetch(
        """UPDATE events
           SET data = coalesce(data, ($2::jsonb[])[width_bucket(id, $1::bigint[])])
           WHERE id = ANY ($1::bigint[]) RETURNING id, data::text"""
        if is_stored
        else "SELECT id, data::text FROM unnest($1::bigint[], $2::jsonb[]) AS loaded (id, data)",
        event_ids,
        [data[event_id] for event_id in event_ids],
    )
    return {row["id"]: row["data"] for row in rows}


def build_event_data(event: str, record: msgspec.Struct) -> dict[str, Any]:
    """Return the record as event data, with a transaction's state when the event occurred."""
    data: dict[str, Any] = msgspec.to_builtins(record)
    fields = _FIELDS_AT_EVENT.get(event)
    if fields is None:
        return data
    # Refunds and reversals happen after these events and have their own events.
    nothing = money.format_decimal(0, data["currency"])
    not_undone = {"refunded_amount": nothing, "reversed_amount": nothing}
    return data | not_undone | fields


async def _redact(services: Services, events: Mapping[int, LeasedDelivery], data: _Texts) -> _Texts:
    """Redact event data that concerns a restricted subscriber.

    The subscriber may have become restricted after the data was stored.
    """
    results = dict(data)
    subjects = {
        event_id: subject
        for event_id, text in data.items()
        if isinstance(text, str) and (subject := _get_subject(events[event_id], text)) is not None
    }
    hidden = await find_hidden_subjects(
        services.database, None, services.clock(), set(subjects.values())
    )
    for event_id, subject in subjects.items():
        if subject in hidden:
            record = _decode_data(str(data[event_id]))
            results[event_id] = json.dumps(REDACTORS[subject.kind](record))
    return results


def _get_subject(event: LeasedDelivery, data: str) -> Subject | None:
    kind = get_resource_type(event.event)
    if kind not in REDACTORS:
        return None
    if event.subject_id is not None and kind in _SUBJECT_IDS:
        return Subject(kind, ids.encode(_SUBJECT_IDS[kind], event.subject_id))
    public_id = _decode_data(data).get("serial" if kind == "card" else "id")
    return None if public_id is None else Subject(kind, public_id)


def _decode_data(data: str) -> dict[str, Any]:
    """Decode event data for redaction.

    Metadata may contain numbers that Python cannot represent, so long integers and all decimals
    are read as text. This does not change redacted data, which has no metadata.
    """
    record: dict[str, Any] = json.loads(data, parse_int=_parse_int, parse_float=str)
    return record


async def find_hidden_responses(
    reader: Database | Transaction,
    audience: Audience,
    now: datetime,
    deliveries: Sequence[Mapping[str, Any]],
) -> set[int]:
    """Return delivery ids whose response is hidden from the audience.

    The endpoint's response may repeat personal data about a subscriber who is now restricted.
    """
    subjects = {
        row["id"]: Subject(kind, row["subject"])
        for row in deliveries
        if (kind := get_resource_type(row["event"])) in REDACTORS and row["subject"] is not None
    }
    subjects |= {
        row["id"]: Subject(kind, ids.encode(_SUBJECT_IDS[kind], row["subject_id"]))
        for row in deliveries
        if (kind := get_resource_type(row["event"])) in _SUBJECT_IDS
        and row["subject_id"] is not None
    }
    hidden = await find_hidden_subjects(reader, audience, now, set(subjects.values()))
    return {delivery_id for delivery_id, subject in subjects.items() if subject in hidden}


def _parse_int(text: str) -> int | str:
    return int(text) if len(text) < 16 else text


def _redact_subscriber(record: dict[str, Any]) -> dict[str, Any]:
    visible = ("id", "status", "status_reason")
    return {name: record[name] for name in visible} | {"restricted": True}


def _redact_card(record: dict[str, Any]) -> dict[str, Any]:
    visible = ("serial", "status", "status_reason", "subscriber_id")
    return {name: record[name] for name in visible} | {"restricted": True}


def _redact_transaction(record: dict[str, Any]) -> dict[str, Any]:
    def redact_party(party: dict[str, Any] | None) -> dict[str, Any] | None:
        return None if party is None else {"type": party["type"], "id": party["id"]}

    hidden = dict.fromkeys(("card_serial", "memo", "metadata"))
    parties = {"from": redact_party(record["from"]), "to": redact_party(record["to"])}
    return record | hidden | parties | {"masked": True}


def _redact_alert(record: dict[str, Any]) -> dict[str, Any]:
    details = remove_personal_details(record["details"])
    notes = dict.fromkeys(("investigation_notes", "resolution_notes"))
    return record | notes | {"details": details, "masked": True}


def _redact_support_request(record: dict[str, Any]) -> dict[str, Any]:
    return record | {"phone_number": None, "masked": True}


def _redact_dispute(record: dict[str, Any]) -> dict[str, Any]:
    hidden = dict.fromkeys(("description", "merchant_response"))
    return record | hidden | {"masked": True}


#: Redaction functions by resource type. They keep the fields that API responses also disclose.
REDACTORS: Final[Mapping[str, Callable[[dict[str, Any]], dict[str, Any]]]] = {
    "subscriber": _redact_subscriber,
    "card": _redact_card,
    "transaction": _redact_transaction,
    "alert": _redact_alert,
    "support": _redact_support_request,
    "dispute": _redact_dispute,
}
