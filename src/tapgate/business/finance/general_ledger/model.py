"""Converts balances in minor units to general ledger records."""

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from tapgate.ledger import chart
from tapgate_client import ids, money
from tapgate_client.schemas.general_ledger import (
    GlCode,
    KindBalance,
    NormalSide,
    TrialBalance,
    TrialBalanceRow,
    TrialBalanceTotals,
)

#: Top-level accounts of accounting programs, by account kind.
ROOTS: Final[Mapping[str, str]] = {
    chart.WALLET: "Liabilities",
    chart.FLOAT: "Liabilities",
    chart.COMMISSION: "Liabilities",
    chart.SETTLEMENT: "Liabilities",
    chart.CLEARING: "Liabilities",
    chart.FEES: "Income",
    chart.COMMISSION_EXPENSE: "Expenses",
    chart.CASH: "Assets",
    chart.PAYOUTS_IN_TRANSIT: "Liabilities",
    chart.SUSPENSE: "Liabilities",
}


class KindTotals(NamedTuple):
    """Number of accounts of one kind, and their balances: credits minus debits."""

    accounts: int = 0
    balance: int = 0
    platform_account_id: int | None = None


def get_normal_side(kind: str) -> NormalSide:
    is_debit = ROOTS[kind] in ("Assets", "Expenses")
    return NormalSide.DEBIT if is_debit else NormalSide.CREDIT


def build_kind_balances(
    codes: Sequence[GlCode], totals: Mapping[str, KindTotals], currency: str
) -> list[KindBalance]:
    records = []
    for code in codes:
        accounts, balance, account_id = totals.get(code.kind, KindTotals())
        debit, credit = _split_sides(balance, currency)
        normal_side = get_normal_side(code.kind)
        signed = balance if normal_side == NormalSide.CREDIT else -balance
        records.append(
            KindBalance(
                kind=code.kind,
                gl_code=code.gl_code,
                name=code.name,
                account_id=None if account_id is None else ids.encode(ids.ACCOUNT, account_id),
                accounts=accounts,
                normal_side=normal_side,
                debit=debit,
                credit=credit,
                balance=money.format_decimal(signed, currency),
                currency=currency,
            )
        )
    return records


def build_trial_balance(
    codes: Sequence[GlCode], totals: Mapping[str, KindTotals], as_of: str, currency: str
) -> TrialBalance:
    balances = [totals.get(code.kind, KindTotals()).balance for code in codes]
    rows = []
    for code, balance in zip(codes, balances, strict=True):
        debit, credit = _split_sides(balance, currency)
        rows.append(
            TrialBalanceRow(gl_code=code.gl_code, name=code.name, debit=debit, credit=credit)
        )
    return TrialBalance(
        as_of=as_of,
        currency=currency,
        rows=rows,
        totals=TrialBalanceTotals(
            debit=money.format_decimal(-sum(min(0, item) for item in balances), currency),
            credit=money.format_decimal(sum(max(0, item) for item in balances), currency),
        ),
    )


def _split_sides(balance: int, currency: str) -> tuple[str, str]:
    """Return a balance as debit and credit, one of which is zero."""
    return (
        money.format_decimal(max(0, -balance), currency),
        money.format_decimal(max(0, balance), currency),
    )
