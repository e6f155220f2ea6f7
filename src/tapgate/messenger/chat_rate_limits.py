"""Fixed-window rate limits per key, counted in the database across all processes.

A window starts when its key is first used after the previous window ended. The callers count
messages and requested codes.
"""

from datetime import datetime, timedelta

import asyncpg

from tapgate.runtime.store.database import Database

DEFAULT_WINDOW = timedelta(minutes=1)


async def acquire(
    database: Database | asyncpg.Connection,
    key: str,
    *,
    limit: int,
    now: datetime,
    window: timedelta = DEFAULT_WINDOW,
) -> int | None:
    """Count one use of the key; return None within the limit, else the seconds to wait.

    A use above the limit does not extend the wait. Callers read the clock before they lock the row,
    so `now` may be slightly older than `since`. A window that starts in the future is discarded
    only if it starts at least its own length after `now`, because the clock was then set back.
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
        key,
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


async def mark_notified(database: Database | asyncpg.Connection, key: str) -> bool:
    """Return True for the first call in a window; the caller then sends the rate limit reply."""
    updated = await database.fetchval(
        """UPDATE messenger.rates SET told = true WHERE address = $1 AND NOT told
           RETURNING true""",
        key,
    )
    return updated is not None
