"""Durable work queue in a table, with leases and retries.

The table has `id, status ('pending', ...), attempts, next_attempt_at`. A claim leases due rows by
moving their `next_attempt_at` to the end of the lease. A claim is one short statement, and no
database transaction is open during the work. If the process is killed, the row is due again when
the lease expires.
"""

import random
from collections.abc import Sequence
from datetime import datetime, timedelta

import asyncpg

from tapgate.store.database import Database

#: Longer than the timeout of an attempt. If a process has recorded no result by then, any process
#: may claim the row.
LEASE_DURATION = timedelta(seconds=30)

_random = random.SystemRandom()


async def claim(
    source: Database | asyncpg.Connection,
    table: str,
    columns: str,
    *,
    now: datetime,
    limit: int,
    condition: str = "true",
    values: Sequence[object] = (),
) -> list[asyncpg.Record]:
    """Lease up to `limit` due rows, those due longest first, and return their `columns`.

    `condition` is an additional SQL condition, whose parameters `values` start at `$4`.
    """
    # MATERIALIZED, because a plan that evaluates the CTE twice would claim more rows than `limit`.
    return await source.fetch(
        f"""WITH due AS MATERIALIZED (
                SELECT id AS due_id FROM {table}
                WHERE status = 'pending' AND next_attempt_at <= $1 AND {condition}
                ORDER BY next_attempt_at LIMIT $3 FOR UPDATE SKIP LOCKED)
            UPDATE {table} SET attempts = attempts + 1, next_attempt_at = $2
            FROM due WHERE id = due_id
            RETURNING {columns}""",
        now,
        now + LEASE_DURATION,
        limit,
        *values,
    )


def add_jitter(seconds: float, *, fraction: float) -> timedelta:
    """Return a randomized delay, so that simultaneous failures are not retried simultaneously."""
    return timedelta(seconds=seconds * _random.uniform(1 - fraction, 1 + fraction))
