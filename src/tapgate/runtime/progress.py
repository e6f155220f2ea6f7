"""Progress reports for long commands whose output is not a terminal."""

import contextlib
import time
from typing import Final, TextIO

_PRINT_INTERVAL_SECONDS: Final = 10.0


class LineProgress:
    """Progress as an occasional line. A closed output does not abort the command."""

    def __init__(self, label: str, stream: TextIO) -> None:
        self._label = label
        self._stream = stream
        self._last_printed = time.monotonic()

    def report(self, progress: str) -> None:
        if time.monotonic() - self._last_printed > _PRINT_INTERVAL_SECONDS:
            self._last_printed = time.monotonic()
            with contextlib.suppress(OSError):
                print(f"{self._label}: {progress}", file=self._stream, flush=True)
