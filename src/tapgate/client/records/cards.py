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


class DisclosedCard(Record, frozen=True, kw_only=True):
    """A card as far as the caller may know it: of a restricted subscriber's card (`restricted` is
    true), all fields but `serial`, `status`, `status_reason` and `subscriber_id` are None until a
    code is verified."""

    serial: str
    mac_address: str | None = None
    type: str | None = None
    status: str
    status_reason: str | None
    subscriber_id: str | None
    restricted: bool | None = None
    holder_name: str | None = None
    parent_subscriber_id: str | None = None
    daily_limit: str | None = None
    spent_today: str | None = None
    currency: str | None = None
    expires_at: str | None = None
    linked_at: str | None = None
    created_at: str | None = None
    updated_at: str | None = None


class CardResponse(Confirmation, frozen=True, kw_only=True):
    """Linked or unblocked."""

    card: Card


class BlockCardResponse(Confirmation, frozen=True, kw_only=True):
    card: DisclosedCard


class RowError(Record, frozen=True, kw_only=True):
    """Why a row of the file was left out; the header is row 1."""

    row: int
    serial: str
    error: str


class UploadCardsResponse(Confirmation, frozen=True, kw_only=True):
    total: int
    created: int
    skipped: int
    errors: list[RowError]
