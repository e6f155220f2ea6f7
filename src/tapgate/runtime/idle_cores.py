"""Share of this machine's cores that is idle."""

from pathlib import Path
from typing import Final

_STAT: Final = Path("/proc/stat")
#: Of the counters in the first line: idle, and idle while a disk is busy.
_IDLE_COUNTERS: Final = slice(3, 5)
#: Without the time of guests, which is part of the user time.
_ALL_COUNTERS: Final = slice(0, 8)


class IdleCores:
    def __init__(self, path: Path = _STAT) -> None:
        self._path = path
        self._idle = self._total = 0
        self.measure()

    def measure(self) -> float:
        """Return the share since the last call; 0 if the system does not say."""
        try:
            with self._path.open() as file:
                counters = [int(word) for word in file.readline().split()[1:]]
        except (OSError, ValueError):
            return 0.0
        idle, total = sum(counters[_IDLE_COUNTERS]), sum(counters[_ALL_COUNTERS])
        idle_ticks, ticks = idle - self._idle, total - self._total
        self._idle, self._total = idle, total
        return idle_ticks / ticks if ticks > 0 else 0.0
