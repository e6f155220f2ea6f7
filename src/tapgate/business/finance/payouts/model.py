"""Payouts, payout runs and schedules. No I/O."""

from datetime import date, datetime
from typing import Final

import msgspec

from tapgate.business.finance.bank_accounts.model import encode_owner_id
from tapgate.core.records import build_record
from tapgate.ledger import chart
from tapgate.ledger.commands import Party
from tapgate_client import ids, money
from tapgate_client.schemas.payouts import (
    PayoutInterval,
    PayoutOwner,
    PayoutRecord,
    PayoutRunRecord,
    PayoutSchedule,
    PayoutStatus,
)

#: Account from which an owner is paid out.
_ACCOUNT_KINDS: Final = {
    PayoutOwner.PROCESSOR: chart.SETTLEMENT,
    PayoutOwner.PARTNER: chart.CLEARING,
    PayoutOwner.AGENT: chart.FLOAT,
}


class Payout(msgspec.Struct, frozen=True, kw_only=True):
    id: int
    owner_type: PayoutOwner
    owner_id: int
    bank_account_id: int
    amount: int
    fee_amount: int
    currency: str
    status: PayoutStatus
    reference: str
    run_id: int | None
    transaction_id: int
    bank_reference: str | None
    return_reason: str | None
    created_at: datetime
    updated_at: datetime
    owner_name: str


class PayoutRun(msgspec.Struct, frozen=True, kw_only=True):
    id: int
    owner_type: PayoutOwner | None
    bank_account_id: int
    payouts: int
    submitted: int
    paid: int
    returned: int
    total: int
    currency: str
    created_by: int
    created_at: datetime


class StoredSchedule(msgspec.Struct, frozen=True, kw_only=True):
    processor_id: int
    interval: PayoutInterval
    minimum: int
    reserve_percent: int
    updated_by: int
    last_day: date | None


def build_owner_party(owner_type: str, owner_id: int) -> Party:
    return Party("owner", owner_id, _ACCOUNT_KINDS[PayoutOwner(owner_type)])


def build_reference(payout_id: int) -> str:
    """Return the reference on the bank statement: 15 letters and digits."""
    return f"PO{ids.encode('', payout_id).upper()}"


def to_record(payout: Payout) -> PayoutRecord:
    return build_record(
        PayoutRecord,
        payout,
        id=ids.encode(ids.PAYOUT, payout.id),
        owner_id=encode_owner_id(payout.owner_type, payout.owner_id),
        bank_account_id=ids.encode(ids.BANK_ACCOUNT, payout.bank_account_id),
        amount=money.format_decimal(payout.amount, payout.currency),
        fee_amount=money.format_decimal(payout.fee_amount, payout.currency),
        run_id=payout.run_id and ids.encode(ids.PAYOUT_RUN, payout.run_id),
    )


def to_record_at(payout: Payout, status: PayoutStatus, moment: datetime) -> PayoutRecord:
    """Return the record as it was when the payout got a status."""
    reason = payout.return_reason if status == PayoutStatus.RETURNED else None
    return to_record(
        msgspec.structs.replace(payout, status=status, return_reason=reason, updated_at=moment)
    )


def to_run_record(run: PayoutRun) -> PayoutRunRecord:
    return build_record(
        PayoutRunRecord,
        run,
        id=ids.encode(ids.PAYOUT_RUN, run.id),
        bank_account_id=ids.encode(ids.BANK_ACCOUNT, run.bank_account_id),
        total=money.format_decimal(run.total, run.currency),
        created_by=ids.encode(ids.ADMIN, run.created_by),
    )


def to_schedule(schedule: StoredSchedule | None, currency: str) -> PayoutSchedule:
    if schedule is None:
        zero = money.format_decimal(0, currency)
        return PayoutSchedule(interval=PayoutInterval.MANUAL, minimum=zero)
    return PayoutSchedule(
        interval=schedule.interval,
        minimum=money.format_decimal(schedule.minimum, currency),
        reserve_percent=schedule.reserve_percent,
    )
