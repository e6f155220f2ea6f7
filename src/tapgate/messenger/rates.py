"""How many messages an address may send in a minute: one count over all processes.

The minute, or what else is chosen, begins with the first message, so that whoever is over it knows
when it ends.
"""

from datetime import datetime, timedelta

import asyncpg

from tapgate.store.database import Database

WINDOW = timedelta(minutes=1)


async def take(
    database: Database | asyncpg.Connection,
    address: str,
    *,
    most: int,
    now: datetime,
    within: timedelta = WINDOW,
) -> int | None:
    """Counts one message: None when it is allowed, else the seconds to wait. What is refused does
    not count."""
    row = await database.fetchrow(
        """INSERT INTO messenger.rates AS r (address, since, taken, told)
           VALUES ($1, $2, 1, false)
           ON CONFLICT (address) DO UPDATE SET
               since = CASE WHEN r.since <= $3 OR r.since > $2 THEN $2 ELSE r.since END,
               taken = CASE WHEN r.since <= $3 OR r.since > $2 THEN 1
                            ELSE least(r.taken, $4) + 1 END,
               told = r.told AND r.since > $3 AND r.since <= $2
           RETURNING since, taken""",
        address,
        now,
        now - within,
        most,
    )
    assert row is not None, "an upsert answers a row"
    if row["taken"] <= most:
        return None
    left: timedelta = row["since"] + within - now
    return max(1, -(-left // timedelta(seconds=1)))


async def tell_once(tx: asyncpg.Connection, address: str) -> bool:
    """Whether nobody has asked this person to slow down in this minute yet."""
    told = await tx.fetchval(
        """UPDATE messenger.rates SET told = true WHERE address = $1 AND NOT told
           RETURNING true""",
        address,
    )
    return told is not None
