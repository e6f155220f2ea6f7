"""Where log lines go: a stream that nobody may be reading, which must never hold up a request.

The lines of one turn of the event loop are written together. What cannot be written at once is
dropped and counted; the next line that can be written says how many are missing.
"""

import asyncio
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
        self._lines: list[bytes] = []
        self._missing = 0

    def write(self, line: bytes) -> None:
        self._lines.append(line)
        if len(self._lines) == 1:
            try:
                asyncio.get_running_loop().call_soon(self.flush)
            except RuntimeError:  # no loop, nothing to hold up
                self.flush()

    def flush(self) -> None:
        lines, self._lines = self._lines, []
        if not lines:
            return
        if not self._poll.poll(0):
            self._missing += len(lines)
            return
        if self._missing:
            lines.insert(0, b'{"event":"log.missing","lines":%d}\n' % self._missing)
            self._missing = 0
        with contextlib.suppress(OSError):  # whoever read it has gone
            self._write_all(b"".join(lines))

    def _write_all(self, text: bytes) -> None:
        while text:
            written = os.write(self._descriptor, text[:_CHUNK])
            text = text[written:]
            if text and not self._poll.poll(_CHUNK_PATIENCE_MS):
                self._missing += text.count(b"\n")  # of which the first is cut off
                return
