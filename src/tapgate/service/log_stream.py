"""Log output that never blocks a request, even if nothing reads it.

The lines of one event loop iteration are written together. Lines that cannot be written
immediately are dropped and counted. The next successful write starts with the number dropped.
"""

import asyncio
import contextlib
import os
import select

#: A writable pipe accepts this much without blocking.
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
            except RuntimeError:  # no event loop to block
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
        with contextlib.suppress(OSError):  # the reader is gone
            self._write_all(b"".join(lines))

    def _write_all(self, text: bytes) -> None:
        while text:
            written = os.write(self._descriptor, text[:_CHUNK_BYTES])
            text = text[written:]
            if text and not self._poll.poll(_CHUNK_TIMEOUT_MS):
                self._dropped_lines += text.count(b"\n")  # the first of them is truncated
                return
