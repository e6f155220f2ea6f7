"""A command on a terminal of its own, typed to as a person would."""

import contextlib
import os
import pty
import select
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

_TIMEOUT_SECONDS = 60
_RETRY_SECONDS = 10
#: Makes its standard input the terminal that Ctrl-C is typed on, then becomes the command.
_LAUNCH_SCRIPT = """
import fcntl, os, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execv(sys.argv[1], sys.argv[1:])
"""


class TerminalSession:
    def __init__(self, process: subprocess.Popen[bytes], descriptor: int) -> None:
        self._process = process
        self._descriptor = descriptor
        self._read_position = 0
        self.output = ""

    def wait_for(self, text: str) -> str:
        """What is seen from where it was last looked at up to this text."""
        deadline = time.monotonic() + _TIMEOUT_SECONDS
        while (found := self.output.find(text, self._read_position)) < 0:
            assert self._read(deadline), f"{text!r} did not come: {self.output!r}"
        shown = self.output[self._read_position : found]
        self._read_position = found + len(text)
        return shown

    def type(self, text: str) -> None:
        os.write(self._descriptor, text.encode())

    def press_and_wait(self, key: str) -> int:
        """Its status. The key is pressed again if nothing comes of it, as a person would: a signal
        that arrives just before Python waits for the next key is not looked at before that key."""
        time.sleep(0.2)  # no person is faster, and so it seldom arrives just then
        for _ in range(_TIMEOUT_SECONDS // _RETRY_SECONDS):
            self.type(key)
            with contextlib.suppress(subprocess.TimeoutExpired):
                while self._read(time.monotonic() + _RETRY_SECONDS):
                    pass
                return self._process.wait(_RETRY_SECONDS)
        raise AssertionError(f"it did not end: {self.output!r}")

    def _read(self, deadline: float) -> bool:
        ready, _, _ = select.select([self._descriptor], [], [], max(0, deadline - time.monotonic()))
        try:
            new = os.read(self._descriptor, 65536) if ready else b""
        except OSError:  # nobody has the other end any more
            new = b""
        self.output += new.decode(errors="replace")
        return bool(new)


@contextmanager
def run_on_terminal(command: list[str], environ: Mapping[str, str]) -> Iterator[TerminalSession]:
    descriptor, other_end = pty.openpty()
    try:
        process = subprocess.Popen(
            [sys.executable, "-c", _LAUNCH_SCRIPT, *command],
            stdin=other_end,
            stdout=other_end,
            stderr=other_end,
            env=environ,
            start_new_session=True,
        )
    finally:
        os.close(other_end)
    try:
        yield TerminalSession(process, descriptor)
    finally:
        os.close(descriptor)
        process.kill()
        process.wait(_TIMEOUT_SECONDS)
