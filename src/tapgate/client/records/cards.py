"""Card records."""

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
    """A card, with the fields that the caller may see.

    While a restricted subscriber is hidden from the caller, `restricted` is true and only `serial`,
    `status`, `status_reason` and `subscriber_id` are set. Otherwise, `restricted` is None.
    """

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
    """Response to linking or unblocking a card."""

    card: Card


class BlockCardResponse(Confirmation, frozen=True, kw_only=True):
    card: DisclosedCard


class RowError(Record, frozen=True, kw_only=True):
    """Error in a line of the file. `row` is the line number, where the header is line 1."""

    row: int
    serial: str
    error: str


class UploadCardsResponse(Confirmation, frozen=True, kw_only=True):
    total: int
    created: int
    skipped: int
    errors: list[RowError]
