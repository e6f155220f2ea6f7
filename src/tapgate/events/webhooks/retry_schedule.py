"""Delays between a webhook delivery's attempts."""

from datetime import timedelta
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


def get_retry_delay(failures: int, retry_after: timedelta | None = None) -> timedelta | None:
    """Return the delay after `failures` failed attempts, or None if no attempts are left.

    `Retry-After` can extend the scheduled delay but not shorten it. Otherwise an endpoint that
    always requests a one-second delay would exhaust its attempts within seconds.
    """
    if failures > len(RETRY_DELAYS_SECONDS):
        return None
    delay = add_jitter(RETRY_DELAYS_SECONDS[failures - 1], fraction=0.1)
    return delay if retry_after is None else max(delay, retry_after)
