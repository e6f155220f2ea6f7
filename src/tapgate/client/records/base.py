"""Base classes of all records.

Unknown fields from a newer gateway are ignored. Times are RFC 3339 in UTC.
"""

import msgspec


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """Base class. Unless noted, amounts are decimal strings in major units: `1234.50`."""


class Confirmation(Record, frozen=True, kw_only=True):
    """Response to an operation that succeeded."""

    success: bool
    message: str


class Receipt(Confirmation, frozen=True, kw_only=True):
    """Response to an operation that moves money.

    `status` is `completed`, or `under_review` while the money is held. Amounts are formatted for
    display: `1,234.50 SLE`. `replayed` is true if this is the response to an earlier request with
    the same idempotency key.
    """

    transaction_id: str
    status: str
    request_id: str = ""
    replayed: bool = False


class SecretRecord(Record, frozen=True, kw_only=True):
    """Record that contains a secret. Its `repr` hides all fields."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}(...)"
