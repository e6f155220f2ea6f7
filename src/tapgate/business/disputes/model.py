"""Stored disputes, their public records, and which payments can be disputed."""

from datetime import datetime, timedelta
from typing import Final

import msgspec

from tapgate.core.public_names import get_counterparty_name
from tapgate.core.records import build_record
from tapgate.ledger import chart
from tapgate_client import ids, money
from tapgate_client.errors import ApiError, Code, invalid_field
from tapgate_client.schemas.disputes import DisputeRecord, DisputeStatus

#: A payment can be disputed for this long.
DISPUTE_PERIOD: Final = timedelta(days=60)
#: The merchant must answer within this time.
RESPONSE_PERIOD: Final = timedelta(days=7)

UNDECIDED: Final = (DisputeStatus.OPEN, DisputeStatus.ANSWERED)


class Payment(msgspec.Struct, frozen=True, kw_only=True):
    """Transaction that a cardholder contests."""

    id: int
    type: str
    status: str
    amount: int
    refunded_amount: int
    currency: str
    created_at: datetime
    subscriber_id: int | None
    processor_id: int | None

    @property
    def remaining(self) -> int:
        return self.amount - self.refunded_amount


class Dispute(msgspec.Struct, frozen=True, kw_only=True):
    """Dispute as stored, with money in minor units."""

    id: int
    transaction_id: int
    subscriber_id: int
    processor_id: int
    processor_name: str
    merchant_name: str | None
    amount: int
    currency: str
    reason: str
    description: str | None
    status: DisputeStatus
    merchant_response: str | None
    decision_reason: str | None
    due_at: datetime
    created_at: datetime
    updated_at: datetime
    fingerprint: bytes | None
    subscriber_name: str | None = None

    @property
    def public_id(self) -> str:
        return ids.encode(ids.DISPUTE, self.id)

    @property
    def merchant(self) -> str:
        """The merchant's name as the cardholder sees it."""
        return get_counterparty_name(self.merchant_name, self.processor_name, is_person=False)

    def is_overdue(self, now: datetime) -> bool:
        return self.status == DisputeStatus.OPEN and self.due_at <= now


def to_record(
    dispute: Dispute, now: datetime, *, masked: bool = False, for_staff: bool = False
) -> DisputeRecord:
    """Return the public record. Only staff learn the customer's name."""
    hidden = {"description": None, "merchant_response": None, "masked": True} if masked else {}
    name = None if masked else dispute.subscriber_name
    return build_record(
        DisputeRecord,
        dispute,
        id=dispute.public_id,
        subscriber_name=name if for_staff else msgspec.UNSET,
        amount=money.format_decimal(dispute.amount, dispute.currency),
        overdue=dispute.is_overdue(now),
        **hidden,
    )


def require_disputable(payment: Payment, now: datetime) -> None:
    """Require a completed card payment by a subscriber in the last 60 days."""
    is_paid = payment.status in (chart.COMPLETED, chart.PARTIALLY_REFUNDED)
    if payment.type not in chart.PAYMENT_TYPES or not is_paid or payment.subscriber_id is None:
        raise ApiError(Code.NOT_DISPUTABLE, "Only completed card payments can be disputed.")
    if now >= payment.created_at + DISPUTE_PERIOD:
        raise ApiError(
            Code.NOT_DISPUTABLE,
            f"A payment can be disputed for {DISPUTE_PERIOD.days} days.",
        )


def choose_amount(payment: Payment, amount: str | None) -> int:
    """Return the disputed amount: the given one, or else the rest of the payment."""
    if amount is None:
        return payment.remaining
    minor = money.parse(amount, payment.currency)
    if minor > payment.amount:
        raise invalid_field("amount", "must not be above the payment amount")
    return minor


def require_undecided(dispute: Dispute) -> None:
    if dispute.status not in UNDECIDED:
        raise ApiError(Code.DISPUTE_NOT_OPEN, f"The dispute is {dispute.status}.")
