"""General ledger: account kinds and their GL codes, balances, trial balance and journal."""

import re
from enum import StrEnum
from typing import Annotated, Any, Final

import msgspec

from tapgate_client.schemas.fields import IntegerRange, InvalidValueError, ListLength, Rule
from tapgate_client.schemas.pagination import PageQuery
from tapgate_client.schemas.periods import Day, PeriodBound
from tapgate_client.schemas.values import (
    AccountBalance,
    CalendarDate,
    CurrencyCode,
    Example,
    Id,
    Time,
)

#: Maximum number of transactions in one journal file.
MAX_JOURNAL_TRANSACTIONS: Final = 20_000


class AccountKind(StrEnum):
    WALLET = "wallet"
    FLOAT = "float"
    COMMISSION = "commission"
    SETTLEMENT = "settlement"
    CLEARING = "clearing"
    FEES = "fees"
    COMMISSION_EXPENSE = "commission_expense"
    CASH = "cash"
    PAYOUTS_IN_TRANSIT = "payouts_in_transit"
    SUSPENSE = "suspense"


class JournalFormat(StrEnum):
    JSON = "json"
    CSV = "csv"
    PDF = "pdf"
    HLEDGER = "hledger"
    BEANCOUNT = "beancount"


class GlCodeRule(Rule):
    example = "2100"
    max_json_bytes = 64
    _pattern: Final = re.compile(r"[0-9A-Z][0-9A-Z.-]{0,19}", re.ASCII)

    def check(self, value: str) -> str:
        if self._pattern.fullmatch(value) is None:
            raise InvalidValueError(
                "must have 1 to 20 digits, capital letters, dots or hyphens, and start with a "
                "digit or letter"
            )
        return value

    def to_json_schema(self) -> dict[str, Any]:
        return {"pattern": f"^{self._pattern.pattern}$"}


class GlNameRule(Rule):
    example = "Customer wallets"
    max_json_bytes = 1200

    def check(self, value: str) -> str:
        if not 1 <= len(value) <= 100:
            raise InvalidValueError("must have 1 to 100 characters")
        if not value.isprintable() or value.isspace():
            raise InvalidValueError("must be printable text on one line")
        return value

    def to_json_schema(self) -> dict[str, Any]:
        return {"minLength": 1, "maxLength": 100}


GlCodeField = Annotated[str, GlCodeRule()]
GlName = Annotated[str, GlNameRule()]


class GlCode(msgspec.Struct, frozen=True, kw_only=True):
    """GL code for an account kind: its account in the company's chart of accounts."""

    kind: AccountKind
    gl_code: GlCodeField
    name: GlName


class GlCodes(msgspec.Struct, kw_only=True):
    data: list[GlCode]


class GlCodeUpdate(msgspec.Struct, kw_only=True):
    kind: AccountKind
    gl_code: GlCodeField
    name: GlName | None = None


class UpdateGlCodes(msgspec.Struct, kw_only=True):
    data: Annotated[list[GlCodeUpdate], ListLength(1, len(AccountKind))]


class NormalSide(StrEnum):
    """Side on which an account increases."""

    DEBIT = "debit"
    CREDIT = "credit"


class KindBalance(msgspec.Struct, kw_only=True):
    """Total balance for one account kind.

    `balance` is positive on the `normal_side` of the account: debit for assets and expenses, credit
    for liabilities and income. `debit` or `credit` has the same amount without a sign. `account_id`
    is the platform's account, and null for kinds with many accounts.
    """

    kind: AccountKind
    gl_code: GlCodeField
    name: GlName
    account_id: Id | None
    accounts: int
    normal_side: NormalSide
    debit: Annotated[str, Example("0.00")]
    credit: Annotated[str, Example("1250.00")]
    balance: AccountBalance
    currency: CurrencyCode


class LedgerAccounts(msgspec.Struct, kw_only=True):
    data: list[KindBalance]


class TrialBalanceQuery(msgspec.Struct, kw_only=True):
    as_of: PeriodBound | None = None


class TrialBalanceRow(msgspec.Struct, kw_only=True):
    gl_code: GlCodeField
    name: GlName
    debit: Annotated[str, Example("0.00")]
    credit: Annotated[str, Example("1250.00")]


class TrialBalanceTotals(msgspec.Struct, kw_only=True):
    debit: Annotated[str, Example("1250.00")]
    credit: Annotated[str, Example("1250.00")]


class TrialBalance(msgspec.Struct, kw_only=True):
    as_of: Time
    currency: CurrencyCode
    rows: list[TrialBalanceRow]
    totals: TrialBalanceTotals


class JournalQuery(PageQuery, kw_only=True):
    """Either `day`, or `from` and `to` with at most 31 days."""

    day: Day | None = None
    from_: Day | None = msgspec.field(default=None, name="from")
    to: Day | None = None
    format: JournalFormat = JournalFormat.JSON
    limit: Annotated[int, IntegerRange(1, MAX_JOURNAL_TRANSACTIONS)] = MAX_JOURNAL_TRANSACTIONS


class JournalRow(msgspec.Struct, frozen=True, kw_only=True):
    """Debit or credit of one ledger entry. `entry` is the entry's position in the transaction.

    `reference` is the payment's `transaction_ref`, or else the `request_id` or the partner's
    reference, and empty without either.
    """

    date: CalendarDate
    transaction_id: Id
    entry: int
    gl_code: GlCodeField
    account_id: Id
    debit: Annotated[str, Example("500.00")]
    credit: Annotated[str, Example("0.00")]
    description: Annotated[str, Example("Card payment")]
    reference: Annotated[str, Example("A-17")]
