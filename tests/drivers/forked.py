"""`tapgate` commands in processes forked from one that has already imported Tapgate.

Imports take most of a command's CPU time, and of supervisor CPU time until its workers start. A
forked process has its own environment, folder, user and output, and handles signals like one that
a shell starts. The supervisor forks its workers too, except in tests that inspect their
environments: environments of forked processes cannot be read from outside.
"""

import asyncio
import contextlib
import gc
import multiprocessing
import os
import runpy
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import traceback
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerContext, ForkServerProcess
from pathlib import Path
from typing import IO, Any
from unittest.mock import patch

import pytest

from tapgate.runtime.handover import LIFELINE_FD_VARIABLE, LISTENER_FD_VARIABLE
from tapgate.runtime.store.server_user import ServerUser
from tapgate.server import child_process

#: Includes this module, which every process imports.
_PRELOADED_MODULES = [
    __name__,
    "rich.status",
    "tapgate.runtime.quick_start",
    "tapgate.cli.backup",
    "tapgate.cli.messages",
    "tapgate.cli.verify",
    "tapgate.server.gateway",
    "tapgate.messenger.app",
    "tapgate.messenger.startup",
    "tapgate.messenger.wiring",
    "tapgate_sandbox.installation",
    "tapgate_sandbox.simulators.site",
]
_COMMAND_TIMEOUT_SECONDS = 60


def become(user: ServerUser) -> None:
    """Change a new process's user. uvloop does not support the `subprocess` arguments."""
    os.setgroups([])
    os.setgid(user.gid)
    os.setuid(user.uid)


def require_installation_for(user: ServerUser) -> None:
    """Skip the test if another user cannot run this installation, such as one in `/root`."""
    folders = {Path(sys.prefix), Path(sys.base_prefix), Path(child_process.__file__).parent}
    if private := sorted(str(folder) for folder in folders if not user.can_search(folder)):
        pytest.skip(f"needs an installation that other users can read: {private[0]} is private")


class ForkedProcess:
    """Process with the interface of `asyncio.subprocess.Process`."""

    def __init__(self, process: ForkServerProcess) -> None:
        self._process = process
        self._transports: list[asyncio.BaseTransport] = []
        self.stdout: asyncio.StreamReader | None = None
        self.stderr: asyncio.StreamReader | None = None

    @property
    def pid(self) -> int:
        assert self._process.pid is not None
        return self._process.pid

    @property
    def returncode(self) -> int | None:
        return self._process.exitcode

    def send_signal(self, number: int) -> None:
        if self.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    async def wait(self) -> int:
        exited, loop = asyncio.Event(), asyncio.get_running_loop()
        if self.returncode is None:
            loop.add_reader(self._process.sentinel, exited.set)
            try:
                await exited.wait()
            finally:
                loop.remove_reader(self._process.sentinel)
            self._process.join()
        assert self.returncode is not None
        return self.returncode

    async def communicate(self) -> tuple[bytes, bytes]:
        output, errors, _ = await asyncio.gather(
            _read_all(self.stdout), _read_all(self.stderr), self.wait()
        )
        for transport in self._transports:
            transport.close()
        return output, errors

    async def open_pipe(self, read_end: int) -> asyncio.StreamReader:
        reader = asyncio.StreamReader()
        transport, _ = await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(read_end, "rb", 0)
        )
        self._transports.append(transport)
        return reader


async def start_forked(
    *command: str | Path,
    env: Mapping[str, str],
    stdout: int | IO[bytes] = asyncio.subprocess.PIPE,
    stderr: int | IO[bytes] = asyncio.subprocess.PIPE,
    cwd: Path | None = None,
    preexec_fn: Callable[[], None] | None = None,
    fork_workers: bool = True,
) -> ForkedProcess:
    """Start a `tapgate` command, like `asyncio.create_subprocess_exec`.

    `preexec_fn` must be picklable.
    """
    read_ends: dict[str, int] = {}
    files: list[int] = []
    for name, target in (("stdout", stdout), ("stderr", stderr)):
        if target == asyncio.subprocess.PIPE:
            read_ends[name], write_end = os.pipe()
            files.append(write_end)
        elif target == asyncio.subprocess.STDOUT:
            files.append(os.dup(files[0]))
        else:
            files.append(os.dup(target if isinstance(target, int) else target.fileno()))
    process = ForkedProcess(fork(command, env, cwd, files, preexec_fn, fork_workers=fork_workers))
    for name, read_end in read_ends.items():
        setattr(process, name, await process.open_pipe(read_end))
    return process


