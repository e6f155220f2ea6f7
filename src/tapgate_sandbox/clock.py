"""System clock that a file shifts, to play the end of a day."""

from datetime import datetime, timedelta
from pathlib import Path
from time import monotonic
from typing import Final

from tapgate.core.settings import Settings
from tapgate_client.clock import Clock, system_clock

#: File in the data directory with the offset in seconds. It must exist when the gateway starts.
FILE_NAME: Final = "clock-offset"
READ_INTERVAL_SECONDS: Final = 0.1


class OffsetClock:
    def __init__(self, file: Path) -> None:
        self._file = file
        self._offset = timedelta()
        self._next_read_at = 0.0

    def __call__(self) -> datetime:
        if monotonic() >= self._next_read_at:
            self._offset = timedelta(seconds=float(self._file.read_text()))
            self._next_read_at = monotonic() + READ_INTERVAL_SECONDS
        return system_clock() + self._offset


def choose_clock(settings: Settings) -> Clock:
    file = Path(settings.data_dir, FILE_NAME)
    return OffsetClock(file) if file.exists() else system_clock
