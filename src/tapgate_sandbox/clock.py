"""System clock that files shift, to play the end of a day or a wrong clock."""

from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from pathlib import Path
from time import monotonic
from typing import Final

import msgspec

from tapgate.core.settings import Settings
from tapgate.runtime.store.server_status import ServerStatus
from tapgate_client.clock import Clock, system_clock

#: File in the data directory with the offset in seconds. It must exist when the gateway starts.
FILE_NAME: Final = "clock-offset"
#: The same for the node's clock error, which the health check notices.
ERROR_FILE_NAME: Final = "clock-error"
READ_INTERVAL_SECONDS: Final = 0.1


class _Offset:
    """Seconds in a file, read at most ten times per second."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._seconds = 0.0
        self._next_read_at = 0.0

    @property
    def seconds(self) -> float:
        if monotonic() >= self._next_read_at:
            self._seconds = float(self._file.read_text())
            self._next_read_at = monotonic() + READ_INTERVAL_SECONDS
        return self._seconds


class OffsetClock:
    def __init__(self, offsets: list[_Offset]) -> None:
        self._offsets = offsets

    def __call__(self) -> datetime:
        return system_clock() + timedelta(seconds=sum(each.seconds for each in self._offsets))


def choose_clock(settings: Settings) -> Clock:
    offsets = [
        _Offset(file)
        for name in (FILE_NAME, ERROR_FILE_NAME)
        if (file := Path(settings.data_dir, name)).exists()
    ]
    return OffsetClock(offsets) if offsets else system_clock


def wrap_probe(
    settings: Settings, probe: Callable[[], Awaitable[ServerStatus]]
) -> Callable[[], Awaitable[ServerStatus]]:
    """Return a probe that sees the node's clock error."""
    file = Path(settings.data_dir, ERROR_FILE_NAME)
    if not file.exists():
        return probe
    error = _Offset(file)

    async def read_status() -> ServerStatus:
        status = await probe()
        return msgspec.structs.replace(status, clock_offset=status.clock_offset + error.seconds)

    return read_status


def write_offset(file: Path, seconds: float) -> None:
    """Replace the file at once, so that no process reads half of the number."""
    unfinished = file.with_suffix(".new")
    unfinished.write_text(str(seconds))
    unfinished.rename(file)
