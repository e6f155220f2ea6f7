"""Subscriber records, their public representation, and status transitions."""

from collections.abc import Mapping
from datetime import date, datetime, time, timedelta
from typing import Any, Final
from zoneinfo import ZoneInfo

import msgspec

from tapgate.business.owners.status_transitions import Transition
from tapgate.core.public_names import build_public_name
from tapgate.core.records import build_record, get_given_fields
from tapgate.events.notifications.account_notices import NoticeRecipient
from tapgate.ledger.decisions.allowance import Allowance
from tapgate_client import clock, ids, money
from tapgate_client.errors import ApiError, Code, invalid_field
from tapgate_client.schemas.subscribers import (
    DisclosedSubscriber,
    IdType,
    KycStatus,
    Limits,
    LimitUsage,
    MessagePreference,
    Registration,
    SubscriberCategory,
    SubscriberLanguage,
    SubscriberRecord,
    SubscriberStatus,
    SubscriberUpdate,
)

#: None means unlimited.
MAX_CHILD_CARDS: Final[Mapping[str, int | None]] = {
    SubscriberCategory.STANDARD: 4,
    SubscriberCategory.VIP: 10,
    SubscriberCategory.CORPORATE: None,
}

_MIN_BIRTH_DATE: Final = date(1900, 1, 1)


class Subscriber(msgspec.Struct, frozen=True, kw_only=True):
    """Subscriber as stored, with money in minor units."""

    id: int
    account_id: int
    phone_number: str
    first_name: str
    last_name: str
    currency: str
    created_at: datetime
    updated_at: datetime
    email: str | None = None
    date_of_birth: date | None = None
    address: str | None = None
    id_type: IdType | None = None
    id_number: str | None = None
    category: SubscriberCategory = SubscriberCategory.STANDARD
    language: SubscriberLanguage = SubscriberLanguage.EN
    messages: MessagePreference = MessagePreference.ALL
    kyc_level: int = 1
    kyc_status: KycStatus = KycStatus.NONE
    #: None while the subscriber does not wait for a KYC decision.
    kyc_pending_since: datetime | None = None
    restricted: bool = False
    status: SubscriberStatus = SubscriberStatus.ACTIVE
    status_reason: str | None = None
    balance: int = 0
    held: int = 0
    cards_count: int = 0
    pin_locked_until: datetime | None = None

    @property
    def name(self) -> str:
        return f"{self.first_name} {self.last_name}"

    @property
    def public_name(self) -> str:
        """Return the name disclosed to merchants and other subscribers, such as `Aminata K.`."""
        return build_public_name(self.first_name, self.last_name)

    @property
    def public_id(self) -> str:
        return ids.encode(ids.SUBSCRIBER, self.id)

    @property
    def notice_recipient(self) -> NoticeRecipient:
        return NoticeRecipient(self.phone_number, self.public_name, self.language)


def to_disclosed_record(record: SubscriberRecord, *, hidden: bool) -> DisclosedSubscriber:
    if not hidden:
        return DisclosedSubscriber(**msgspec.structs.asdict(record))
    return DisclosedSubscriber(
        id=record.id,
        restricted=record.restricted,
        status=record.status,
        status_reason=record.status_reason,
    )


def to_record(subscriber: Subscriber, now: datetime) -> SubscriberRecord:
    locked_until = subscriber.pin_locked_until
    return build_record(
        SubscriberRecord,
        subscriber,
        id=subscriber.public_id,
        balance=money.format_decimal(subscriber.balance, subscriber.currency),
        max_child_cards=MAX_CHILD_CARDS[subscriber.category],
        pin_locked_until=(
            None
            if locked_until is None or locked_until <= now
            else clock.format_rfc3339(locked_until)
        ),
    )


def to_limits_record(allowance: Allowance, currency: str, zone: ZoneInfo) -> Limits:
    limits, day = allowance.limits, allowance.day
    tomorrow = day + timedelta(days=1)
    next_month = (day.replace(day=1) + timedelta(days=31)).replace(day=1)

    def build_usage(limit: int, used: int, remaining: int, resets_on: date) -> LimitUsage:
        return LimitUsage(
            limit=money.format_decimal(limit, currency),
            used=money.format_decimal(used, currency),
            remaining=money.format_decimal(remaining, currency),
            resets_at=clock.format_rfc3339(datetime.combine(resets_on, time(), zone)),
        )

    return Limits(
        kyc_level=limits.kyc_level,
        currency=currency,
        per_transaction=money.format_decimal(limits.max_transaction, currency),
        daily=build_usage(
            limits.daily_limit, allowance.day_used, allowance.day_remaining, tomorrow
        ),
        monthly=build_usage(
            limits.monthly_limit, allowance.month_used, allowance.month_remaining, next_month
        ),
        max_balance=money.format_decimal(limits.max_balance, currency),
    )


def build_subscriber(
    registration: Registration, *, id: int, account_id: int, currency: str, now: datetime
) -> Subscriber:
    profile = _get_given_fields(registration)
    del profile["pin"]  # stored separately, and only as a hash
    return Subscriber(
        id=id, account_id=account_id, currency=currency, created_at=now, updated_at=now, **profile
    )


