"""Card records, their public representation, and status transitions."""

from collections.abc import Mapping
from datetime import date, datetime
from typing import Annotated, Final, Literal, NamedTuple, get_args

import msgspec

from tapgate import clock, ids, money
from tapgate.errors import ApiError, Code
from tapgate.schemas.fields import (
    Amount,
    CardSerial,
    Choice,
    IdRule,
    PersonName,
    Pin,
    SearchText,
    Text,
)
from tapgate.schemas.pagination import PageQuery
from tapgate.subscribers.model import MAX_CHILD_CARDS, Subscriber

#: Status as stored. Expiry is not stored: it is derived from `expires_at`.
StoredCardStatus = Literal["UNASSIGNED", "ACTIVE", "BLOCKED", "LOST"]
CardStatus = Literal["UNASSIGNED", "ACTIVE", "BLOCKED", "LOST", "EXPIRED"]
CardType = Literal["PARENT", "CHILD"]
PublicStatus = Annotated[str, Choice(*get_args(CardStatus), name="CardStatus")]
PublicType = Annotated[str, Choice(*get_args(CardType), name="CardType")]


class Card(msgspec.Struct, frozen=True, kw_only=True):
    """Card as stored, with money in minor units."""

    id: int
    serial: str
    status: StoredCardStatus
    created_at: datetime
    updated_at: datetime
    uid: str | None = None
    type: CardType | None = None
    status_reason: str | None = None
    subscriber_id: int | None = None
    account_id: int | None = None
    pin_holder_id: int | None = None
    subscriber_name: str | None = None
    child_name: str | None = None
    relationship: str | None = None
    daily_limit: int | None = None
    usage_day: date | None = None
    day_spent: int = 0
    expires_at: datetime | None = None
    linked_at: datetime | None = None
    #: Whether the card's subscriber is restricted.
    restricted: bool = False

    @property
    def holder_name(self) -> str | None:
        return self.subscriber_name if self.child_name is None else self.child_name

    def status_at(self, now: datetime) -> CardStatus:
        """Return the status at a given time. Cards in any status except `LOST` can expire."""
        if self.status != "LOST" and self.expires_at is not None and self.expires_at <= now:
            return "EXPIRED"
        return self.status

    @property
    def masked_serial(self) -> str:
        """Return the serial with only its last four characters visible: `••••0001`."""
        return f"••••{self.serial[-4:]}"

    def get_spent_on(self, today: date) -> int:
        return self.day_spent if self.usage_day is not None and self.usage_day >= today else 0


class CardRecord(msgspec.Struct, frozen=True, kw_only=True):
    """Card as returned by the API. All fields are present; those without a value are null."""

    serial: str
    mac_address: str | None
    type: PublicType | None
    status: PublicStatus
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


class DisclosedCard(msgspec.Struct, frozen=True, kw_only=True):
    """Card with the fields that the caller may see.

    If the card's subscriber is restricted and hidden from the caller, only `serial`, `status`,
    `status_reason`, `subscriber_id` and `restricted` (true) are present.
    """

    serial: str
    mac_address: str | msgspec.UnsetType | None = msgspec.UNSET
    type: PublicType | msgspec.UnsetType | None = msgspec.UNSET
    status: PublicStatus
    status_reason: str | None
    subscriber_id: str | None
    restricted: bool | msgspec.UnsetType = msgspec.UNSET
    holder_name: str | msgspec.UnsetType | None = msgspec.UNSET
    parent_subscriber_id: str | msgspec.UnsetType | None = msgspec.UNSET
    daily_limit: str | msgspec.UnsetType | None = msgspec.UNSET
    spent_today: str | msgspec.UnsetType | None = msgspec.UNSET
    currency: str | msgspec.UnsetType = msgspec.UNSET
    expires_at: str | msgspec.UnsetType | None = msgspec.UNSET
    linked_at: str | msgspec.UnsetType | None = msgspec.UNSET
    created_at: str | msgspec.UnsetType = msgspec.UNSET
    updated_at: str | msgspec.UnsetType = msgspec.UNSET


def to_disclosed_record(record: CardRecord, *, hidden: bool) -> DisclosedCard:
    if not hidden:
        return DisclosedCard(**msgspec.structs.asdict(record))
    return DisclosedCard(
        serial=record.serial,
        status=record.status,
        status_reason=record.status_reason,
        subscriber_id=record.subscriber_id,
        restricted=True,
    )


class RecordContext(NamedTuple):
    """Current time, platform day and currency needed to render a card."""

    now: datetime
    today: date
    currency: str


def to_record(card: Card, context: RecordContext) -> CardRecord:
    limit, currency = card.daily_limit, context.currency
    subscriber_id = (
        None if card.subscriber_id is None else _encode_subscriber_id(card.subscriber_id)
    )
    return CardRecord(
        serial=card.serial,
        mac_address=card.uid,
        type=card.type,
        status=card.status_at(context.now),
        status_reason=card.status_reason,
        subscriber_id=subscriber_id,
        holder_name=card.holder_name,
        parent_subscriber_id=subscriber_id if card.type == "CHILD" else None,
        daily_limit=None if limit is None else money.format_decimal(limit, currency),
        spent_today=None
        if limit is None
        else money.format_decimal(card.get_spent_on(context.today), currency),
        currency=currency,
        expires_at=_format_time(card.expires_at),
        linked_at=_format_time(card.linked_at),
        created_at=clock.format_rfc3339(card.created_at),
        updated_at=clock.format_rfc3339(card.updated_at),
    )


