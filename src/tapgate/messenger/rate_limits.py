"""Fixed-window rate limits per key, counted in the database across all processes.

A window starts with its first message, so the caller can report the time until it ends.
"""

from datetime import datetime, timedelta

import asyncpg

from tapgate.store.database import Database

DEFAULT_WINDOW = timedelta(minutes=1)


async def acquire(
    database: Database | asyncpg.Connection,
    address: str,
    *,
    limit: int,
    now: datetime,
    window: timedelta = DEFAULT_WINDOW,
) -> int | None:
    """Count one message; return None within the limit, else the seconds to wait.

    A message over the limit does not count. Callers read the clock before they lock the row, so
    `now` may be slightly older than `since`. A window is discarded only if it starts more than its
    own length in the future, which means that the clock was set back.
    """
    row = await database.fetchrow(
        """INSERT INTO messenger.rates AS r (address, since, taken, told)
           VALUES ($1, $2, 1, false)
           ON CONFLICT (address) DO UPDATE SET
               since = CASE WHEN r.since > $3 AND r.since < $4 THEN r.since ELSE $2 END,
               taken = CASE WHEN r.since > $3 AND r.since < $4
                            THEN least(r.taken, $5) + 1 ELSE 1 END,
               told = r.told AND r.since > $3 AND r.since < $4
           RETURNING since, taken""",
        address,
        now,
        now - window,
        now + window,
        limit,
    )
    assert row is not None, "an upsert returns a row"
    if row["taken"] <= limit:
        return None
    remaining: timedelta = min(row["since"] + window - now, window)
    return max(1, -(-remaining // timedelta(seconds=1)))


async def mark_notified(database: Database | asyncpg.Connection, address: str) -> bool:
    """Return True once per window: the caller then sends the "slow down" reply."""
    updated = await database.fetchval(
        """UPDATE messenger.rates SET told = true WHERE address = $1 AND NOT told
           RETURNING true""",
        address,
    )
    return updated is not None