def loses_access(before: Subscriber, after: Subscriber) -> bool:
    """Return whether the subscriber's statement links may no longer be used.

    The subscriber becomes restricted, blocked or closed, or changes the phone number to which the
    link was sent.
    """
    return (
        (after.restricted and not before.restricted)
        or after.status not in (before.status, SubscriberStatus.ACTIVE)
        or after.phone_number != before.phone_number
    )


def is_kyc_decision(before: Subscriber, update: SubscriberUpdate) -> bool:
    """Return whether an update decides on the KYC documents uploaded so far.

    It does if it sets the KYC status to `VERIFIED` or `REJECTED`, or changes the KYC level.
    """
    return update.kyc_status in (KycStatus.VERIFIED, KycStatus.REJECTED) or (
        update.kyc_level is not None and update.kyc_level != before.kyc_level
    )


def apply_update(subscriber: Subscriber, update: SubscriberUpdate, now: datetime) -> Subscriber:
    after = msgspec.structs.replace(subscriber, **_get_given_fields(update))
    since = after.kyc_pending_since
    if after.kyc_status != subscriber.kyc_status:
        since = now if after.kyc_status == KycStatus.PENDING else None
    elif is_kyc_decision(subscriber, update):
        since = None
    return msgspec.structs.replace(after, kyc_pending_since=since)


def _get_given_fields(body: Registration | SubscriberUpdate) -> dict[str, Any]:
    fields = get_given_fields(body)
    if body.date_of_birth is not None:
        fields["date_of_birth"] = date.fromisoformat(body.date_of_birth)
    return fields


def require_plausible_birth_date(subscriber: Subscriber, today: date) -> None:
    """Require that the date of birth, if given, is between 1900 and today.

    A field rule cannot check this, because it does not know the current date.
    """
    birth_date = subscriber.date_of_birth
    if birth_date is not None and not _MIN_BIRTH_DATE <= birth_date <= today:
        raise invalid_field("date_of_birth", "must be a date between 1900 and today")


BLOCK: Final = Transition(
    "blocked", {SubscriberStatus.ACTIVE: SubscriberStatus.BLOCKED}, Code.ALREADY_BLOCKED
)
UNBLOCK: Final = Transition(
    "unblocked", {SubscriberStatus.BLOCKED: SubscriberStatus.ACTIVE}, Code.NOT_BLOCKED
)
CLOSE: Final = Transition(
    "closed",
    dict.fromkeys((SubscriberStatus.ACTIVE, SubscriberStatus.BLOCKED), SubscriberStatus.CLOSED),
    Code.NOT_CLOSABLE,
)


def apply_transition(
    subscriber: Subscriber, transition: Transition[SubscriberStatus], reason: str | None
) -> Subscriber:
    """Return the subscriber with the next status; raise if the transition is not allowed.

    Closing requires an empty wallet without funds on hold.
    """
    require_not_closed(subscriber)
    status = transition.apply(subscriber.status)
    if status == SubscriberStatus.CLOSED and (subscriber.balance or subscriber.held):
        raise ApiError(Code.NOT_CLOSABLE, "The wallet must be empty and have no funds on hold.")
    since = None if status == SubscriberStatus.CLOSED else subscriber.kyc_pending_since
    return msgspec.structs.replace(
        subscriber, status=status, status_reason=reason, kyc_pending_since=since
    )


_STATUS_EVENTS: Final = {
    SubscriberStatus.BLOCKED: "subscriber.blocked",
    SubscriberStatus.ACTIVE: "subscriber.unblocked",
}


def list_events(before: Subscriber, after: Subscriber) -> list[str]:
    """Return the types of the events that a change publishes. Closing publishes no event."""
    events = []
    if after.status != before.status and after.status in _STATUS_EVENTS:
        events.append(_STATUS_EVENTS[after.status])
    if (after.kyc_level, after.kyc_status) != (before.kyc_level, before.kyc_status):
        events.append("subscriber.kyc_changed")
    return events


#: Sentences about the wallet in the notice to the subscriber, by language and new status.
STATUS_TEXTS: Final[Mapping[str, Mapping[str, str]]] = {
    SubscriberLanguage.EN: {
        SubscriberStatus.BLOCKED: "your wallet was blocked",
        SubscriberStatus.ACTIVE: "your wallet was unblocked",
        SubscriberStatus.CLOSED: "your wallet was closed",
    },
    SubscriberLanguage.FR: {
        SubscriberStatus.BLOCKED: "votre portefeuille a été bloqué",
        SubscriberStatus.ACTIVE: "votre portefeuille a été débloqué",
        SubscriberStatus.CLOSED: "votre portefeuille a été fermé",
    },
}


def require_not_closed(subscriber: Subscriber) -> None:
    """Reject changes to a closed subscriber. The status `CLOSED` is final."""
    if subscriber.status == SubscriberStatus.CLOSED:
        raise ApiError(Code.NOT_CLOSABLE, "The subscriber is closed.")
