"""What waits in a table to be sent by one process at a time, and is tried again until it got there.

The table has `id, status ('pending', ...), attempts, next_attempt_at`. A claim puts a row off for
everybody else; it is short, and the sending happens outside of it. Whoever is killed meanwhile
loses nothing: the row is due again when the claim is over.
"""

import random
from collections.abc import Sequence
from datetime import datetime, timedelta

import asyncpg

from tapgate.store.database import Database

#: Longer than any try takes: whoever has not reported by then was killed, and another takes over.
LEASE_DURATION = timedelta(seconds=30)

_random = random.SystemRandom()


async def claim(
    source: Database | asyncpg.Connection,
    table: str,
    columns: str,
    *,
    now: datetime,
    limit: int,
    among: str = "true",
    values: Sequence[object] = (),
) -> list[asyncpg.Record]:
    """Due rows, longest due first. `among` narrows them down; its values are `$4` and on."""
    # Materialized: a plan that reads it twice would claim more than it answers.
    return await source.fetch(
        f"""WITH due AS MATERIALIZED (
                SELECT id AS due_id FROM {table}
                WHERE status = 'pending' AND next_attempt_at <= $1 AND {among}
                ORDER BY next_attempt_at LIMIT $3 FOR UPDATE SKIP LOCKED)
            UPDATE {table} SET attempts = attempts + 1, next_attempt_at = $2
            FROM due WHERE id = due_id
            RETURNING {columns}""",
        now,
        now + LEASE_DURATION,
        limit,
        *values,
    )


def add_jitter(seconds: float, *, give_or_take: float) -> timedelta:
    """A pause that differs by chance, so that what failed together does not return together."""
    return timedelta(seconds=seconds * _random.uniform(1 - give_or_take, 1 + give_or_take))
