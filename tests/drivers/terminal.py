"""Terminal session that runs a command and types into it, and the messenger it chats with."""

import contextlib
import json
import os
import pty
import select
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

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


CHAT_PATH = "/api/v1/external/messaging"
#: Response that closes the connection without sending anything.
DROP_CONNECTION = (0, b"")
FakeResponse = tuple[int, bytes]


def build_reply(text: str) -> FakeResponse:
    return 200, json.dumps({"answer": text, "status": "success"}).encode()


def build_error(status: int, error: str, **more: Any) -> FakeResponse:
    return status, json.dumps({"error": error, "status": "error", **more}).encode()


class FakeChatServer:
    """Responses to return in order, and the recorded requests."""

    def __init__(self, url: str, responses: tuple[FakeResponse, ...]) -> None:
        self.url = url
        self.responses = list(responses)
        self.bodies: list[dict[str, Any]] = []
        self.tokens: list[str | None] = []

    @property
    def texts(self) -> list[str]:
        return [body["message"] for body in self.bodies]


@contextmanager
def run_fake_messenger(*responses: FakeResponse) -> Iterator[FakeChatServer]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            is_expected = (
                self.path == CHAT_PATH and self.headers["Content-Type"] == "application/json"
            )
            messenger.bodies.append(body)
            messenger.tokens.append(self.headers["Authorization"])
            status, content = messenger.responses.pop(0) if is_expected else (404, b"")
            if (status, content) == DROP_CONNECTION:
                return
            self.send_response(status)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        messenger = FakeChatServer(f"http://127.0.0.1:{server.server_port}", responses)
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield messenger
        finally:
            server.shutdown()
            thread.join()
