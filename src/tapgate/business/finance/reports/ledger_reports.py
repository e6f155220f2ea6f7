"""Trial balance and income statement as documents."""

from collections.abc import Mapping
from datetime import date, timedelta
from zoneinfo import ZoneInfo

from tapgate.business.finance.general_ledger import queries
from tapgate.business.finance.general_ledger.model import KindTotals
from tapgate.business.finance.reports.documents import Column, Document
from tapgate.runtime.store.database import Database
from tapgate_client import money
from tapgate_client.errors import invalid_field
from tapgate_client.schemas.finance_reports import IncomeStatement, IncomeStatementRow
from tapgate_client.schemas.general_ledger import AccountKind, GlCode, TrialBalance
from tapgate_client.schemas.periods import parse_period_end

#: Account kinds of the income statement.
RESULT_KINDS = (AccountKind.FEES, AccountKind.COMMISSION_EXPENSE)


def describe_trial_balance(report: TrialBalance) -> Document:
    return Document(
        title="Trial balance",
        period=report.as_of,
        currency=report.currency,
        columns=(
            Column("gl_code", "GL code", 2),
            Column("name", "Name", 5),
            Column("debit", "Debit", 3, is_amount=True),
            Column("credit", "Credit", 3, is_amount=True),
        ),
        rows=[
            *((row.gl_code, row.name, row.debit, row.credit) for row in report.rows),
            ("", "Total", report.totals.debit, report.totals.credit),
        ],
        file_name=f"trial-balance-{report.as_of[:10]}",
    )


async def build_income_statement(
    database: Database, period: tuple[date, date], *, zone: ZoneInfo, currency: str
) -> IncomeStatement:
    """Return the change of income and expenses within a period."""
    first, last = period
    if first > last:
        raise invalid_field("to", "must not be before from")
    codes, end = await queries.load_totals(database, parse_period_end(last.isoformat(), zone))
    before = (first - timedelta(days=1)).isoformat()
    _, start = await queries.load_totals(database, parse_period_end(before, zone))
    rows = [
        (code, _get_balance(end, code) - _get_balance(start, code))
        for code in codes
        if code.kind in RESULT_KINDS
    ]
    return IncomeStatement(
        from_=first.isoformat(),
        to=last.isoformat(),
        currency=currency,
        rows=[
            IncomeStatementRow(
                gl_code=code.gl_code,
                name=code.name,
                amount=money.format_decimal(amount, currency),
            )
            for code, amount in rows
        ],
        net=money.format_decimal(sum(amount for _, amount in rows), currency),
    )


def _get_balance(totals: Mapping[str, KindTotals], code: GlCode) -> int:
    """Return credits minus debits."""
    return totals.get(code.kind, KindTotals()).balance


def describe_income_statement(report: IncomeStatement) -> Document:
    return Document(
        title="Income statement",
        period=f"{report.from_} – {report.to}",
        currency=report.currency,
        columns=(
            Column("gl_code", "GL code", 2),
            Column("name", "Name", 6),
            Column("amount", "Amount", 3, is_amount=True),
        ),
        rows=[
            *((row.gl_code, row.name, row.amount) for row in report.rows),
            ("", "Net income", report.net),
        ],
        file_name=f"income-statement-{report.from_}-to-{report.to}",
    )
