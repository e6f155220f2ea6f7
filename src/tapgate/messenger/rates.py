"""How many messages an address may send in a minute: one count over all processes.

The minute, or what else is chosen, begins with the first message, so that whoever is over it knows
when it ends.
"""

from datetime import datetime, timedelta
from typing import NamedTuple

import asyncpg

from tapgate.store.database import Database

WINDOW = timedelta(minutes=1)


class Taken(NamedTuple):
    #: None: allowed.
    wait_seconds: int | None
    #: Nobody has asked this person to slow down in this minute yet.
    first_refusal: bool


async def take(
    database: Database | asyncpg.Connection,
    address: str,
    *,
    most: int,
    now: datetime,
    within: timedelta = WINDOW,
) -> Taken:
    """Counts one message. What is refused does not count."""
    row = await database.fetchrow(
        """INSERT INTO messenger.rates AS r (address, since, taken, told)
           VALUES ($1, $2, 1, false)
           ON CONFLICT (address) DO UPDATE SET
               since = CASE WHEN r.since <= $3 OR r.since > $2 THEN $2 ELSE r.since END,
               taken = CASE WHEN r.since <= $3 OR r.since > $2 THEN 1
                            ELSE least(r.taken, $4) + 1 END,
               -- Whether this is a refusal that is not the first.
               told = r.since > $3 AND r.since <= $2 AND r.taken > $4
           RETURNING since, taken, told""",
        address,
        now,
        now - within,
        most,
    )
    assert row is not None, "an upsert answers a row"
    if row["taken"] <= most:
        return Taken(None, False)
    left = row["since"] + within - now
    return Taken(max(1, -(-left // timedelta(seconds=1))), not row["told"])
