"""Payouts to bank accounts, payout runs and payout schedules."""

from enum import StrEnum
from typing import Annotated, Final

import msgspec

from tapgate_client.schemas.fields import (
    Amount,
    AmountOrZero,
    FreeText,
    IntegerRange,
    Reference,
    TextRule,
)
from tapgate_client.schemas.owners import OwnerIdField
from tapgate_client.schemas.pagination import PageQuery
from tapgate_client.schemas.periods import PeriodBound
from tapgate_client.schemas.transactions import MoneyRequest, Receipt
from tapgate_client.schemas.values import Example, Id, Money, Time, Word

MAX_REFERENCE_LENGTH: Final = 16


class PayoutOwner(StrEnum):
    PROCESSOR = "processor"
    PARTNER = "partner"
    AGENT = "agent"


class PayoutStatus(StrEnum):
    REQUESTED = "requested"
    SUBMITTED = "submitted"
    PAID = "paid"
    RETURNED = "returned"
    CANCELLED = "cancelled"


class PayoutRecord(msgspec.Struct, frozen=True, kw_only=True):
    """Payout. `reference` is printed on the bank statement and identifies the payout there."""

    id: Id
    owner_type: PayoutOwner
    owner_id: Id
    owner_name: str
    bank_account_id: Id
    amount: Money
    fee_amount: Money
    currency: Word
    status: PayoutStatus
    reference: Annotated[Word, Example("PO04BGX6A000009")]
    run_id: Id | None
    transaction_id: Id
    bank_reference: str | None
    return_reason: str | None
    created_at: Time
    updated_at: Time


class NewPayoutRequest(MoneyRequest, kw_only=True):
    """Payout request. Without an amount, everything available above the reserve is paid out."""

    owner_id: Reference
    amount: Amount | None = None
    bank_account_id: Reference | None = None


class BankPayoutReceipt(Receipt, kw_only=True):
    payout_id: Id
    reference: Annotated[Word, Example("PO04BGX6A000009")]
    amount: Money
    fee_amount: Money
    new_balance: Money | None


class PayoutCancellation(MoneyRequest, kw_only=True):
    """Cancellation of a requested payout."""


class PayoutConfirmation(MoneyRequest, kw_only=True):
    bank_reference: Annotated[str, TextRule(35)] | None = None


class PayoutReturn(MoneyRequest, kw_only=True):
    reason: FreeText


class PayoutFilters(PageQuery, kw_only=True):
    owner_id: OwnerIdField | None = None
    status: PayoutStatus | None = None
    run_id: Reference | None = None
    from_: PeriodBound | None = msgspec.field(default=None, name="from")
    to: PeriodBound | None = None


class PayoutInterval(StrEnum):
    MANUAL = "manual"
    DAILY = "daily"
    WEEKLY = "weekly"


class PayoutSchedule(msgspec.Struct, kw_only=True):
    """When a merchant is paid out, and what is kept back.

    A due payout is requested after a day is closed: every day, or for `weekly` after Sunday. Less
    than `minimum` is not paid out. `reserve_percent` of the available balance stays.
    """

    interval: PayoutInterval
    minimum: AmountOrZero = "0"
    reserve_percent: Annotated[int, IntegerRange(0, 100)] = 0


class NewPayoutRun(MoneyRequest, kw_only=True):
    owner_type: PayoutOwner | None = None


class PayoutRunRecord(msgspec.Struct, frozen=True, kw_only=True):
    """Payouts that are sent to the bank together, with their number by status."""

    id: Id
    owner_type: PayoutOwner | None
    payouts: int
    submitted: int
    paid: int
    returned: int
    total: Money
    currency: Word
    bank_account_id: Id
    created_at: Time
    created_by: Id


class PayoutFileFormat(StrEnum):
    PAIN_001 = "pain.001"
    CSV = "csv"


class PayoutFileQuery(msgspec.Struct, kw_only=True):
    format: PayoutFileFormat = PayoutFileFormat.PAIN_001
