"""Batch sizes per phase, and ledger verification at the end.

Batch sizes are derived from the stored transactions. Transactions of one batch have the same
timestamp, and their identifiers contain the writing process's slot.
"""

from datetime import datetime

import asyncpg

from bench.payments.results import Batches, Books
from tapgate.core.id_generator import first_id_at
from tapgate.ledger.verification.verify import verify

_SELECT_BATCHES = """
    SELECT count(*) AS batches, coalesce(sum(size), 0)::bigint AS transactions,
           max(size) AS largest,
           percentile_disc(0.5) WITHIN GROUP (ORDER BY size) AS median
    FROM (SELECT count(*) AS size FROM transactions WHERE id >= $1
          GROUP BY created_at, (id >> 12) & 1023) AS batch"""


async def get_batches_since(connection: asyncpg.Connection, moment: datetime) -> Batches | None:
    """Return the batch sizes since a time, or None if no transactions were written."""
    row = await connection.fetchrow(_SELECT_BATCHES, first_id_at(moment))
    if not row["batches"]:
        return None
    return Batches(
        count=row["batches"],
        mean=round(row["transactions"] / row["batches"], 1),
        median=row["median"],
        largest=row["largest"],
    )


async def verify_books(connection: asyncpg.Connection, *, approved: int) -> Books:
    """Check that all invariants hold and that `approved` payments and transfers are completed."""
    proof = await verify(connection)
    completed = await connection.fetchval(
        """SELECT count(*) FROM transactions
           WHERE status = 'completed' AND type IN ('pos_payment', 'transfer_p2p')"""
    )
    return Books(
        hold=proof.is_valid and completed == approved,
        claims=len(proof.findings),
        transactions=proof.transactions,
        entries=proof.entries,
        approved=approved,
        completed=completed,
    )


async def require_durable(connection: asyncpg.Connection) -> None:
    """Raise an error if commits are not durable, since the results would be meaningless."""
    for name in ("fsync", "synchronous_commit", "full_page_writes"):
        if await connection.fetchval("SELECT current_setting($1)", name) != "on":
            raise RuntimeError(f"{name} is off")
