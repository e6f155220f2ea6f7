"""Limit on one-time codes per phone number, shared by the gateway and the messenger.

A phone number's row is locked until the end of the database transaction that sends the code.
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
#: Codes sent earlier do not count.
MAX_WINDOW: Final = _HOUR


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
    return wait


def _compute_wait(recent: list[datetime], now: datetime) -> int | None:
    ends = [
        recent[-limit] + window
        for limit, window in ((MAX_PER_MINUTE, _MINUTE), (MAX_PER_HOUR, _HOUR))
        if len(recent) >= limit and recent[-limit] + window > now
    ]
    return max(1, math.ceil((max(ends) - now).total_seconds())) if ends else None
