"""Records related to a transaction: the original payment, refunds and replays."""

from typing import Final

from tapgate import clock
from tapgate.api.request_context import RequestContext
from tapgate.auth.disclosure import find_hidden_accounts
from tapgate.schemas.transactions import ReplaySummary, TransactionChain
from tapgate.store.database import Database
from tapgate.transactions import queries
from tapgate.transactions.model import Transaction, to_record

#: Bounds the response: a payment can be refunded one minor unit at a time.
MAX_REFUNDS: Final = 1_000


async def get_chain(request: RequestContext, transaction: Transaction) -> TransactionChain:
    """Return the related records for an admin. Those of hidden subscribers are masked."""
    database, original_id = request.services.database, transaction.original_id
    original = None if original_id is None else await queries.get(database, original_id)
    refunds = await queries.list_refunds(database, transaction.id, limit=MAX_REFUNDS)
    related = refunds if original is None else [original, *refunds]
    hidden = await find_hidden_accounts(
        database,
        request.caller,
        request.services.clock(),
        {account for item in related for account in item.account_ids},
    )
    return TransactionChain(
        original=None if original is None else to_record(original, full=True, hidden=hidden),
        refunds=[to_record(refund, full=True, hidden=hidden) for refund in refunds],
        replays=await _get_replays(database, transaction.id),
    )


async def _get_replays(database: Database, transaction_id: int) -> ReplaySummary:
    row = await database.fetchrow(
        "SELECT count, last_at FROM replays WHERE transaction_id = $1", transaction_id
    )
    if row is None:
        return ReplaySummary(count=0, last_at=None)
    return ReplaySummary(count=row["count"], last_at=clock.format_rfc3339(row["last_at"]))
