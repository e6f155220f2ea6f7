"""Loads what reversals and recalls need besides the transaction, for the few batches with them."""

from collections import defaultdict
from itertools import starmap
from typing import Any

from tapgate.ledger import chart
from tapgate.ledger.decisions.state import (
    CashShare,
    PostedTransaction,
    State,
    StoredRecall,
    StoredTransaction,
)
from tapgate.ledger.engine.batch_keys import BatchKeys
from tapgate.runtime.store.combined import Query, fetch_together
from tapgate.runtime.store.id_ranges import add_range

_RECALL_COLUMNS = ", ".join(StoredRecall.__struct_fields__)


async def load(tx: Any, state: State, keys: BatchKeys) -> None:
    """Set the postings of transactions to undo, their recalls and their senders' open recalls."""
    transaction_ids = list(keys.undone_ids)
    senders = [row.from_account for row in _list_undone(state, keys)]
    entries, shares, recalls = await fetch_together(
        tx,
        [
            Query(
                """SELECT transaction_id, debit_account, credit_account, amount FROM entries
                   WHERE transaction_id = ANY ($1::bigint[])
                     AND transaction_id >= $2 AND transaction_id <= $3""",
                add_range(transaction_ids),
            ),
            Query(
                """SELECT transaction_id, matched_id, amount FROM cash_matches
                   WHERE transaction_id = ANY ($1::bigint[])""",
                (transaction_ids,),
            ),
            Query(
                f"""SELECT {_RECALL_COLUMNS} FROM recalls WHERE transaction_id = ANY ($1::bigint[])
                    UNION
                    SELECT {_RECALL_COLUMNS} FROM recalls
                    WHERE status = 'open' AND sender_account = ANY ($2::bigint[])
                    UNION
                    SELECT {_RECALL_COLUMNS} FROM recalls
                    WHERE (scope, request_id) IN (SELECT * FROM unnest($3::text[], $4::text[]))""",
                (
                    transaction_ids,
                    senders,
                    [scope for scope, _ in keys.request_keys],
                    [request_id for _, request_id in keys.request_keys],
                ),
            ),
        ],
    )
    state.recalls = {recall.transaction_id: recall for recall in starmap(StoredRecall, recalls)}
    state.posted = _build_posted(state, entries, shares)


def _list_undone(state: State, keys: BatchKeys) -> list[StoredTransaction]:
    return [row for row in state.transactions.values() if row.id in keys.undone_ids]


def list_cash(state: State, keys: BatchKeys) -> list[StoredTransaction]:
    """Return the cash-ins and cash-outs that the batch may reverse."""
    return [row for row in _list_undone(state, keys) if row.type in chart.CASH_TYPES]


def _build_posted(
    state: State, entries: list[tuple[Any, ...]], shares: list[tuple[Any, ...]]
) -> dict[int, PostedTransaction]:
    platform_accounts = state.rules.platform_accounts
    posted: dict[int, PostedTransaction] = defaultdict(PostedTransaction)
    for transaction_id, debit, credit, amount in entries:
        if credit == platform_accounts[chart.FEES]:
            posted[transaction_id].fee_account = debit
        elif debit == platform_accounts[chart.COMMISSION_EXPENSE]:
            posted[transaction_id].commission = amount
            posted[transaction_id].commission_account = credit
    for transaction_id, matched_id, amount in shares:
        row = posted[transaction_id]
        row.cash_shares = (*row.cash_shares, CashShare(matched_id, amount))
    return dict(posted)
