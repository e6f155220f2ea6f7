"""Card records, their public representation, and status transitions."""

from collections.abc import Mapping
from datetime import date, datetime
from typing import Final

import msgspec

from tapgate.business.customers.subscribers.model import MAX_CHILD_CARDS, Subscriber
from tapgate.core.records import build_record, get_given_fields
from tapgate.core.settings import Settings
from tapgate.events.notifications.account_notices import mask_card_serial
from tapgate_client import clock, money
from tapgate_client.errors import ApiError, Code, invalid_field
from tapgate_client.schemas.card_proofs import CardAuthenticity
from tapgate_client.schemas.cards import (
    CardBlockReason,
    CardRecord,
    CardStatus,
    CardType,
    ChildCardUpdate,
    DisclosedCard,
    NewChildCard,
)
from tapgate_client.schemas.subscribers import SubscriberLanguage, SubscriberStatus


class Card(msgspec.Struct, frozen=True, kw_only=True):
    """Card as stored, with money in minor units."""

    id: int
    serial: str
    status: CardStatus
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
    child_relationship: str | None = None
    daily_limit: int | None = None
    usage_day: date | None = None
    day_spent: int = 0
    expires_at: datetime | None = None
    linked_at: datetime | None = None
    authenticity: CardAuthenticity = CardAuthenticity.NONE
    keyset_id: int | None = None
    key_version: int | None = None
    last_counter: int | None = None
    #: Keys that were issued but not confirmed by a tap yet.
    pending_keyset_id: int | None = None
    pending_key_version: int | None = None
    pending_since: datetime | None = None
    #: Keyset from whose master key the card's own keys are derived.
    master_keyset_id: int | None = None
    has_retired_keys: bool = False
    #: Whether the card's subscriber is restricted.
    restricted: bool = False

    @property
    def holder_name(self) -> str | None:
        return self.subscriber_name if self.child_name is None else self.child_name

    def status_at(self, now: datetime) -> CardStatus:
        """Return the status at a given time. Cards in any status except `LOST` can expire."""
        has_expired = self.expires_at is not None and self.expires_at <= now
        if has_expired and self.status != CardStatus.LOST:
            return CardStatus.EXPIRED
        return self.status

    @property
    def masked_serial(self) -> str:
        return mask_card_serial(self.serial)

    def get_spent_on(self, today: date) -> int:
        return self.day_spent if self.usage_day is not None and self.usage_day >= today else 0


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


def to_record(card: Card, now: datetime, settings: Settings) -> CardRecord:
    limit, currency = card.daily_limit, settings.currency
    spent_today = card.get_spent_on(clock.get_platform_day(now, settings.timezone))
    record = build_record(
        CardRecord,
        card,
        mac_address=card.uid,
        status=card.status_at(now),
        holder_name=card.holder_name,
        parent_subscriber_id=None,
        daily_limit=None if limit is None else money.format_decimal(limit, currency),
        spent_today=None if limit is None else money.format_decimal(spent_today, currency),
        currency=currency,
    )
    if card.type != CardType.CHILD:
        return record
    return msgspec.structs.replace(record, parent_subscriber_id=record.subscriber_id)


#: Maps each allowed current status to the next status.
StatusTransitions = Mapping[CardStatus, CardStatus]

_BLOCK_TRANSITIONS: Final[StatusTransitions] = {CardStatus.ACTIVE: CardStatus.BLOCKED}
#: A blocked card can still be reported lost, stolen or damaged.
_LOST_TRANSITIONS: Final[StatusTransitions] = {
    CardStatus.ACTIVE: CardStatus.LOST,
    CardStatus.BLOCKED: CardStatus.LOST,
}
_UNBLOCK_TRANSITIONS: Final[StatusTransitions] = {CardStatus.BLOCKED: CardStatus.ACTIVE}

TRANSITIONS_BY_REASON: Final[Mapping[str, StatusTransitions]] = {
    CardBlockReason.LOST: _LOST_TRANSITIONS,
    CardBlockReason.STOLEN: _LOST_TRANSITIONS,
    CardBlockReason.DAMAGED: _LOST_TRANSITIONS,
    CardBlockReason.FRAUD: _BLOCK_TRANSITIONS,
    CardBlockReason.CUSTOMER_REQUEST: _BLOCK_TRANSITIONS,
    CardBlockReason.COMPLIANCE: _BLOCK_TRANSITIONS,
}

