"""Cards."""

from tapgate.client.records.base import Confirmation, Record


class Card(Record, frozen=True, kw_only=True):
    serial: str
    mac_address: str | None
    type: str | None
    status: str
    status_reason: str | None
    subscriber_id: str | None
    holder_name: str | None
    parent_subscriber_id: str | None
    daily_limit: str | None
    spent_today: str | None
    currency: str
    expires_at: str | None
    linked_at: str | None
    created_at: str
    updated_at: str


class CardMoved(Confirmation, frozen=True, kw_only=True):
    """Linked, blocked or unblocked."""

    card: Card


class RowError(Record, frozen=True, kw_only=True):
    """Why a row of the file was left out; the header is row 1."""

    row: int
    serial: str
    error: str


class Uploaded(Confirmation, frozen=True, kw_only=True):
    total: int
    created: int
    skipped: int
    errors: list[RowError]
