"""Durable work queue in a table, with leases and retries.

The table has `id, status ('pending', ...), attempts, next_attempt_at`. A claim leases due rows by
moving their `next_attempt_at` to the end of the lease. The claim is one short statement, and the
work happens outside of it. If the process is killed, the row is due again when the lease expires.
"""

import random
from collections.abc import Sequence
from datetime import datetime, timedelta

import asyncpg

from tapgate.store.database import Database

#: Longer than any attempt takes. A process that has not reported by then is presumed dead, and
#: another process claims the row.
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
    """Lease due rows and return them; the longest due are claimed first.

    `condition` is an additional SQL condition; its parameters start at `$4`.
    """
    # MATERIALIZED: a plan that evaluates the CTE twice would claim more rows than `limit`.
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
