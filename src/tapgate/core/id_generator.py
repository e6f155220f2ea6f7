"""Time-ordered 64-bit identifiers, unique across processes. `tapgate_client.ids` encodes them.

An identifier consists of a zero sign bit, 41 bits for milliseconds since 2025, 10 bits for the
process's slot, and a 12-bit counter. Each process takes the next slot from a cyclic database
sequence when it starts, so identifiers are unique unless 1,024 further slots are taken while it
still runs.
"""

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

SLOT_COUNT = 1024
_COUNTER_BITS = 12
_SLOT_BITS = 10
_TIME_SHIFT = _COUNTER_BITS + _SLOT_BITS
_EPOCH = datetime(2025, 1, 1, tzinfo=UTC)
_EPOCH_MS = int(_EPOCH.timestamp() * 1000)

#: Maximum lead of an identifier's time over the clock. Must be below the tolerance by which
#: transaction lists extend a period's ID range.
_MAX_CLOCK_LEAD_MS = 30 * 60 * 1000


class IdGenerator:
    """Identifier generator for one process."""

    def __init__(self, slot: int, milliseconds: Callable[[], int] | None = None) -> None:
        self._slot = (slot % SLOT_COUNT) << _COUNTER_BITS
        self.milliseconds = milliseconds or (lambda: time.time_ns() // 1_000_000)
        self._last_ms = 0
        self._counter = 0

    @property
    def slot(self) -> int:
        return self._slot >> _COUNTER_BITS

    @property
    def is_ahead(self) -> bool:
        """Whether new identifiers lead the clock, which was set back, by more than the maximum."""
        now = max(0, self.milliseconds() - _EPOCH_MS)
        return self._last_ms - now > _MAX_CLOCK_LEAD_MS

    def reset(self, slot: int) -> None:
        """Restart at the current time. `slot` must have no identifiers from this time on."""
        self._slot = (slot % SLOT_COUNT) << _COUNTER_BITS
        self._last_ms = self._counter = 0

    def __call__(self) -> int:
        now = self.milliseconds() - _EPOCH_MS
        if now > self._last_ms:
            self._last_ms, self._counter = now, 0
        else:
            # Same millisecond, or the clock was set back: continue from the last identifier.
            self._counter += 1
            if self._counter >> _COUNTER_BITS:
                self._last_ms, self._counter = self._last_ms + 1, 0
        return (self._last_ms << _TIME_SHIFT) | self._slot | self._counter


def first_id_at(moment: datetime) -> int:
    """Return the smallest identifier that could have been generated at this time."""
    return max(0, (moment - _EPOCH) // timedelta(milliseconds=1)) << _TIME_SHIFT


def get_time(identifier: int) -> datetime:
    """Return the time in an identifier."""
    return _EPOCH + timedelta(milliseconds=identifier >> _TIME_SHIFT)


def get_time_sql(column: str) -> str:
    """Return an SQL expression for the time at which an identifier was generated."""
    return f"to_timestamp((({column} >> {_TIME_SHIFT}) + {_EPOCH_MS}) / 1000.0)"