def _encode_subscriber_id(subscriber_id: int) -> str:
    return ids.encode(ids.SUBSCRIBER, subscriber_id)


def _format_time(time: datetime | None) -> str | None:
    return None if time is None else clock.format_rfc3339(time)


class CardLink(msgspec.Struct, kw_only=True):
    subscriber_id: Text
    card_serial: CardSerial
    pin: Pin


class NewChildCard(msgspec.Struct, kw_only=True):
    parent_subscriber_id: Text
    card_serial: CardSerial
    parent_pin: Pin
    child_pin: Pin
    daily_limit: Amount
    child_name: PersonName
    child_relationship: Text | None = None


class CardFilters(PageQuery, kw_only=True):
    """Filters for listing cards."""

    subscriber_id: Annotated[str, IdRule(ids.SUBSCRIBER)] | None = None
    status: PublicStatus | None = None
    type: PublicType | None = None
    search: SearchText | None = None


#: Maps each allowed current status to the next status.
StatusTransitions = Mapping[CardStatus, StoredCardStatus]

_BLOCK_TRANSITIONS: Final[StatusTransitions] = {"ACTIVE": "BLOCKED"}
#: A blocked card can still be reported lost, stolen or damaged.
_LOST_TRANSITIONS: Final[StatusTransitions] = {"ACTIVE": "LOST", "BLOCKED": "LOST"}
_UNBLOCK_TRANSITIONS: Final[StatusTransitions] = {"BLOCKED": "ACTIVE"}

_TRANSITIONS_BY_REASON: Final[Mapping[str, StatusTransitions]] = {
    "lost": _LOST_TRANSITIONS,
    "stolen": _LOST_TRANSITIONS,
    "damaged": _LOST_TRANSITIONS,
    "fraud": _BLOCK_TRANSITIONS,
    "customer_request": _BLOCK_TRANSITIONS,
    "compliance": _BLOCK_TRANSITIONS,
}

#: Texts for the reasons, used in the message to the subscriber.
BLOCK_REASON_TEXTS: Final[Mapping[str, str]] = {
    "lost": "it was reported lost",
    "stolen": "it was reported stolen",
    "damaged": "it was reported damaged",
    "fraud": "possible fraud",
    "customer_request": "you requested it",
    "compliance": "a compliance check",
}

BlockReason = Annotated[str, Choice(*_TRANSITIONS_BY_REASON, name="CardBlockReason")]


class CardBlock(msgspec.Struct, kw_only=True):
    reason: BlockReason


def block(card: Card, reason: str, now: datetime) -> Card:
    """Return the card with status `BLOCKED` or `LOST`, depending on the reason."""
    status = card.status_at(now)
    if status == "UNASSIGNED":
        raise ApiError(Code.CARD_NOT_LINKED)
    next_status = _TRANSITIONS_BY_REASON[reason].get(status)
    if next_status is None:
        raise ApiError(Code.ALREADY_BLOCKED)
    return msgspec.structs.replace(card, status=next_status, status_reason=reason)


def unblock(card: Card, reason: str | None, now: datetime) -> Card:
    status = card.status_at(now)
    if status in ("LOST", "EXPIRED"):
        raise ApiError(Code.PERMANENT_BLOCK)
    if status == "UNASSIGNED":
        raise ApiError(Code.CARD_NOT_LINKED)
    next_status = _UNBLOCK_TRANSITIONS.get(status)
    if next_status is None:
        raise ApiError(Code.NOT_BLOCKED)
    return msgspec.structs.replace(card, status=next_status, status_reason=reason)


def get_link_error(card: Card, holder: Subscriber, now: datetime) -> ApiError | None:
    """Return the error if the card cannot be linked, otherwise None.

    The error is returned, not raised, so that the result of the PIN check is committed.
    """
    match card.status_at(now):
        case "ACTIVE" | "BLOCKED":
            return ApiError(Code.CARD_ALREADY_LINKED)
        case "LOST" | "EXPIRED":
            return ApiError(Code.CARD_NOT_ACTIVE)
    match holder.status:
        case "blocked":
            return ApiError(Code.SUBSCRIBER_BLOCKED)
        case "closed":
            return ApiError(Code.NOT_CLOSABLE, "The subscriber is closed.")
    return None


def get_child_card_error(holder: Subscriber, child_card_count: int) -> ApiError | None:
    allowed = MAX_CHILD_CARDS[holder.category]
    if allowed is None or child_card_count < allowed:
        return None
    return ApiError(Code.MAX_CHILD_CARDS)


def link(card: Card, holder: Subscriber, now: datetime) -> Card:
    """Return the card linked as the subscriber's own card, which uses the subscriber's PIN."""
    return msgspec.structs.replace(
        card,
        type="PARENT",
        status="ACTIVE",
        subscriber_id=holder.id,
        account_id=holder.account_id,
        pin_holder_id=holder.id,
        subscriber_name=holder.name,
        restricted=holder.restricted,
        linked_at=now,
    )


def link_to_child(
    card: Card, holder: Subscriber, child: NewChildCard, currency: str, now: datetime
) -> Card:
    """Return the card linked as a child card: same wallet, own PIN and daily limit."""
    return msgspec.structs.replace(
        link(card, holder, now),
        type="CHILD",
        pin_holder_id=card.id,
        child_name=child.child_name,
        relationship=child.child_relationship,
        daily_limit=money.parse(child.daily_limit, currency),
    )


def not_found() -> ApiError:
    return ApiError(Code.CARD_NOT_FOUND)