#: What happened to a card, in the notice to the subscriber.
CHANGE_TEXTS: Final[Mapping[str, Mapping[str, str]]] = {
    SubscriberLanguage.EN: {
        "linked": "was linked to your wallet",
        "blocked": "was blocked: {reason}",
        "unblocked": "was unblocked",
        "limited": "has a new daily limit: {limit}",
        "keys_issued": "is being encoded again with new keys",
        "personalized": "was encoded again and pays with new keys from now on",
    },
    SubscriberLanguage.FR: {
        "linked": "a été liée à votre portefeuille",
        "blocked": "a été bloquée : {reason}",
        "unblocked": "a été débloquée",
        "limited": "a un nouveau plafond journalier : {limit}",
        "keys_issued": "est en cours de réencodage avec de nouvelles clés",
        "personalized": "a été réencodée et paie désormais avec de nouvelles clés",
    },
}
#: Texts for the reasons by language, used in the notice to the subscriber.
BLOCK_REASON_TEXTS: Final[Mapping[str, Mapping[str, str]]] = {
    SubscriberLanguage.EN: {
        CardBlockReason.LOST: "it was reported lost",
        CardBlockReason.STOLEN: "it was reported stolen",
        CardBlockReason.DAMAGED: "it was reported damaged",
        CardBlockReason.FRAUD: "possible fraud",
        CardBlockReason.CUSTOMER_REQUEST: "you requested it",
        CardBlockReason.COMPLIANCE: "a compliance check",
    },
    SubscriberLanguage.FR: {
        CardBlockReason.LOST: "elle a été déclarée perdue",
        CardBlockReason.STOLEN: "elle a été déclarée volée",
        CardBlockReason.DAMAGED: "elle a été déclarée endommagée",
        CardBlockReason.FRAUD: "fraude possible",
        CardBlockReason.CUSTOMER_REQUEST: "à votre demande",
        CardBlockReason.COMPLIANCE: "contrôle de conformité",
    },
}


def block(card: Card, reason: str, now: datetime) -> Card:
    """Return the card with status `BLOCKED` or `LOST`, depending on the reason."""
    status = card.status_at(now)
    if status == CardStatus.UNASSIGNED:
        raise ApiError(Code.CARD_NOT_LINKED)
    next_status = TRANSITIONS_BY_REASON[reason].get(status)
    if next_status is None:
        raise ApiError(Code.ALREADY_BLOCKED)
    return msgspec.structs.replace(card, status=next_status, status_reason=reason)


def unblock(card: Card, reason: str | None, now: datetime) -> Card:
    status = card.status_at(now)
    if status in (CardStatus.LOST, CardStatus.EXPIRED):
        raise ApiError(Code.PERMANENT_BLOCK)
    if status == CardStatus.UNASSIGNED:
        raise ApiError(Code.CARD_NOT_LINKED)
    next_status = _UNBLOCK_TRANSITIONS.get(status)
    if next_status is None:
        raise ApiError(Code.NOT_BLOCKED)
    return msgspec.structs.replace(card, status=next_status, status_reason=reason)


def get_link_error(card: Card, holder: Subscriber, now: datetime) -> ApiError | None:
    """Return the error if the card cannot be linked, otherwise None.

    The error is returned, not raised, so that the PIN check result is committed.
    """
    match card.status_at(now):
        case CardStatus.ACTIVE | CardStatus.BLOCKED:
            return ApiError(Code.CARD_ALREADY_LINKED)
        case CardStatus.LOST | CardStatus.EXPIRED:
            return ApiError(Code.CARD_NOT_ACTIVE)
    match holder.status:
        case SubscriberStatus.BLOCKED:
            return ApiError(Code.SUBSCRIBER_BLOCKED)
        case SubscriberStatus.CLOSED:
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
        type=CardType.PARENT,
        status=CardStatus.ACTIVE,
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
        type=CardType.CHILD,
        pin_holder_id=card.id,
        child_name=child.child_name,
        child_relationship=child.child_relationship,
        daily_limit=money.parse(child.daily_limit, currency),
    )


def require_child_card(card: Card, now: datetime) -> None:
    """Require a child card that can still be used, possibly after it is unblocked."""
    if card.type is None:
        raise ApiError(Code.CARD_NOT_LINKED)
    if card.type != CardType.CHILD:
        raise invalid_field("serial", "must be the serial of a child card")
    if card.status_at(now) in (CardStatus.LOST, CardStatus.EXPIRED):
        raise ApiError(Code.PERMANENT_BLOCK)


def apply_update(card: Card, update: ChildCardUpdate, currency: str) -> Card:
    fields = get_given_fields(update)
    if update.daily_limit is not None:
        fields["daily_limit"] = money.parse(update.daily_limit, currency)
    return msgspec.structs.replace(card, **fields)
