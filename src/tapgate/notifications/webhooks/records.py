"""What an event of the ledger tells: a record that is looked up when it is first sent."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

import msgspec

from tapgate import money
from tapgate.edge.services import Services
from tapgate.ledger import rules

#: Looks up the record of a transaction, an alert or an agent by its number.
RecordOf = Callable[[Services, int], Awaitable[msgspec.Struct]]
Records = Mapping[str, RecordOf]

#: What the event's name says about the transaction, which may have moved on since.
_THEN: Final[Mapping[str, dict[str, Any]]] = {
    rules.COMPLETED: {"status": "completed"},
    rules.FAILED: {"status": "failed"},
    rules.UNDER_REVIEW: {
        "status": "under_review",
        "approval_code": None,
        "completed_at": None,
        "failure_code": None,
    },
}


def as_it_was(event: str, record: msgspec.Struct) -> dict[str, Any]:
    """The record with the state that the event speaks of."""
    data: dict[str, Any] = msgspec.to_builtins(record)
    then = _THEN.get(event)
    if then is None:
        return data
    # Refunds come later: `transaction.refunded` tells of them.
    not_refunded = {"refunded_amount": money.plain(0, data["currency"])}
    return data | not_refunded | then
