"""The start of the first open day, before which nothing is posted.

Every batch takes a shared lock before it reads the time, and keeps it until the commit. Closing a
day takes the lock exclusively for a moment, which waits for the batches in progress, and stores the
end of the day. A batch that starts later reads it under its lock, and moves its own time forward if
its clock is slow. So each entry belongs to exactly one day, and a closed day gets no more entries.
"""

import asyncio
from datetime import datetime, timedelta
from typing import Any, Final
from zoneinfo import ZoneInfo

import asyncpg

from tapgate.ledger.decisions.state import State
from tapgate.runtime.store.combined import Query
from tapgate_client.clock import get_platform_day
from tapgate_client.errors import unavailable

_LOCK_KEY: Final = 0x7467_6F64  # "tgod"
#: Counts as one row, so that a statement that locks can use it as a condition.
COUNT_SHARED_LOCK: Final = f"(SELECT count(pg_advisory_xact_lock_shared({_LOCK_KEY})))"
OPEN_DAY_QUERY: Final = Query("SELECT starts_at FROM open_days", ())
#: Transactions are found by the time in their IDs, with a tolerance of one hour.
_MAX_CLOCK_LAG: Final = timedelta(minutes=30)
#: Batches that arrive while the exclusive lock waits have to wait too, so it waits only briefly.
_LOCK_TIMEOUT: Final = "200ms"
_MAX_ATTEMPTS: Final = 100
_PAUSE_SECONDS: Final = 0.1


def apply_open_day(state: State, open_since: datetime | None, timezone: ZoneInfo) -> None:
    """Move the batch to the first open day if its clock still shows a closed one."""
    if open_since is None or state.now >= open_since:
        return
    if open_since - state.now > _MAX_CLOCK_LAG:
        raise unavailable("The clock shows a closed day. The transaction was not executed.")
    state.now = open_since
    state.today = get_platform_day(open_since, timezone)


async def close_until(connection: Any, end: datetime) -> None:
    """Let no later batch post before `end`. Returns when earlier batches have committed."""
    for _ in range(_MAX_ATTEMPTS):
        try:
            async with connection.transaction():
                await connection.execute(f"SET LOCAL lock_timeout = '{_LOCK_TIMEOUT}'")
                await connection.execute("SELECT pg_advisory_xact_lock($1)", _LOCK_KEY)
                await connection.execute(
                    """INSERT INTO open_days (starts_at) VALUES ($1)
                       ON CONFLICT (one_row) DO UPDATE
                       SET starts_at = greatest(open_days.starts_at, excluded.starts_at)""",
                    end,
                )
        except asyncpg.LockNotAvailableError:
            await asyncio.sleep(_PAUSE_SECONDS)
        else:
            return
    raise unavailable("The ledger is busy. The day was not closed.")
