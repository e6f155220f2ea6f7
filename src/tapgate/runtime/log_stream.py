"""Log output that blocks the event loop only briefly if the pipe's reader stalls.

All lines from one event loop iteration are written together. If the pipe is full, or does not drain
within `CHUNK_TIMEOUT_MS`, the remaining lines are dropped and counted. The next write starts with
the number of dropped lines. Lines written after the reader has exited are not counted.

Worker threads write too: a library may log while it parses an upload.
"""

import asyncio
import contextlib
import os
import select
import threading

#: A pipe that polls as writable accepts this many bytes without blocking.
_CHUNK_BYTES = 4096
CHUNK_TIMEOUT_MS = 20


class LogStream:
    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._poll = select.poll()
        self._poll.register(descriptor, select.POLLOUT)
        self._lines: list[bytes] = []
        self._dropped_lines = 0
        # Reentrant, because the garbage collector may run a finalizer that logs.
        self._lock = threading.RLock()

    def write(self, line: bytes) -> None:
        with self._lock:
            self._lines.append(line)
            is_first = len(self._lines) == 1
        if is_first:
            try:
                asyncio.get_running_loop().call_soon(self.flush)
            except RuntimeError:  # no event loop to block
                self.flush()

    def flush(self) -> None:
        with self._lock:
            self._flush()

    def _flush(self) -> None:
        lines, self._lines = self._lines, []
        if not lines:
            return
        if not self._poll.poll(0):
            self._dropped_lines += len(lines)
            return
        if self._dropped_lines:
            lines.insert(0, b'{"event":"log.missing","lines":%d}\n' % self._dropped_lines)
            self._dropped_lines = 0
        with contextlib.suppress(OSError):  # the reader has exited
            self._write_all(b"".join(lines))

    def _write_all(self, text: bytes) -> None:
        while text:
            written = os.write(self._descriptor, text[:_CHUNK_BYTES])
            text = text[written:]
            if text and not self._poll.poll(CHUNK_TIMEOUT_MS):
                self._dropped_lines += text.count(b"\n")  # the first of them may be truncated
                return