def run_forked(
    *command: str | Path, env: Mapping[str, str], cwd: Path
) -> subprocess.CompletedProcess[str]:
    """Run a `tapgate` command to its end, like `subprocess.run`."""
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        files = [os.dup(file.fileno()) for file in (output, errors)]
        process = fork(command, env, cwd, files, None, fork_workers=False)
        process.join(_COMMAND_TIMEOUT_SECONDS)
        if process.exitcode is None:
            process.kill()
            raise TimeoutError(f"{command} did not exit")
        texts = [os.pread(file.fileno(), 1 << 24, 0).decode() for file in (output, errors)]
        return subprocess.CompletedProcess(command, process.exitcode, *texts)


@cache
def _get_context() -> ForkServerContext:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(_PRELOADED_MODULES)
    return context


def fork(
    command: Sequence[str | Path],
    env: Mapping[str, str],
    cwd: Path | None,
    files: Sequence[int],
    prepare: Callable[[], object] | None,
    *,
    fork_workers: bool,
) -> ForkServerProcess:
    """Start a `tapgate` command with these files for its output, and close them."""
    connections = [Connection(file, readable=False) for file in files]
    argv, folder = [*map(str, command)], cwd or Path.cwd()
    process = _get_context().Process(
        target=_run, args=(argv, dict(env), folder, connections, prepare, fork_workers)
    )
    # Otherwise, the new process would import the program that runs the tests.
    with patch.object(sys.modules["__main__"], "__file__", None, create=True):
        process.start()
    for connection in connections:
        connection.close()
    return process


def _run(
    argv: list[str],
    env: dict[str, str],
    cwd: Path,
    outputs: Sequence[Connection],
    prepare: Callable[[], object] | None,
    fork_workers: bool,
) -> None:
    from tapgate.cli import main

    for number, output in enumerate(outputs, 1):
        os.dup2(output.fileno(), number)
        output.close()
    os.environ.clear()
    os.environ.update(env)
    os.chdir(cwd)
    sys.argv = argv
    if prepare is not None:
        prepare()
    if fork_workers:
        child_process.ChildProcess.spawn = _fork_worker  # type: ignore[assignment, method-assign]
    main()


class ForkedWorker:
    """Worker with the interface of `asyncio.subprocess.Process` that the supervisor uses."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.returncode: int | None = None

    def terminate(self) -> None:
        self._send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self._send_signal(signal.SIGKILL)

    def _send_signal(self, number: int) -> None:
        if self.returncode is None:
            os.kill(self.pid, number)

    async def wait(self) -> int:
        if self.returncode is None:
            exited, loop = asyncio.Event(), asyncio.get_running_loop()
            descriptor = os.pidfd_open(self.pid)
            loop.add_reader(descriptor, exited.set)
            try:
                await exited.wait()
            finally:
                loop.remove_reader(descriptor)
                os.close(descriptor)
            _, status = os.waitpid(self.pid, os.WNOHANG)  # noqa: ASYNC222 (it has exited)
            self.returncode = os.waitstatus_to_exitcode(status)
        return self.returncode


async def _fork_worker(child: child_process.ChildProcess, lifeline: socket.socket) -> ForkedWorker:
    """Replace `ChildProcess.spawn`."""
    descriptors = {
        LISTENER_FD_VARIABLE: child.listener.fileno(),
        LIFELINE_FD_VARIABLE: lifeline.fileno(),
    }
    environ = {**child.environ, **{name: str(number) for name, number in descriptors.items()}}
    if pid := os.fork():
        return ForkedWorker(pid)
    status = 1
    try:
        _run_worker(child.module, environ, {1, 2, *descriptors.values()})
        status = 0
    except SystemExit as error:
        print(error.code, file=sys.stderr)
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(status)


def _run_worker(module: str, environ: Mapping[str, str], inherited: set[int]) -> None:
    os.setsid()
    signal.set_wakeup_fd(-1)
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    # Replaced rather than closed: supervisor objects still refer to the other descriptors.
    null = os.open(os.devnull, os.O_RDONLY)
    for number in [int(path.name) for path in Path("/proc/self/fd").iterdir()]:
        if number not in inherited:
            os.dup2(null, number)
    for descriptor in inherited:
        os.set_inheritable(descriptor, False)
    _forget_threads()
    os.environ.clear()
    os.environ.update(environ)
    sys.argv = [module]
    # A name by which tests find the process, of at most 15 characters.
    Path("/proc/self/comm").write_text(build_worker_name(module, environ["TAPGATE_PORT"]))
    runpy.run_module(module, run_name="__main__", alter_sys=True)


def _forget_threads() -> None:
    """Let the supervisor's thread pools start new threads: a fork has only the current thread."""
    for pool in [item for item in gc.get_objects() if type(item) is ThreadPoolExecutor]:
        internals: Any = pool
        internals._threads = set()
        internals._idle_semaphore = threading.Semaphore(0)


def build_worker_name(module: str, port: str) -> str:
    return f"{module.rpartition('.')[2]}-{port}"


async def _read_all(reader: asyncio.StreamReader | None) -> bytes:
    return b"" if reader is None else await reader.read()
