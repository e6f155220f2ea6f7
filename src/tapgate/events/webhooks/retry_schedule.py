"""Delays between a webhook delivery's attempts, and the `Retry-After` header (RFC 9110)."""

from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Final

from tapgate.runtime.store.work_queue import add_jitter

_MINUTE, _HOUR = 60, 3_600
#: Delays after the first, second, ... failed attempt. The attempt after the last delay is final.
RETRY_DELAYS_SECONDS: Final = (
    5,
    5 * _MINUTE,
    30 * _MINUTE,
    2 * _HOUR,
    5 * _HOUR,
    10 * _HOUR,
    14 * _HOUR,
    20 * _HOUR,
    24 * _HOUR,
)
#: Longer delays are reduced to this value, the retry schedule's longest delay without jitter.
MAX_RETRY_AFTER: Final = timedelta(hours=24)


def get_retry_delay(failures: int, retry_after: timedelta | None = None) -> timedelta | None:
    """Return the delay after `failures` failed attempts, or None if no attempts are left.

    `Retry-After` can extend the scheduled delay but not shorten it. Otherwise an endpoint that
    always requests a one-second delay would exhaust its attempts within seconds.
    """
    if failures > len(RETRY_DELAYS_SECONDS):
        return None
    delay = add_jitter(RETRY_DELAYS_SECONDS[failures - 1], fraction=0.1)
    return delay if retry_after is None else max(delay, retry_after)


def parse_retry_after(value: str | None, now: datetime) -> timedelta | None:
    """Return the delay requested by the header, which contains seconds or an HTTP date.

    The delay is at least 0 and at most `MAX_RETRY_AFTER`. Returns None if the header is absent or
    malformed.
    """
    if value is None:
        return None
    value = value.strip()
    if value.isascii() and value.isdigit():
        return _clamp(timedelta(seconds=int(value))) if len(value) <= 9 else MAX_RETRY_AFTER
    try:
        moment = parsedate_to_datetime(value)
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        return _clamp(moment - now)
    except (TypeError, ValueError, IndexError, OverflowError):
        return None


def _clamp(delay: timedelta) -> timedelta:
    return min(max(delay, timedelta(0)), MAX_RETRY_AFTER)
