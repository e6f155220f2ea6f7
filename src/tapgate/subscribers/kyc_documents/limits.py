"""Upload limits for KYC documents: undecided documents per type, and documents per 24 hours."""

import math
from datetime import datetime, timedelta
from typing import Final

import asyncpg

from tapgate.errors import ApiError, Code
from tapgate.store.database import Database
from tapgate.subscribers.kyc_documents import queries

MAX_UNDECIDED_PER_TYPE: Final = 4
MAX_PER_DAY: Final = 20

_DAY: Final = timedelta(days=1)


async def get_limit_error(
    reader: Database | asyncpg.Connection,
    subscriber_id: int,
    document_type: str,
    now: datetime,
) -> ApiError | None:
    """Return the error if another document would exceed a limit, otherwise None.

    The result is reliable only while the caller holds the subscriber's lock.
    """
    undecided = await queries.count_undecided(reader, subscriber_id, document_type)
    if undecided >= MAX_UNDECIDED_PER_TYPE:
        # A KYC decision resets the count. Its time is unknown, so `Retry-After` is one day.
        return _build_limit_error("undecided_per_type", MAX_UNDECIDED_PER_TYPE, _DAY)
    oldest = await queries.get_nth_newest_upload_time(reader, subscriber_id, MAX_PER_DAY)
    if oldest is not None and oldest + _DAY > now:
        return _build_limit_error("per_day", MAX_PER_DAY, oldest + _DAY - now)
    return None


_LIMIT_MESSAGES: Final = {
    "undecided_per_type": "{} documents of this type are already waiting for a decision.",
    "per_day": "At most {} documents can be uploaded in 24 hours. Try again later.",
}


def _build_limit_error(limit: str, maximum: int, wait: timedelta) -> ApiError:
    seconds = min(_DAY, max(wait, timedelta(seconds=1))).total_seconds()
    return ApiError(
        Code.RATE_LIMITED,
        _LIMIT_MESSAGES[limit].format(maximum),
        details={"limit": limit, "maximum": maximum},
        headers={"Retry-After": str(math.ceil(seconds))},
    )
