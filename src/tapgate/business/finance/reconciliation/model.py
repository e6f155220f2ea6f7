"""Bank statements and their lines. No I/O."""

from datetime import date, datetime
from typing import Final

import msgspec

from tapgate.core.records import build_record
from tapgate_client import ids, money
from tapgate_client.schemas.bank_statements import (
    BankStatementFormat,
    BankStatementLine,
    BankStatementRecord,
    LineStatus,
)

_VISIBLE_CHARACTERS: Final = 4


class Statement(msgspec.Struct, frozen=True, kw_only=True):
    id: int
    format: BankStatementFormat
    account: str
    bank_account_id: int | None
    currency: str
    from_day: date
    to_day: date
    opening_balance: int | None
    closing_balance: int | None
    skipped: int
    created_by: int
    created_at: datetime
    matched_at: datetime | None
    lines: int = 0
    matched: int = 0
    unmatched: int = 0
    posted: int = 0
    ignored: int = 0

    @property
    def public_id(self) -> str:
        return ids.encode(ids.BANK_STATEMENT, self.id)


class Line(msgspec.Struct, frozen=True, kw_only=True):
    id: int
    statement_id: int
    day: date
    amount: int
    reference: str | None
    description: str | None
    status: LineStatus
    transaction_id: int | None
    payout_id: int | None
    moved_payout: bool
    #: Payout that the line would return, once a person confirms it.
    proposed_payout_id: int | None
    reason: str | None

    @property
    def public_id(self) -> str:
        return ids.encode(ids.BANK_STATEMENT_LINE, self.id)

    @property
    def text(self) -> str:
        """Reference and description."""
        return f"{self.reference or ''} {self.description or ''}"


def to_record(statement: Statement, *, full: bool = False) -> BankStatementRecord:
    """Return the API record. The account number is complete only with `full`."""
    opening, closing = statement.opening_balance, statement.closing_balance
    return build_record(
        BankStatementRecord,
        statement,
        id=statement.public_id,
        account=statement.account if full else statement.account[-_VISIBLE_CHARACTERS:],
        from_=statement.from_day.isoformat(),
        to=statement.to_day.isoformat(),
        opening_balance=_format(opening, statement.currency),
        closing_balance=_format(closing, statement.currency),
    )


def to_line_record(line: Line, currency: str) -> BankStatementLine:
    proposed = line.proposed_payout_id if line.status == LineStatus.UNMATCHED else None
    return build_record(
        BankStatementLine,
        line,
        id=line.public_id,
        date=line.day.isoformat(),
        amount=money.format_decimal(line.amount, currency),
        currency=currency,
        proposed_payout_id=None if proposed is None else ids.encode(ids.PAYOUT, proposed),
    )


def _format(amount: int | None, currency: str) -> str | None:
    return None if amount is None else money.format_decimal(amount, currency)
