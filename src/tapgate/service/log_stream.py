"""Where log lines go: a stream that nobody may be reading, which must never hold up a request.

A line that cannot be written at once is dropped and counted; the next one that can be written says
how many are missing.
"""

import contextlib
import os
import select

#: A pipe that can be written to takes this much without waiting.
_CHUNK = 4096
_CHUNK_PATIENCE_MS = 20


class LogStream:
    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._poll = select.poll()
        self._poll.register(descriptor, select.POLLOUT)
        self._missing = 0

    def write(self, line: bytes) -> None:
        if not self._poll.poll(0):
            self._missing += 1
            return
        with contextlib.suppress(OSError):  # whoever read it has gone
            if self._missing:
                line = b'{"event":"log.missing","lines":%d}\n' % self._missing + line
                self._missing = 0
            self._write_all(line)

    def _write_all(self, line: bytes) -> None:
        while line:
            written = os.write(self._descriptor, line[:_CHUNK])
            line = line[written:]
            if line and not self._poll.poll(_CHUNK_PATIENCE_MS):
                self._missing += 1  # the line stays cut off
                return

    def flush(self) -> None:
        """Nothing is buffered."""
