"""Supervised child process: one service worker, restarted if it exits."""

import asyncio
import contextlib
import socket
import sys
import time
from collections.abc import Mapping
from typing import NoReturn

from tapgate.runtime.handover import (
    DRAIN_TIMEOUT_SECONDS,
    LIFELINE_FD_VARIABLE,
    LISTENER_FD_VARIABLE,
)
from tapgate.server.startup_responder import StartupResponder

_MIN_RESTART_DELAY_SECONDS = 0.1
_MAX_RESTART_DELAY_SECONDS = 5.0
_STABLE_RUN_SECONDS = 10.0
_KILL_TIMEOUT_SECONDS = DRAIN_TIMEOUT_SECONDS + 5.0  # after the drain


def build_command(module: str) -> list[str]:
    """Return the command that runs a service's module, without assertions."""
    return [sys.executable, "-O", "-m", "tapgate.runtime.quick_start", module]


class StartError(Exception):
    """A service cannot be started. The message is one line for the operator."""


def print_line(line: str) -> None:
    """Print a line for the operator. Output errors, such as a closed pipe, are ignored."""
    with contextlib.suppress(OSError):
        print(line, flush=True)


class ChildProcess:
    def __init__(
        self,
        service: str,
        module: str,
        listener: socket.socket,
        environ: Mapping[str, str],
        *,
        responder: StartupResponder | None,
        drain_seconds: float = 0,
    ) -> None:
        self._service = service
        self._responder = responder
        self._stop_seconds = drain_seconds + _KILL_TIMEOUT_SECONDS
        self.module = module
        self.listener = listener
        self.environ = environ
        self.ready = asyncio.Event()

    async def supervise(self) -> NoReturn:
        """Run and restart the process until canceled, then shut it down gracefully.

        Raise StartError if the process exits or cannot be started before it was ever ready.
        """
        delay = _MIN_RESTART_DELAY_SECONDS
        while True:
            started = time.monotonic()
            exit_reason = await self._run()
            if not self.ready.is_set():
                raise StartError(f"the {self._service} {exit_reason} during startup")
            # Restart quickly after a stable run, with exponential backoff after short runs.
            was_stable = time.monotonic() - started > _STABLE_RUN_SECONDS
            delay = (
                _MIN_RESTART_DELAY_SECONDS
                if was_stable
                else min(delay * 2, _MAX_RESTART_DELAY_SECONDS)
            )
            print_line(f"The {self._service} {exit_reason}. Restarting it.")
            await asyncio.sleep(delay)

    async def _run(self) -> str:
        """Run the process once and return how it exited, or why it could not be started."""
        lifeline, child_end = socket.socketpair()
        with lifeline, contextlib.ExitStack() as stack:
            with child_end:
                try:
                    process = await self.spawn(child_end)
                except OSError as error:
                    return f"could not start ({error.strerror}: {error.filename})"
            try:
                lifeline.setblocking(False)
                if await asyncio.get_running_loop().sock_recv(lifeline, 1):
                    self.ready.set()
                    if self._responder is not None:
                        self._responder.on_worker_ready()
                        stack.callback(self._responder.on_worker_exit)
                return f"exited with status {await process.wait()}"
            finally:
                await _stop_process(process, self._stop_seconds)

    async def spawn(self, child_end: socket.socket) -> asyncio.subprocess.Process:
        descriptors = {
            LISTENER_FD_VARIABLE: self.listener.fileno(),
            LIFELINE_FD_VARIABLE: child_end.fileno(),
        }
        return await asyncio.create_subprocess_exec(
            *build_command(self.module),
            stdin=asyncio.subprocess.DEVNULL,
            env={**self.environ, **{name: str(number) for name, number in descriptors.items()}},
            pass_fds=tuple(descriptors.values()),
            # Ctrl-C in the terminal must reach only the supervisor, which stops the workers before
            # PostgreSQL.
            start_new_session=True,
        )


async def _stop_process(process: asyncio.subprocess.Process, timeout_seconds: float) -> None:
    with contextlib.suppress(ProcessLookupError):
        process.terminate()
    try:
        async with asyncio.timeout(timeout_seconds):
            await process.wait()
    except TimeoutError:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()
