"""Limit on wrong PINs per credential, counted in memory that a node's processes share.

Three wrong PINs lock one customer out. Without this limit, one terminal key could lock out every
customer whose card it knows. A credential reaches the limit with `max_wrong` wrong PINs in ten
minutes that are more than `max_percent` of its attempts. Its PINs are then not compared until
enough wrong PINs are older than ten minutes.

A holder counts for at most one correct and three wrong PINs per credential in ten minutes.
Otherwise a dishonest merchant could lower the percentage by paying with the same card repeatedly,
and one customer could use up a quiet terminal's limit.

An attempt is counted in the same event loop step that compares the PIN, before anything is written.
Parallel requests to one node therefore exceed the limit by at most one wrong PIN per further
process. Nodes share their counts in the database (`ledger/pins/wrong_pins.py`).
"""

from collections.abc import Iterable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Final, NamedTuple

from tapgate.runtime.node_table import NodeTable

_MINUTE_SECONDS: Final = 60
_WINDOW_MINUTES: Final = 10
WINDOW_SECONDS: Final = _WINDOW_MINUTES * _MINUTE_SECONDS

DEFAULT_MAX_WRONG: Final = 20
DEFAULT_MAX_PERCENT: Final = 20

#: Row cells: the key's tag, two minutes, four cells for each minute in the window, and two
#: cells for each of the last holders.
_TAG, _BLOCKED_UNTIL, _LAST_WRONG, _FIRST_MINUTE = range(4)
_MINUTE, _ATTEMPTS, _UNRECORDED, _WRONG = range(4)
_MINUTE_CELLS: Final = 4
_FIRST_HOLDER: Final = _FIRST_MINUTE + _WINDOW_MINUTES * _MINUTE_CELLS
#: Enough for a merchant's own cards. Busy keys have more holders: the oldest is forgotten, and
#: counts again.
_HOLDERS: Final = 16
_HOLDER_CELLS: Final = 2
_ROW_CELLS: Final = _FIRST_HOLDER + _HOLDERS * _HOLDER_CELLS
#: A holder's second cell: the first attempt's minute, and in the lowest three bits
#: whether a correct PIN was counted, and how many wrong PINs.
_MINUTE_SHIFT: Final = 3
_CORRECT_BIT: Final = 4
_WRONG_BITS: Final = 3
MAX_WRONG_PER_HOLDER: Final = 3


class AttemptCount(NamedTuple):
    """A credential's attempts in one minute since the epoch, and how many PINs were wrong."""

    minute: int
    attempts: int
    wrong: int


def to_minute(now: datetime) -> int:
    return int(now.timestamp()) // _MINUTE_SECONDS


def get_first_minute(now: datetime) -> int:
    """Return the window's first minute. The window ends now."""
    return to_minute(now) - _WINDOW_MINUTES + 1


def _is_recent(minute: int, current: int) -> bool:
    return current - _WINDOW_MINUTES < minute <= current


def _list_counts(numbers: Sequence[int], current: int) -> list[AttemptCount]:
    """Return the window's counts per minute from a row's cells."""
    return [
        AttemptCount(minute, attempts, wrong)
        for minute, attempts, _, wrong in zip(
            *(numbers[index::_MINUTE_CELLS] for index in range(_MINUTE_CELLS)), strict=True
        )
        if _is_recent(minute, current)
    ]


