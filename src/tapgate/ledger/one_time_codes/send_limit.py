"""Limit on one-time codes per phone number, shared by the gateway and the messenger.

The row of a phone number is locked until the end of the database transaction that sends the code.
Concurrent requests therefore cannot exceed the limit, and a code that is not sent does not count.
"""

import math
from datetime import datetime, timedelta
from typing import Final

import asyncpg

MAX_PER_MINUTE: Final = 1
MAX_PER_HOUR: Final = 5

_MINUTE: Final = timedelta(minutes=1)
_HOUR: Final = timedelta(hours=1)
#: Maximum expired rows deleted per counted code, so the table holds little more than the last hour.
_PURGE_LIMIT: Final = 10


async def reserve(tx: asyncpg.Connection, phone_number: str, now: datetime) -> int | None:
    """Count one code and return None, or return the seconds to wait if the limit is reached."""
    row = await tx.fetchrow(
        """INSERT INTO one_time_code_sends AS kept (phone_number, sent_at) VALUES ($1, '{}')
           ON CONFLICT (phone_number) DO UPDATE SET sent_at = kept.sent_at
           RETURNING sent_at""",
        phone_number,
    )
    # A time more than an hour ahead was recorded before the clock was set back.
    recent = sorted(time for time in row["sent_at"] if now - _HOUR < time < now + _HOUR)
    wait = _compute_wait(recent, now)
    if wait is None:
        await tx.execute(
            "UPDATE one_time_code_sends SET sent_at = $2 WHERE phone_number = $1",
            phone_number,
            [*recent, now],
        )
        await _purge(tx, now - _HOUR)
    return wait


def _compute_wait(recent: list[datetime], now: datetime) -> int | None:
    ends = [
        recent[-limit] + window
        for limit, window in ((MAX_PER_MINUTE, _MINUTE), (MAX_PER_HOUR, _HOUR))
        if len(recent) >= limit and recent[-limit] + window > now
    ]
    return max(1, math.ceil((max(ends) - now).total_seconds())) if ends else None


async def _purge(tx: asyncpg.Connection, before: datetime) -> None:
    await tx.execute(
        """DELETE FROM one_time_code_sends WHERE phone_number = ANY (ARRAY(
               SELECT phone_number FROM one_time_code_sends
               WHERE sent_at[cardinality(sent_at)] <= $1 LIMIT $2 FOR UPDATE SKIP LOCKED))""",
        before,
        _PURGE_LIMIT,
    )
