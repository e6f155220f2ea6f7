"""Safeguarding report: what the platform owes, and its money at the bank."""

from collections.abc import Sequence
from datetime import date
from typing import Any, Final
from zoneinfo import ZoneInfo

from tapgate.business.finance.general_ledger import queries as general_ledger
from tapgate.business.finance.general_ledger.model import KindTotals
from tapgate.business.finance.reports.documents import Column, Document
from tapgate.ledger import chart
from tapgate.runtime.store.database import Database
from tapgate_client import money
from tapgate_client.schemas.finance_reports import (
    AccountClosing,
    ElectronicMoney,
    SafeguardingReport,
)
from tapgate_client.schemas.periods import parse_period_end

_E_MONEY_KINDS: Final = (
    chart.WALLET, chart.FLOAT, chart.COMMISSION, chart.SETTLEMENT, chart.CLEARING,
)  # fmt: skip
_LAST_BALANCES: Final = """
    SELECT DISTINCT ON (account) right(account, 4) AS account, to_day, closing_balance
    FROM bank_statements WHERE closing_balance IS NOT NULL AND to_day <= $1
    ORDER BY account, to_day DESC, id DESC"""


async def build_report(
    database: Database, day: date, *, zone: ZoneInfo, currency: str
) -> SafeguardingReport:
    end = parse_period_end(day.isoformat(), zone)
    _, totals = await general_ledger.load_totals(database, end)
    closings = await database.fetch(_LAST_BALANCES, day)

    def get(kind: str) -> int:
        """Return credits minus debits."""
        return totals.get(kind, KindTotals()).balance

    def show(amount: int) -> str:
        return money.format_decimal(amount, currency)

    cash = -get(chart.CASH)
    bank = sum(row["closing_balance"] for row in closings) if closings else None
    e_money = {kind: get(kind) for kind in _E_MONEY_KINDS}
    return SafeguardingReport(
        day=day.isoformat(),
        currency=currency,
        e_money=ElectronicMoney(
            **{kind: show(amount) for kind, amount in e_money.items()},
            total=show(sum(e_money.values())),
        ),
        in_transit=show(get(chart.PAYOUTS_IN_TRANSIT)),
        suspense=show(get(chart.SUSPENSE)),
        bank_balance=None if bank is None else show(bank),
        bank_accounts=_list_closings(closings, currency),
        ledger_cash=show(cash),
        difference=None if bank is None else show(bank - cash),
    )


def _list_closings(closings: Sequence[Any], currency: str) -> list[AccountClosing]:
    return [
        AccountClosing(
            account=row["account"],
            day=row["to_day"].isoformat(),
            balance=money.format_decimal(row["closing_balance"], currency),
        )
        for row in closings
    ]


def describe(report: SafeguardingReport) -> Document:
    e_money = report.e_money
    rows = [
        ("Customer wallets", e_money.wallet),
        ("Agent float", e_money.float),
        ("Agent commission", e_money.commission),
        ("Merchant settlement", e_money.settlement),
        ("Partner clearing", e_money.clearing),
        ("Electronic money", e_money.total),
        ("Payouts in transit", report.in_transit),
        ("Suspense", report.suspense),
        *(
            (f"Bank account {each.account}, statement until {each.day}", each.balance)
            for each in report.bank_accounts
        ),
        ("Bank balance", report.bank_balance or ""),
        ("Cash in the ledger", report.ledger_cash),
        ("Difference", report.difference or ""),
    ]
    return Document(
        title="Safeguarding report",
        period=report.day,
        currency=report.currency,
        columns=(Column("item", "Item", 6), Column("amount", "Amount", 3, is_amount=True)),
        rows=rows,
        bold_rows=(5, -3, -1),
        file_name=f"safeguarding-{report.day}",
    )
