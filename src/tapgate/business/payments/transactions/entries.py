"""A transaction's ledger entries: the accounts that it debited and credited."""

from collections.abc import Sequence
from typing import Any

import msgspec

from tapgate.business.payments.transactions.model import Transaction, get_holder
from tapgate.runtime.store.database import Database
from tapgate_client import ids, money
from tapgate_client.schemas.transactions import EntrySide, LedgerEntry, TransactionEntries


async def get_entries(
    database: Database, transaction: Transaction, *, masked: bool
) -> TransactionEntries:
    """Return the entries; `masked` hides names and balances, except for platform accounts."""
    rows = await database.fetch(
        """SELECT entry.position, entry.amount,
                  debit.id AS debit_account, debit.kind AS debit_kind,
                  debit.owner_id AS debit_owner, debit.holder_name AS debit_name,
                  credit.id AS credit_account, credit.kind AS credit_kind,
                  credit.owner_id AS credit_owner, credit.holder_name AS credit_name
           FROM entries entry
           JOIN accounts debit ON debit.id = entry.debit_account
           JOIN accounts credit ON credit.id = entry.credit_account
           WHERE entry.transaction_id = $1 ORDER BY entry.position""",
        transaction.id,
    )
    balances = _calculate_balances_before(transaction, rows)
    entries = [_to_record(row, balances, transaction.currency) for row in rows]
    return TransactionEntries(
        transaction_id=ids.encode(ids.TRANSACTION, transaction.id),
        currency=transaction.currency,
        entries=[_mask_entry(entry) for entry in entries] if masked else entries,
        masked=masked or msgspec.UNSET,
    )


def _mask_entry(entry: LedgerEntry) -> LedgerEntry:
    def mask_side(side: EntrySide) -> EntrySide:
        if side.holder_id is None:
            return side
        return msgspec.structs.replace(side, name=None, balance_after=None)

    return msgspec.structs.replace(
        entry, debit=mask_side(entry.debit), credit=mask_side(entry.credit)
    )


def _calculate_balances_before(transaction: Transaction, rows: Sequence[Any]) -> dict[int, int]:
    """Return the balances of payer and payee before the transaction, by account ID.

    They are calculated from the balances after the transaction, which are stored only for the payer
    and the payee.
    """
    balances = {
        side.account_id: side.balance
        for side in (transaction.payer, transaction.payee)
        if side is not None and side.balance is not None
    }
    for row in rows:
        _adjust_balance(balances, row["debit_account"], row["amount"])
        _adjust_balance(balances, row["credit_account"], -row["amount"])
    return balances


def _to_record(row: Any, balances: dict[int, int], currency: str) -> LedgerEntry:
    _adjust_balance(balances, row["debit_account"], -row["amount"])
    _adjust_balance(balances, row["credit_account"], row["amount"])
    return LedgerEntry(
        position=row["position"],
        debit=_build_side(row, "debit", balances, currency),
        credit=_build_side(row, "credit", balances, currency),
        amount=money.format_decimal(row["amount"], currency),
    )


def _adjust_balance(balances: dict[int, int], account_id: int, amount: int) -> None:
    if account_id in balances:
        balances[account_id] += amount


def _build_side(row: Any, name: str, balances: dict[int, int], currency: str) -> EntrySide:
    account_id, kind = row[f"{name}_account"], row[f"{name}_kind"]
    holder_type, holder_id = get_holder(kind, row[f"{name}_owner"])
    balance = balances.get(account_id)
    return EntrySide(
        account_id=ids.encode(ids.ACCOUNT, account_id),
        kind=kind,
        holder_type=holder_type,
        holder_id=holder_id,
        name=row[f"{name}_name"],
        balance_after=None if balance is None else money.format_decimal(balance, currency),
    )
