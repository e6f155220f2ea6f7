"""Limit on failed logins: five per email and address within 15 minutes.

An attempt is counted as a failure before its password is checked. The failure is removed if the
login succeeds or the password cannot be checked. Concurrent attempts, in any number of processes,
therefore cannot exceed the limit.
"""

import math
from datetime import datetime, timedelta
from typing import NamedTuple

from tapgate.runtime.store.database import Database
from tapgate_client.errors import ApiError, Code

MAX_FAILURES = 5
FAILURE_WINDOW = timedelta(minutes=15)

_RECENT_FAILURES = (
    "ARRAY(SELECT moment FROM unnest(kept.failed_at) AS moment WHERE moment > $4 ORDER BY 1)"
)


class LoginSource(NamedTuple):
    """Email and client address that a login attempt uses."""

    email: str  # keyed hash, because a password may have been typed into the email field
    address: str


async def reserve(database: Database, source: LoginSource, now: datetime) -> None:
    """Count one failure, or raise 429 if the limit is reached."""
    since = now - FAILURE_WINDOW
    reserved = await database.fetchval(
        f"""INSERT INTO login_failures AS kept (email, address, failed_at)
            VALUES ($1, $2, ARRAY[$3::timestamptz])
            ON CONFLICT (email, address) DO UPDATE SET failed_at = {_RECENT_FAILURES} || $3
            WHERE cardinality({_RECENT_FAILURES}) < {MAX_FAILURES}
            RETURNING true""",
        *source,
        now,
        since,
    )
    if not reserved:
        raise await _build_rate_limit_error(database, source, now)


async def release(database: Database, source: LoginSource) -> None:
    """Remove the most recent failure, because the attempt did not fail. Earlier failures remain."""
    await database.execute(
        "UPDATE login_failures SET failed_at = trim_array(failed_at, 1) "
        "WHERE email = $1 AND address = $2 AND failed_at <> '{}'",
        *source,
    )


async def _build_rate_limit_error(
    database: Database, source: LoginSource, now: datetime
) -> ApiError:
    oldest = await database.fetchval(
        "SELECT min(moment) FROM login_failures, unnest(failed_at) AS moment "
        "WHERE email = $1 AND address = $2 AND moment > $3",
        *source,
        now - FAILURE_WINDOW,
    )
    # `oldest` is None if the failures were released concurrently.
    seconds = 1 if oldest is None else math.ceil((oldest + FAILURE_WINDOW - now).total_seconds())
    return ApiError(
        Code.RATE_LIMITED,
        "Too many failed logins. Try again later.",
        headers={"Retry-After": str(seconds)},
    )
