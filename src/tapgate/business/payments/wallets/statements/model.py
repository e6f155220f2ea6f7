"""Statement content: the opening balance, all movements, and the closing balance."""

from collections.abc import Iterable, Sequence
from datetime import date, datetime, time, timedelta
from typing import Any, Final, NamedTuple
from zoneinfo import ZoneInfo

import msgspec

from tapgate.ledger import chart
from tapgate_client import clock, ids, money
from tapgate_client.errors import invalid_field
from tapgate_client.schemas.wallets import (
    STATEMENT_FEE_TYPE,
    EntryRecord,
    OwnerStatementRecord,
    StatementHolder,
    StatementPeriod,
    StatementRecord,
    StatementRequest,
)

MAX_PERIOD_DAYS: Final = 366
#: Leaves a margin, so that no time zone moves a period bound out of the `datetime` range.
_ALLOWED_YEARS: Final = range(1000, 9999)

#: transaction type -> debit description, credit description
_DESCRIPTIONS: Final[dict[str, tuple[str, str]]] = {
    chart.TRANSFER_P2P: ("Transfer to {}", "Transfer from {}"),
    chart.TRANSFER: ("Transfer to {}", "Transfer from {}"),
    chart.AGENT_CASHIN: ("Cash-in at {}", "Cash-in at {}"),
    chart.AGENT_CASHOUT: ("Cash-out at {}", "Cash-out at {}"),
    chart.POS_PAYMENT: ("Card payment to {}", "Card payment from {}"),
    chart.ONLINE_PAYMENT: ("Online payment to {}", "Online payment from {}"),
    chart.PARTNER_FUND: ("Top-up from {}", "Top-up from {}"),
    chart.PROCESSOR_TRANSFER: ("Transfer to {}", "Transfer from {}"),
    chart.BATCH_CREDIT: ("Payment to {}", "Payment from {}"),
    chart.REFUND: ("Refund to {}", "Refund from {}"),
    chart.REVERSAL: ("Reversal, returned to {}", "Reversal, returned by {}"),
    chart.PAYOUT: ("Payout to the bank account", "Payout"),
    chart.PAYOUT_RETURN: ("Payout return", "Returned payout"),
}
_DEFAULT_DESCRIPTIONS: Final = ("Payment to {}", "Payment from {}")
_FEE_DESCRIPTIONS: Final[dict[str, str]] = {chart.TRANSFER_P2P: "Transfer fee"}


class Period(NamedTuple):
    """Range of whole days in the platform's time zone, including the last day."""

    first: date
    last: date

    def start(self, zone: ZoneInfo) -> datetime:
        return datetime.combine(self.first, time(), zone)

    def end(self, zone: ZoneInfo) -> datetime:
        """Return the exclusive end of the period."""
        return datetime.combine(self.last + timedelta(days=1), time(), zone)


def parse_period(request: StatementRequest) -> Period:
    return build_period(request.from_date, request.to_date, fields=("from_date", "to_date"))


def build_period(first: str, last: str, *, fields: tuple[str, str]) -> Period:
    """Return the period between two dates. `fields` are their names in the request."""
    period = Period(date.fromisoformat(first), date.fromisoformat(last))
    for field, day in zip(fields, period, strict=True):
        if day.year not in _ALLOWED_YEARS:
            raise invalid_field(field, "must be in a year from 1000 to 9998")
    if period.first > period.last:
        raise invalid_field(fields[0], f"must not be after {fields[1]}")
    if (period.last - period.first).days >= MAX_PERIOD_DAYS:
        raise invalid_field(
            fields[1], f"must be at most {MAX_PERIOD_DAYS - 1} days after {fields[0]}"
        )
    return period


class Movement(NamedTuple):
    """One amount credited to the wallet (positive) or debited from it (negative)."""

    moved_at: datetime
    transaction_id: int
    transaction_type: str
    is_fee: bool
    amount: int
    counterparty: str  # cleaned public name
    memo: str | None  # without links

    @property
    def type(self) -> str:
        return STATEMENT_FEE_TYPE if self.is_fee else self.transaction_type

    @property
    def description(self) -> str:
        if self.is_fee:
            return _FEE_DESCRIPTIONS.get(self.transaction_type, "Fee")
        debit_template, credit_template = _DESCRIPTIONS.get(
            self.transaction_type, _DEFAULT_DESCRIPTIONS
        )
        template = credit_template if self.amount > 0 else debit_template
        text = template.format(self.counterparty)
        return text if self.memo is None else f"{text}: {self.memo}"


class StatementLine(NamedTuple):
    """A movement and the balance after it."""

    movement: Movement
    balance: int


class Statement(msgspec.Struct, frozen=True, kw_only=True):
    id: int
    holder_id: str  # public ID of a subscriber or an owner
    account_id: int
    holder_name: str
    phone_number: str | None  # None for an owner
    currency: str
    zone: ZoneInfo
    period: Period
    opening_balance: int
    movements: Sequence[Movement]
    generated_at: datetime

    @property
    def total_credits(self) -> int:
        return sum(movement.amount for movement in self.movements if movement.amount > 0)

    @property
    def total_debits(self) -> int:
        return -sum(movement.amount for movement in self.movements if movement.amount < 0)

    @property
    def closing_balance(self) -> int:
        return self.opening_balance + self.total_credits - self.total_debits

    @property
    def transaction_count(self) -> int:
        return len({movement.transaction_id for movement in self.movements})

    def iter_lines(self) -> Iterable[StatementLine]:
        balance = self.opening_balance
        for movement in self.movements:
            balance += movement.amount
            yield StatementLine(movement, balance)

    def format_day(self, moment: datetime) -> str:
        return clock.get_platform_day(moment, self.zone).isoformat()

    def format_time(self, moment: datetime) -> str:
        """Return the time of day in the platform's time zone."""
        return moment.astimezone(self.zone).time().isoformat("seconds")

    def format_amount(self, minor: int) -> str:
        return money.format_decimal(minor, self.currency)


def to_record(statement: Statement) -> StatementRecord:
    holder = StatementHolder(id=statement.holder_id, name=statement.holder_name)
    return StatementRecord(subscriber=holder, **_get_fields(statement))


def to_owner_record(statement: Statement) -> OwnerStatementRecord:
    holder = StatementHolder(id=statement.holder_id, name=statement.holder_name)
    return OwnerStatementRecord(owner=holder, **_get_fields(statement))


def _get_fields(statement: Statement) -> dict[str, Any]:
    return {
        "statement_id": ids.encode(ids.STATEMENT, statement.id),
        "currency": statement.currency,
        "period": StatementPeriod(
            from_=statement.period.first.isoformat(), to=statement.period.last.isoformat()
        ),
        "opening_balance": statement.format_amount(statement.opening_balance),
        "closing_balance": statement.format_amount(statement.closing_balance),
        "total_credits": statement.format_amount(statement.total_credits),
        "total_debits": statement.format_amount(statement.total_debits),
        "transaction_count": statement.transaction_count,
        "generated_at": clock.format_rfc3339(statement.generated_at),
    }


def to_entry_records(statement: Statement) -> list[EntryRecord]:
    return [
        EntryRecord(
            date=statement.format_day(movement.moved_at),
            transaction_id=ids.encode(ids.TRANSACTION, movement.transaction_id),
            type=movement.type,
            description=movement.description,
            debit=statement.format_amount(max(-movement.amount, 0)),
            credit=statement.format_amount(max(movement.amount, 0)),
            balance=statement.format_amount(balance),
        )
        for movement, balance in statement.iter_lines()
    ]