class WrongPinLimit(NodeTable):
    """Attempts per credential, and whether the credential has reached the limit.

    A full set of the table evicts the credential with the oldest wrong PIN.
    """

    SET_COUNT = 2048
    WAYS = 4

    def __init__(
        self,
        path: Path,
        *,
        max_wrong: int = DEFAULT_MAX_WRONG,
        max_percent: int = DEFAULT_MAX_PERCENT,
    ) -> None:
        super().__init__(path, cells_per_set=self.WAYS * _ROW_CELLS)
        self._max_wrong = max_wrong
        self._max_percent = max_percent

    def get_retry_seconds(self, credential: str, now: datetime) -> int:
        """Return how long a credential's PINs must not be compared, or 0 if they may be now."""
        row = self._find_row(*self._locate_key(credential))
        if row is None:
            return 0
        minute, cells = to_minute(now), self._cells
        until = cells[row + _BLOCKED_UNTIL]
        if cells[row + _LAST_WRONG] > minute - _WINDOW_MINUTES:
            numbers = cells[row + _FIRST_MINUTE : row + _FIRST_HOLDER].tolist()
            if sum(numbers[_WRONG::_MINUTE_CELLS]) >= self._max_wrong:  # including older minutes
                until = max(until, self.find_end(_list_counts(numbers, minute)))
        # A later end is from a clock that was ahead.
        if not minute < until <= minute + _WINDOW_MINUTES:
            return 0
        return until * _MINUTE_SECONDS - int(now.timestamp())

    def count(self, credential: str, holder_id: int, now: datetime, *, is_wrong: bool) -> bool:
        """Count a PIN that was compared, and return whether it counts toward the limit.

        A correct PIN is counted without the lock, because every payment with a PIN is counted here.
        Two processes may count one of two concurrent attempts.
        """
        tag, set_start = self._locate_key(credential)
        minute = to_minute(now)
        row = self._find_row(tag, set_start)
        if row is not None and not is_wrong:
            return self._count(row, holder_id, minute, wrong=0)
        self._lock(set_start)
        try:
            row = self._find_or_create_row(tag, set_start)
            counts = self._count(row, holder_id, minute, wrong=int(is_wrong))
            if is_wrong and counts:
                self._cells[row + _LAST_WRONG] = minute
            return counts
        finally:
            self._unlock(set_start)

    def take_unrecorded(self, credential: str, now: datetime) -> dict[int, int]:
        """Return the attempts per minute that were counted since the last call."""
        tag, set_start = self._locate_key(credential)
        self._lock(set_start)
        try:
            row, cells = self._find_row(tag, set_start), self._cells
            attempts: dict[int, int] = {}
            if row is None:
                return attempts
            for cell in range(row + _FIRST_MINUTE, row + _FIRST_HOLDER, _MINUTE_CELLS):
                if _is_recent(cells[cell + _MINUTE], to_minute(now)):
                    attempts[cells[cell + _MINUTE]] = cells[cell + _UNRECORDED]
                    cells[cell + _UNRECORDED] = 0
            return attempts
        finally:
            self._unlock(set_start)

    def block(self, credential: str, until: int) -> None:
        """Block a credential's PIN attempts until a minute."""
        tag, set_start = self._locate_key(credential)
        self._lock(set_start)
        try:
            self._cells[self._find_or_create_row(tag, set_start) + _BLOCKED_UNTIL] = until
        finally:
            self._unlock(set_start)

    def find_end(self, counts: Iterable[AttemptCount]) -> int:
        """Return the minute at which a credential is below the limit again, 0 if it is now."""
        counts = sorted(counts)
        wrong = sum(count.wrong for count in counts)
        attempts = sum(count.attempts for count in counts)
        if wrong < self._max_wrong or wrong * 100 <= self._max_percent * attempts:
            return 0
        for count in counts:
            wrong -= count.wrong
            if wrong < self._max_wrong:
                return count.minute + _WINDOW_MINUTES
        return 0

    def _count(self, row: int, holder_id: int, minute: int, *, wrong: int) -> bool:
        if not self._count_holder(row + _FIRST_HOLDER, holder_id, minute, wrong=wrong):
            return False
        cells = self._cells
        cell = row + _FIRST_MINUTE + minute % _WINDOW_MINUTES * _MINUTE_CELLS
        if cells[cell + _MINUTE] != minute:
            cells[cell + _ATTEMPTS] = cells[cell + _UNRECORDED] = cells[cell + _WRONG] = 0
            cells[cell + _MINUTE] = minute
        cells[cell + _ATTEMPTS] += 1
        cells[cell + _UNRECORDED] += 1
        cells[cell + _WRONG] += wrong
        return True

    def _count_holder(self, start: int, holder_id: int, minute: int, *, wrong: int) -> bool:
        """Record a holder's attempt, and return whether it counts."""
        cells = self._cells
        holders = cells[start : start + _HOLDERS * _HOLDER_CELLS].tolist()
        known, values = holders[::_HOLDER_CELLS], holders[1::_HOLDER_CELLS]
        if holder_id in known:
            index = known.index(holder_id)
            value = values[index]
            if not _is_recent(value >> _MINUTE_SHIFT, minute):
                value = minute << _MINUTE_SHIFT
        else:
            index = values.index(min(values))
            cells[start + index * _HOLDER_CELLS] = holder_id
            value = minute << _MINUTE_SHIFT
        if wrong:
            counts = value & _WRONG_BITS < MAX_WRONG_PER_HOLDER
            value += counts
        else:
            counts = not value & _CORRECT_BIT
            value |= _CORRECT_BIT
        cells[start + index * _HOLDER_CELLS + 1] = value
        return counts

    def _find_row(self, tag: int, set_start: int) -> int | None:
        cells = self._cells
        if cells[set_start] == tag:
            return set_start  # fast path: most sets contain one key, in the first row
        for row in range(set_start, set_start + self.WAYS * _ROW_CELLS, _ROW_CELLS):
            if cells[row] == tag:
                return row
        return None

    def _find_or_create_row(self, tag: int, set_start: int) -> int:
        row = self._find_row(tag, set_start)
        if row is not None:
            return row
        cells = self._cells
        rows = range(set_start, set_start + self.WAYS * _ROW_CELLS, _ROW_CELLS)
        row = min(rows, key=lambda row: (cells[row + _LAST_WRONG], cells[row] != 0))
        cells[row + _TAG] = 0
        for cell in range(row + 1, row + _ROW_CELLS):
            cells[cell] = 0
        cells[row + _TAG] = tag
        return row
