"""Finance reports: income statement, safeguarding and reconciliation, as JSON, CSV and PDF."""

from enum import StrEnum
from typing import Annotated

import msgspec

from tapgate_client.schemas.bank_statements import BankStatementLine, LineStatus
from tapgate_client.schemas.general_ledger import GlCodeField, GlName, TrialBalanceQuery
from tapgate_client.schemas.periods import Day
from tapgate_client.schemas.values import (
    AccountBalance,
    CalendarDate,
    CurrencyCode,
    Example,
    Money,
)


class ReportFormat(StrEnum):
    JSON = "json"
    CSV = "csv"
    PDF = "pdf"


class ReportFileFormat(StrEnum):
    CSV = "csv"
    PDF = "pdf"


class TrialBalanceFileQuery(TrialBalanceQuery, kw_only=True):
    format: ReportFileFormat = ReportFileFormat.CSV


class IncomeStatementQuery(msgspec.Struct, kw_only=True):
    """Period of an income statement. Default: from the first day of the month until today."""

    from_: Day | None = msgspec.field(default=None, name="from")
    to: Day | None = None
    format: ReportFormat = ReportFormat.JSON


class IncomeStatementRow(msgspec.Struct, frozen=True, kw_only=True):
    """Income, or an expense with a negative amount."""

    gl_code: GlCodeField
    name: GlName
    amount: AccountBalance


class IncomeStatement(msgspec.Struct, frozen=True, kw_only=True):
    from_: CalendarDate = msgspec.field(name="from")
    to: CalendarDate
    currency: CurrencyCode
    rows: list[IncomeStatementRow]
    net: AccountBalance


class SafeguardingQuery(msgspec.Struct, kw_only=True):
    """Day of the report. Default: today, with the balances so far."""

    day: Day | None = None
    format: ReportFormat = ReportFormat.JSON


class ElectronicMoney(msgspec.Struct, frozen=True, kw_only=True):
    """What the platform owes its customers, agents, merchants and partners, by account kind."""

    wallet: Money
    float: Money
    commission: Money
    settlement: Money
    clearing: Money
    total: Money


class AccountClosing(msgspec.Struct, frozen=True, kw_only=True):
    """Closing balance of an account's last statement. `account` has the last four characters."""

    account: Annotated[str, Example("5555")]
    day: CalendarDate
    balance: AccountBalance


class SafeguardingReport(msgspec.Struct, frozen=True, kw_only=True):
    """Money that the platform owes, compared with its money at the bank, at the end of a day.

    `bank_balance` is the closing balance of the last statement up to the day, added up if there are
    several accounts, and null without a statement. `difference` is `bank_balance` minus
    `ledger_cash`.
    """

    day: CalendarDate
    currency: CurrencyCode
    e_money: ElectronicMoney
    in_transit: AccountBalance
    suspense: AccountBalance
    bank_balance: AccountBalance | None
    bank_accounts: list[AccountClosing]
    ledger_cash: AccountBalance
    difference: AccountBalance | None


class ReconciliationQuery(msgspec.Struct, kw_only=True):
    """Period of statement lines. Default: all lines."""

    from_: Day | None = msgspec.field(default=None, name="from")
    to: Day | None = None
    format: ReportFormat = ReportFormat.JSON


class LineTotals(msgspec.Struct, frozen=True, kw_only=True):
    """Number of lines with a status, what they received and paid, and the sum of both."""

    status: LineStatus
    count: int
    received: Money
    paid: Money
    amount: Annotated[Money, Example("-20.00")]


class ReconciliationReport(msgspec.Struct, frozen=True, kw_only=True):
    from_: CalendarDate | None = msgspec.field(name="from")
    to: CalendarDate | None
    currency: CurrencyCode
    data: list[LineTotals]
    oldest_unmatched: BankStatementLine | None
