"""The ledger entries of a transaction: which accounts of the books it moved money between."""

from collections.abc import Sequence
from typing import Any

import msgspec

from tapgate import ids, money
from tapgate.store.database import Database
from tapgate.transactions.model import PartyType, Transaction, holder


class EntrySide(msgspec.Struct, frozen=True, kw_only=True):
    """One account of an entry. `kind` is what the account is for, `holder_type` whose it is; the
    platform's own accounts have no `holder_id`. In masked entries all others have neither `name`
    nor `balance_after`."""

    account_id: str
    kind: str
    holder_type: PartyType
    holder_id: str | None
    name: str | None
    balance_after: str | None


class LedgerEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One amount, taken from the account that is debited and given to the one that is credited."""

    position: int
    debit: EntrySide
    credit: EntrySide
    amount: str


class Entries(msgspec.Struct, frozen=True, kw_only=True):
    transaction_id: str
    currency: str
    entries: list[LedgerEntry]
    masked: bool | msgspec.UnsetType = msgspec.UNSET


async def entries_of(database: Database, transaction: Transaction, *, masked: bool) -> Entries:
    """`masked`: a restricted subscriber who is hidden from the caller takes part."""
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
    balances = _balances_before(transaction, rows)
    entries = [_shown(row, balances, transaction.currency) for row in rows]
    return Entries(
        transaction_id=ids.show(ids.TRANSACTION, transaction.id),
        currency=transaction.currency,
        entries=[_mask(entry) for entry in entries] if masked else entries,
        masked=masked or msgspec.UNSET,
    )


def _mask(entry: LedgerEntry) -> LedgerEntry:
    def reduced(side: EntrySide) -> EntrySide:
        if side.holder_id is None:
            return side
        return msgspec.structs.replace(side, name=None, balance_after=None)

    return msgspec.structs.replace(entry, debit=reduced(entry.debit), credit=reduced(entry.credit))


def _balances_before(transaction: Transaction, rows: Sequence[Any]) -> dict[int, int]:
    """What the payer and the payee had, counted back from what the transaction left them.

    Of other accounts it is not known: nobody locks the platform's own to read their balances.
    """
    balances = {
        side.account_id: side.balance
        for side in (transaction.payer, transaction.payee)
        if side is not None and side.balance is not None
    }
    for row in rows:
        _move(balances, row["debit_account"], row["amount"])
        _move(balances, row["credit_account"], -row["amount"])
    return balances


def _shown(row: Any, balances: dict[int, int], currency: str) -> LedgerEntry:
    _move(balances, row["debit_account"], -row["amount"])
    _move(balances, row["credit_account"], row["amount"])
    return LedgerEntry(
        position=row["position"],
        debit=_side(row, "debit", balances, currency),
        credit=_side(row, "credit", balances, currency),
        amount=money.plain(row["amount"], currency),
    )


def _move(balances: dict[int, int], account_id: int, amount: int) -> None:
    if account_id in balances:
        balances[account_id] += amount


def _side(row: Any, name: str, balances: dict[int, int], currency: str) -> EntrySide:
    account_id, kind = row[f"{name}_account"], row[f"{name}_kind"]
    holder_type, holder_id = holder(kind, row[f"{name}_owner"])
    balance = balances.get(account_id)
    return EntrySide(
        account_id=ids.show(ids.ACCOUNT, account_id),
        kind=kind,
        holder_type=holder_type,
        holder_id=holder_id,
        name=row[f"{name}_name"],
        balance_after=None if balance is None else money.plain(balance, currency),
    )
