"""Data of webhook events: loading and redaction.

The ledger writes events without data. The first attempt to deliver such an event loads and stores
the record. Every attempt omits the personal data of subscribers who are restricted at that time.
"""

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final

import msgspec

from tapgate import money
from tapgate.api.services import Services
from tapgate.auth.disclosure import Audience, Subject, find_hidden_subjects
from tapgate.ledger import rules
from tapgate.rules.compliance import remove_personal_details
from tapgate.schemas.webhooks import get_resource_type

#: Loads the record of a transaction, an alert or an agent by its numeric id.
RecordLoader = Callable[[Services, int], Awaitable[msgspec.Struct]]
RecordLoaders = Mapping[str, RecordLoader]

#: Values of transaction fields at the time of the event. The transaction may have changed since.
_FIELDS_AT_EVENT: Final[Mapping[str, dict[str, Any]]] = {
    rules.TRANSACTION_COMPLETED: {"status": "completed"},
    rules.TRANSACTION_FAILED: {"status": "failed"},
    rules.TRANSACTION_UNDER_REVIEW: {
        "status": "under_review",
        "approval_code": None,
        "completed_at": None,
        "failure_code": None,
    },
}


def build_event_data(event: str, record: msgspec.Struct) -> dict[str, Any]:
    """Return the record as event data, with a transaction's state at the time of the event."""
    data: dict[str, Any] = msgspec.to_builtins(record)
    fields = _FIELDS_AT_EVENT.get(event)
    if fields is None:
        return data
    # Refunds happen after these events and have their own event, `transaction.refunded`.
    not_refunded = {"refunded_amount": money.format_decimal(0, data["currency"])}
    return data | not_refunded | fields


async def redact_event_data(services: Services, event: str, data: str) -> str:
    """Return the stored data of an event, redacted if it concerns a restricted subscriber.

    The subscriber may have become restricted after the data was stored.
    """
    kind = get_resource_type(event)
    if kind not in REDACTORS:
        return data
    # Metadata may contain numbers that Python cannot represent, so long integers and all decimals
    # are read as text. This does not change redacted data, which has no metadata.
    record = json.loads(data, parse_int=_parse_int, parse_float=str)
    public_id = record.get("serial" if kind == "card" else "id")
    subjects = [] if public_id is None else [Subject(kind, public_id)]
    hidden = await find_hidden_subjects(services.database, None, services.clock(), subjects)
    return json.dumps(REDACTORS[kind](record)) if hidden else data


async def find_hidden_responses(
    services: Services, audience: Audience, deliveries: Sequence[Mapping[str, Any]]
) -> set[int]:
    """Return the ids of deliveries whose response is hidden from the audience.

    The endpoint's response may repeat personal data of a subscriber who is now restricted.
    """
    subjects = {
        row["id"]: Subject(kind, row["subject"])
        for row in deliveries
        if (kind := get_resource_type(row["event"])) in REDACTORS and row["subject"] is not None
    }
    now = services.clock()
    hidden = await find_hidden_subjects(services.database, audience, now, set(subjects.values()))
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
    return record | {"details": details, "resolution_notes": None, "masked": True}


#: Redaction functions by resource type. They keep the fields that API responses also disclose.
REDACTORS: Final[Mapping[str, Callable[[dict[str, Any]], dict[str, Any]]]] = {
    "subscriber": _redact_subscriber,
    "card": _redact_card,
    "transaction": _redact_transaction,
    "alert": _redact_alert,
}
