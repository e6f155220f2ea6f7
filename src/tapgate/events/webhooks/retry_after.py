"""Parser for the `Retry-After` header (RFC 9110, section 10.2.3)."""

from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Final

#: Longer delays are reduced to this value, the retry schedule's longest delay without jitter.
MAX_RETRY_AFTER: Final = timedelta(hours=24)


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
