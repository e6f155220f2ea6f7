"""What the records of the gateway have in common.

Fields that a newer gateway adds are ignored. Times are RFC 3339 in UTC.
"""

import msgspec


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """Money is a plain decimal string in major units: `1234.50`."""


class Confirmation(Record, frozen=True, kw_only=True):
    """It was done."""

    success: bool
    message: str


class Receipt(Confirmation, frozen=True, kw_only=True):
    """Money moved, or is held until a review is over: `completed`, `under_review`.

    Money on a receipt is written for people: `1,234.50 SLE`. `replayed`: it had moved before, under
    the same `request_id`.
    """

    transaction_id: str
    status: str
    request_id: str = ""
    replayed: bool = False


class SecretRecord(Record, frozen=True, kw_only=True):
    """Holds a secret that is shown this once, and not by printing it."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}(...)"


class File(msgspec.Struct, frozen=True, kw_only=True):
    """`next_cursor`: there is more, in a file that begins there. `masked`: personal data of
    restricted subscribers is left out."""

    content: bytes
    media_type: str
    next_cursor: str | None = None
    masked: bool = False

    def __repr__(self) -> str:
        return f"File({self.media_type}, {len(self.content)} bytes)"
