"""Where log lines go: a stream that nobody may be reading, which must never hold up a request.

The lines of one turn of the event loop are written together. What cannot be written at once is
dropped and counted; the next line that can be written says how many are missing.
"""

import asyncio
import contextlib
import os
import select

#: A pipe that can be written to takes this much without waiting.
_CHUNK_BYTES = 4096
_CHUNK_TIMEOUT_MS = 20


class LogStream:
    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._poll = select.poll()
        self._poll.register(descriptor, select.POLLOUT)
        self._lines: list[bytes] = []
        self._dropped_lines = 0

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
            self._dropped_lines += len(lines)
            return
        if self._dropped_lines:
            lines.insert(0, b'{"event":"log.missing","lines":%d}\n' % self._dropped_lines)
            self._dropped_lines = 0
        with contextlib.suppress(OSError):  # whoever read it has gone
            self._write_all(b"".join(lines))

    def _write_all(self, text: bytes) -> None:
        while text:
            written = os.write(self._descriptor, text[:_CHUNK_BYTES])
            text = text[written:]
            if text and not self._poll.poll(_CHUNK_TIMEOUT_MS):
                self._dropped_lines += text.count(b"\n")  # of which the first is cut off
                return
