"""What a statement says: a balance, everything that changed it, and the balance that leaves."""

from collections.abc import Iterable, Sequence
from datetime import date, datetime, time, timedelta
from typing import Annotated, Final, Literal, NamedTuple
from zoneinfo import ZoneInfo

import msgspec

from tapgate import clock, ids, money
from tapgate.edge.fields import Choice, Day, Pin, Text
from tapgate.errors import invalid_field
from tapgate.ledger import chart
from tapgate.transactions.model import TransactionType

LONGEST_DAYS: Final = 366
#: Leaves room on both sides, so that no time zone moves a bound out of what can be counted.
_YEARS: Final = range(1000, 9999)

FEE: Final = "fee"
FileFormat = Literal["csv", "pdf"]

#: How each movement is described: as it goes out, as it comes in.
_WORDS: Final = {
    chart.TRANSFER_P2P: ("Transfer to {}", "Transfer from {}"),
    chart.TRANSFER: ("Transfer to {}", "Transfer from {}"),
    chart.AGENT_CASHIN: ("Cash in at {}", "Cash in at {}"),
    chart.AGENT_CASHOUT: ("Cash out at {}", "Cash out at {}"),
    chart.POS_PAYMENT: ("Card payment to {}", "Card payment from {}"),
    chart.ONLINE_PAYMENT: ("Online payment to {}", "Online payment from {}"),
    chart.PARTNER_FUND: ("Top-up through {}", "Top-up through {}"),
    chart.PROCESSOR_TRANSFER: ("Transfer to {}", "Transfer from {}"),
    chart.REFUND: ("Refund to {}", "Refund from {}"),
}
_OTHER_WORDS: Final = ("Paid to {}", "Received from {}")
_FEE_WORDS: Final = {chart.TRANSFER_P2P: "Transfer fee"}


class StatementRequest(msgspec.Struct, kw_only=True):
    subscriber_id: Text
    from_date: Day
    to_date: Day
    format: Annotated[str, Choice("json", "csv", "pdf", name="StatementFormat")] = "json"
    pin: Pin | None = None


class Period(NamedTuple):
    """Whole days of the platform's calendar, the last one included."""

    first: date
    last: date

    def start(self, zone: ZoneInfo) -> datetime:
        return datetime.combine(self.first, time(), zone)

    def end(self, zone: ZoneInfo) -> datetime:
        """The first moment that no longer belongs to it."""
        return datetime.combine(self.last + timedelta(days=1), time(), zone)


def period_of(request: StatementRequest) -> Period:
    period = Period(date.fromisoformat(request.from_date), date.fromisoformat(request.to_date))
    if period.first.year not in _YEARS:
        raise invalid_field("from_date", "is too far from today")
    if period.last.year not in _YEARS:
        raise invalid_field("to_date", "is too far from today")
    if period.first > period.last:
        raise invalid_field("from_date", "must not be after to_date")
    if (period.last - period.first).days >= LONGEST_DAYS:
        raise invalid_field("to_date", f"must be within {LONGEST_DAYS} days of from_date")
    return period


class Movement(NamedTuple):
    """One amount that came into the wallet (above zero) or went out of it (below)."""

    moved_at: datetime
    transaction_id: int
    transaction_type: str
    is_fee: bool
    amount: int
    counterparty: str  # as much of a name as others may see
    memo: str | None

    @property
    def type(self) -> str:
        return FEE if self.is_fee else self.transaction_type

    @property
    def description(self) -> str:
        if self.is_fee:
            return _FEE_WORDS.get(self.transaction_type, "Fee")
        going_out, coming_in = _WORDS.get(self.transaction_type, _OTHER_WORDS)
        words = coming_in if self.amount > 0 else going_out
        described = words.format(self.counterparty)
        return described if self.memo is None else f"{described}: {self.memo}"


class Line(NamedTuple):
    """A movement and the balance after it."""

    movement: Movement
    balance: int


class Statement(msgspec.Struct, frozen=True, kw_only=True):
    id: int
    subscriber_id: int
    account_id: int
    holder_name: str
    phone_number: str
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

    def lines(self) -> Iterable[Line]:
        balance = self.opening_balance
        for movement in self.movements:
            balance += movement.amount
            yield Line(movement, balance)

    def day(self, moment: datetime) -> str:
        return clock.platform_day(moment, self.zone).isoformat()

    def money(self, minor: int) -> str:
        return money.plain(minor, self.currency)


class Holder(msgspec.Struct, kw_only=True):
    id: str
    name: str


class PeriodRecord(msgspec.Struct, kw_only=True):
    from_: str = msgspec.field(name="from")
    to: str


class EntryRecord(msgspec.Struct, kw_only=True):
    """`date` is the day of the platform's calendar on which the money moved."""

    date: str
    transaction_id: str
    type: TransactionType
    description: str
    debit: str
    credit: str
    balance: str


class StatementRecord(msgspec.Struct, kw_only=True, omit_defaults=True):
    """With `entries` as JSON; with `statement_url` and `expires_at` as a file."""

    statement_id: str
    subscriber: Holder
    currency: str
    period: PeriodRecord
    opening_balance: str
    closing_balance: str
    total_credits: str
    total_debits: str
    transaction_count: int
    generated_at: str
    entries: list[EntryRecord] | None = None
    statement_url: str | None = None
    expires_at: str | None = None


def shown(statement: Statement) -> StatementRecord:
    return StatementRecord(
        statement_id=ids.show(ids.STATEMENT, statement.id),
        subscriber=Holder(
            id=ids.show(ids.SUBSCRIBER, statement.subscriber_id), name=statement.holder_name
        ),
        currency=statement.currency,
        period=PeriodRecord(
            from_=statement.period.first.isoformat(), to=statement.period.last.isoformat()
        ),
        opening_balance=statement.money(statement.opening_balance),
        closing_balance=statement.money(statement.closing_balance),
        total_credits=statement.money(statement.total_credits),
        total_debits=statement.money(statement.total_debits),
        transaction_count=statement.transaction_count,
        generated_at=clock.rfc3339(statement.generated_at),
    )


def shown_entries(statement: Statement) -> list[EntryRecord]:
    return [
        EntryRecord(
            date=statement.day(movement.moved_at),
            transaction_id=ids.show(ids.TRANSACTION, movement.transaction_id),
            type=movement.type,
            description=movement.description,
            debit=statement.money(max(-movement.amount, 0)),
            credit=statement.money(max(movement.amount, 0)),
            balance=statement.money(balance),
        )
        for movement, balance in statement.lines()
    ]
