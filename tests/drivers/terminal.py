"""Terminal session that runs a command and types into it."""

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
#: Makes its standard input the controlling terminal, so Ctrl-C works, then executes the command.
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
        """Wait for the text and return the output between the previous match and this one."""
        deadline = time.monotonic() + _TIMEOUT_SECONDS
        while (found := self.output.find(text, self._read_position)) < 0:
            assert self._read(deadline), f"{text!r} was not printed: {self.output!r}"
        output_before = self.output[self._read_position : found]
        self._read_position = found + len(text)
        return output_before

    def type(self, text: str) -> None:
        os.write(self._descriptor, text.encode())

    def press_and_wait(self, key: str) -> int:
        """Press a key until the process ends and return its exit status.

        The key is pressed repeatedly, because a signal that arrives just before Python blocks on
        input is handled only after the next key.
        """
        time.sleep(0.2)  # make this race unlikely
        for _ in range(_TIMEOUT_SECONDS // _RETRY_SECONDS):
            self.type(key)
            with contextlib.suppress(subprocess.TimeoutExpired):
                while self._read(time.monotonic() + _RETRY_SECONDS):
                    pass
                return self._process.wait(_RETRY_SECONDS)
        raise AssertionError(f"the process did not end: {self.output!r}")

    def _read(self, deadline: float) -> bool:
        ready, _, _ = select.select([self._descriptor], [], [], max(0, deadline - time.monotonic()))
        try:
            new = os.read(self._descriptor, 65536) if ready else b""
        except OSError:  # the process has closed the terminal
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
