"""Bank statements, their lines, and column mappings for CSV files."""

from enum import StrEnum
from typing import Annotated, Final

import msgspec

from tapgate_client.errors import invalid_field
from tapgate_client.schemas.common import build_missing_field_error
from tapgate_client.schemas.fields import ListLength, ReasonText, Reference, TextRule
from tapgate_client.schemas.pagination import PageQuery
from tapgate_client.schemas.transactions import MoneyRequest
from tapgate_client.schemas.values import CalendarDate, CurrencyCode, Example, Id, Money, Time

#: Maximum number of lines in one statement.
MAX_STATEMENT_LINES: Final = 50_000


class BankStatementFormat(StrEnum):
    CAMT_053 = "camt.053"
    MT940 = "mt940"
    CSV = "csv"


class LineStatus(StrEnum):
    UNMATCHED = "unmatched"
    MATCHED = "matched"
    POSTED = "posted"
    IGNORED = "ignored"


class BankStatementQuery(msgspec.Struct, kw_only=True):
    """Format and account of a statement. Without a format, the content tells it."""

    format: BankStatementFormat | None = None
    bank_account_id: Reference | None = None


class BankStatementRecord(msgspec.Struct, frozen=True, kw_only=True):
    """Bank statement with the number of its lines by status.

    `account` is the account number, complete only in the record of one statement. In lists, it has
    the last four characters. `bank_account_id` is the platform's bank account with this number, if
    there is one. `skipped` lines were known from an earlier statement and are not stored again.
    """

    id: Id
    format: BankStatementFormat
    account: Annotated[str, Example("GB33BUKB20201555555555")]
    bank_account_id: Id | None
    currency: CurrencyCode
    from_: CalendarDate = msgspec.field(name="from")
    to: CalendarDate
    opening_balance: Annotated[Money, Example("12000.00")] | None
    closing_balance: Annotated[Money, Example("12500.00")] | None
    lines: int
    matched: int
    unmatched: int
    posted: int
    ignored: int
    skipped: int
    created_by: Id
    created_at: Time


class BankStatementLine(msgspec.Struct, frozen=True, kw_only=True):
    """Booked item on a bank statement. A positive `amount` was received.

    `transaction_id` is the transaction that moved the platform's cash: the deposit, the payout's
    payment or return, or the posting to `suspense`. `proposed_payout_id` is the payout that an
    unmatched line would return, if an approval rule for `reversals` kept the import from doing so.
    """

    id: Id
    statement_id: Id
    date: CalendarDate
    amount: Annotated[Money, Example("-500.00")]
    currency: CurrencyCode
    reference: Annotated[str, Example("PO04BGX6A000009")] | None
    description: Annotated[str, Example("Payout Kamara Stores")] | None
    status: LineStatus
    transaction_id: Id | None
    payout_id: Id | None
    proposed_payout_id: Id | None
    reason: str | None


class BankStatementFilters(PageQuery, kw_only=True):
    """Bank statement filters. `unmatched` selects statements with or without unmatched lines."""

    bank_account_id: Reference | None = None
    unmatched: bool | None = None


class BankStatementLineFilters(PageQuery, kw_only=True):
    status: LineStatus | None = None
    statement_id: Reference | None = None


class LineMatch(MoneyRequest, kw_only=True):
    """The transaction or the payout that a line belongs to: one of both."""

    OMITTED_IN_EXAMPLES = ("transaction_id",)

    transaction_id: Reference | None = None
    payout_id: Reference | None = None

    def __post_init__(self) -> None:
        if self.transaction_id is None and self.payout_id is None:
            raise build_missing_field_error("transaction_id")
        if self.transaction_id is not None and self.payout_id is not None:
            raise invalid_field("payout_id", "must not be combined with transaction_id")


class LinePosting(MoneyRequest, kw_only=True):
    reason: ReasonText


class LineIgnoring(MoneyRequest, kw_only=True):
    reason: ReasonText


class LineUnmatching(MoneyRequest, kw_only=True):
    """Return of a line to `unmatched`."""


class MatchCandidate(msgspec.Struct, frozen=True, kw_only=True):
    """Payout or transaction with a line's amount. Exactly one of the IDs is set."""

    payout_id: Id | None
    transaction_id: Id | None
    name: Annotated[str, Example("Kamara Stores")]
    amount: Money
    date: CalendarDate
    reference: Annotated[str, Example("PO04BGX6A000009")] | None


class MatchCandidates(msgspec.Struct, frozen=True, kw_only=True):
    """A line, and what it could be matched with: first what its text names, then by date."""

    line: BankStatementLine
    data: list[MatchCandidate]


class CsvDateFormat(StrEnum):
    ISO = "YYYY-MM-DD"
    DAY_FIRST_DOTS = "DD.MM.YYYY"
    DAY_FIRST_SLASHES = "DD/MM/YYYY"
    DAY_FIRST_HYPHENS = "DD-MM-YYYY"
    MONTH_FIRST = "MM/DD/YYYY"
    COMPACT = "YYYYMMDD"


class CsvDecimalSeparator(StrEnum):
    POINT = "."
    COMMA = ","


ColumnName = Annotated[str, TextRule(100, example="Booking date")]


class CsvMapping(msgspec.Struct, kw_only=True):
    """Column names in a bank's CSV files.

    A file has one signed `amount` column, or a `debit` and a `credit` column. The texts of several
    `description` columns are joined.
    """

    EXAMPLES = {"amount": "Amount", "reference": "Your reference", "description": ["Details"]}
    OMITTED_IN_EXAMPLES = ("debit", "credit")

    date: ColumnName
    amount: ColumnName | None = None
    debit: ColumnName | None = None
    credit: ColumnName | None = None
    reference: ColumnName | None = None
    description: Annotated[list[ColumnName], ListLength(0, 5)] = []
    date_format: CsvDateFormat = CsvDateFormat.ISO
    decimal_separator: CsvDecimalSeparator = CsvDecimalSeparator.POINT

    def __post_init__(self) -> None:
        if self.amount is None and (self.debit is None or self.credit is None):
            raise build_missing_field_error("amount")
        if self.amount is not None and (self.debit is not None or self.credit is not None):
            raise invalid_field("amount", "must not be combined with debit and credit")
