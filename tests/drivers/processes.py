"""Tapgate in its own processes, as an operator runs it, and HTTP clients of these processes."""

import asyncio
import atexit
import contextlib
import io
import itertools
import os
import secrets
import signal
import socket
import subprocess
import sys
from collections import Counter
from collections.abc import (
    AsyncIterator,
    Callable,
    Coroutine,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple
from unittest.mock import patch

import httpx2
import psutil
import pytest

from drivers.actors import require_error
from drivers.forked import ForkedProcess, build_worker_name, run_forked, start_forked
from drivers.messenger import build_flow_key
from tapgate import cli
from tapgate.http.api.services import Services
from tapgate.http.connection import IDLE_TIMEOUT_SECONDS
from tapgate_sandbox.fake_provider import server
from tapgate_sandbox.fake_provider.provider import Provider

TAPGATE_EXECUTABLE = Path(sys.executable).with_name("tapgate")
ADMIN = {"email": "ada@example.com", "password": "correct horse battery"}


def build_environ(data_dir: Path, **variables: str) -> dict[str, str]:
    """Return this process's environment, with only these Tapgate settings.

    There are no report workers, so that an installation starts faster.
    """
    inherited = {name: value for name, value in os.environ.items() if "TAPGATE" not in name}
    defaults = {"TAPGATE_DATA_DIR": str(data_dir), "TAPGATE_REPORT_WORKERS": "0"}
    return inherited | defaults | variables


def _has_interpreter_variables(variables: Mapping[str, str]) -> bool:
    """Return whether a variable takes effect only when an interpreter starts, not in a fork."""
    return any(name.startswith("PYTHON") for name in variables)


def run_command(
    data_dir: Path, *arguments: str, **variables: str
) -> subprocess.CompletedProcess[str]:
    """Run a `tapgate` command to its end, with these settings."""
    command = (TAPGATE_EXECUTABLE, *arguments)
    environ, folder = build_environ(data_dir, **variables), data_dir.parent
    if not _has_interpreter_variables(variables):
        return run_forked(*command, env=environ, cwd=folder)
    return subprocess.run(
        command, env=environ, cwd=folder, capture_output=True, text=True, timeout=60, check=False
    )


async def run_command_on(
    services: Services, *arguments: str, **variables: str
) -> subprocess.CompletedProcess[str]:
    """Run a `tapgate` command on a test's installation, in a thread of this process."""
    url = str(services.settings.database_url)
    environ = build_environ(
        services.settings.data_dir, **{"TAPGATE_DATABASE_URL": url, **variables}
    )
    return await asyncio.to_thread(_run_in_process, arguments, environ)


def _run_in_process(
    arguments: Sequence[str], environ: Mapping[str, str]
) -> subprocess.CompletedProcess[str]:
    output, errors = io.StringIO(), io.StringIO()
    with (
        patch.dict(os.environ, environ, clear=True),
        patch.object(sys, "argv", ["tapgate", *arguments]),
        contextlib.redirect_stdout(output),
        contextlib.redirect_stderr(errors),
        pytest.raises(SystemExit) as exit_info,
    ):
        cli.main()
    status = exit_info.value.code
    assert isinstance(status, int)
    return subprocess.CompletedProcess(arguments, status, output.getvalue(), errors.getvalue())


#: UDP sockets that reserve port numbers across all test processes; no test uses UDP.
_reserved_ports: list[socket.socket] = []


def free_port() -> int:
    """Return a TCP port that no other caller gets while this process runs.

    The port is below the ephemeral range, so an outgoing connection cannot take it.
    """
    while True:
        port = 10_000 + secrets.randbelow(20_000)
        reservation = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        try:
            reservation.bind(("127.0.0.1", port))
            with socket.create_server(("127.0.0.1", port)):
                _reserved_ports.append(reservation)
                return port
        except OSError:
            reservation.close()


@atexit.register
def _release_ports() -> None:
    for reservation in _reserved_ports:
        reservation.close()


def list_workers(address: httpx2.URL | str) -> list[psutil.Process]:
    """Return the worker processes for the gateway at this address.

    Excludes the supervisor and the workers of other gateways started by this process.
    """
    port = str(httpx2.URL(address).port)
    return [
        process
        for process in psutil.Process().children(recursive=True)
        if _is_worker_of(port, process)
    ]


def _is_worker_of(port: str, process: psutil.Process) -> bool:
    module = "tapgate_sandbox.gateway"
    try:
        if process.name() == build_worker_name(module, port):
            return True
        return module in process.cmdline() and process.environ().get("TAPGATE_PORT") == port
    except psutil.Error:
        return False  # the process has ended


class RunningGateway(NamedTuple):
    address: str
    #: Output that follows the line announcing the address.
    stdout: asyncio.StreamReader


@contextlib.asynccontextmanager
async def run_gateway(
    folder: Path, url: str, *, workers: int, fork_workers: bool = True
) -> AsyncIterator[str]:
    """Run a gateway and yield its address; require a graceful shutdown at the end."""
    async with start_tapgate(
        folder, url, workers=workers, demo="off", fork_workers=fork_workers
    ) as running:
        yield running.address


@contextlib.asynccontextmanager
async def run_gateway_and_messenger(
    folder: Path, url: str, **variables: str
) -> AsyncIterator[tuple[str, str]]:
    """Run a gateway and a messenger and yield their addresses."""
    messenger = free_port()
    async with start_tapgate(
        folder,
        url,
        workers=1,
        demo="off",
        command="up",
        messenger_port=messenger,
        variables=variables,
    ) as running:
        while not (await running.stdout.readline()).startswith(b"The messenger listens"):
            pass
        yield running.address, f"http://127.0.0.1:{messenger}"


@contextlib.asynccontextmanager
async def start_tapgate(
    folder: Path,
    url: str,
    *,
    workers: int,
    demo: str,
    command: str = "serve",
    messenger_port: int | None = None,
    variables: Mapping[str, str] = MappingProxyType({}),
    fork_workers: bool = True,
) -> AsyncIterator[RunningGateway]:
    """Run Tapgate. Forked workers start faster, but their environments cannot be inspected."""
    port = free_port()
    start: Any = asyncio.create_subprocess_exec
    if not _has_interpreter_variables(variables):
        start = partial(start_forked, fork_workers=fork_workers)
    with (folder / "log").open("wb") as log:
        process = await start(
            TAPGATE_EXECUTABLE,
            command,
            env=build_environ(folder / "gateway")
            | {
                "TAPGATE_DATABASE_URL": url,
                "TAPGATE_PORT": str(port),
                "TAPGATE_MESSENGER_PORT": str(messenger_port or free_port()),
                "TAPGATE_WORKERS": str(workers),
                "TAPGATE_ADMIN_EMAIL": ADMIN["email"],
                "TAPGATE_ADMIN_PASSWORD": ADMIN["password"],
                "TAPGATE_RATE_LIMIT": "100000",
                "TAPGATE_RATE_BURST": "100000",
                "TAPGATE_DEMO": demo,
            }
            | variables,
            stdout=asyncio.subprocess.PIPE,
            stderr=log,
        )
    try:
        assert process.stdout is not None
        while not (line := await process.stdout.readline()).startswith(b"The gateway listens"):
            assert line, (folder / "log").read_text()
        yield RunningGateway(f"http://127.0.0.1:{port}", process.stdout)
    finally:
        process.terminate()
        await process.communicate()
        assert process.returncode == 0


ACCESS_TOKEN = "EAAG-canary-access-7c1e"
PHONE_NUMBER_ID = "106540352242922"
GRAPH_APP_SECRET = "canary-app-secret-e41b"
VERIFY_TOKEN, BRIDGE_TOKEN = "canary-verify-token-90af", "canary-bridge-token-3d27"


class RunningServices:
    def __init__(self, process: ForkedProcess, gateway: str, messenger: str, log: Path) -> None:
        self._supervisor = psutil.Process(process.pid)
        self.gateway = gateway
        self.messenger = messenger
        self._log = log

    def list_processes(self, service: str) -> list[psutil.Process]:
        found = []
        for child in self._supervisor.children():
            with contextlib.suppress(psutil.Error):  # the process may have exited
                # The gateway's module is `tapgate.server.gateway` or `tapgate_sandbox.gateway`.
                if any(
                    part.startswith(("tapgate.", "tapgate_sandbox."))
                    and part.endswith(f".{service}")
                    for part in child.cmdline()
                ):
                    found.append(child)
        return found

    def send_signal(self, service: str, number: signal.Signals) -> None:
        for child in self.list_processes(service):
            child.send_signal(number)

    def read_log(self) -> str:
        return self._log.read_text()


@contextlib.asynccontextmanager
async def run_provider(callback: str) -> AsyncIterator[tuple[Provider, str]]:
    provider = Provider(
        access_token=ACCESS_TOKEN,
        phone_number_id=PHONE_NUMBER_ID,
        callback=callback,
        app_secret=GRAPH_APP_SECRET,
    )
    async with server.serve(provider) as url:
        yield provider, url


@contextlib.asynccontextmanager
async def run_services(
    folder: Path,
    database_url: str,
    *,
    messenger_port: int,
    graph_url: str,
    workers: int = 1,
    fork_workers: bool = True,
    more: Mapping[str, str] = MappingProxyType({}),
) -> AsyncIterator[RunningServices]:
    """Run the services with the settings in `more`, and require a clean stop on SIGTERM."""
    port = free_port()
    with (folder / "log").open("ab") as log:
        process = await start_forked(
            TAPGATE_EXECUTABLE,
            "up",
            env=build_environ(folder / "data")
            | {
                "TAPGATE_DATABASE_URL": database_url,
                "TAPGATE_PORT": str(port),
                "TAPGATE_MESSENGER_PORT": str(messenger_port),
                "TAPGATE_MESSENGER_WORKERS": str(workers),
                "TAPGATE_MESSENGER_GRAPH_URL": graph_url,
                "TAPGATE_MESSENGER_ACCESS_TOKEN": ACCESS_TOKEN,
                "TAPGATE_MESSENGER_PHONE_NUMBER_ID": PHONE_NUMBER_ID,
                "TAPGATE_MESSENGER_APP_SECRET": GRAPH_APP_SECRET,
                "TAPGATE_MESSENGER_VERIFY_TOKEN": VERIFY_TOKEN,
                "TAPGATE_MESSENGER_BRIDGE_TOKEN": BRIDGE_TOKEN,
                "TAPGATE_MESSENGER_FLOW_PRIVATE_KEY": build_flow_key()[0],
                "TAPGATE_MESSENGER_RATE": "1000",
                "TAPGATE_ADMIN_EMAIL": ADMIN["email"],
                "TAPGATE_ADMIN_PASSWORD": ADMIN["password"],
                "TAPGATE_DEMO": "off",
                **more,
            },
            stdout=asyncio.subprocess.PIPE,
            stderr=log,
            fork_workers=fork_workers,
        )
    try:
        assert process.stdout is not None
        while not (line := await process.stdout.readline()).startswith(b"Press Ctrl-C"):
            assert line, (folder / "log").read_text()
        yield RunningServices(
            process,
            f"http://127.0.0.1:{port}",
            f"http://127.0.0.1:{messenger_port}",
            folder / "log",
        )
    finally:
        process.terminate()
        await process.communicate()
        assert process.returncode == 0


_CONNECTIONS_PER_PROCESS = 25
#: Less than the gateway's keep-alive timeout. A test that pauses longer could get a connection to
#: another worker than the one that `open_client_per_process` selected.
_KEEPALIVE_SECONDS = IDLE_TIMEOUT_SECONDS - 15


def open_client(address: httpx2.URL | str, *, max_connections: int = 100) -> httpx2.AsyncClient:
    """Open a client that fails the test on any 5xx response."""
    return httpx2.AsyncClient(
        base_url=address,
        trust_env=False,
        timeout=60,
        limits=httpx2.Limits(max_connections=max_connections, keepalive_expiry=_KEEPALIVE_SECONDS),
        event_hooks={"response": [_require_no_failure]},
    )


async def _require_no_failure(response: httpx2.Response) -> None:
    assert response.status_code < 500, await response.aread()


@contextlib.asynccontextmanager
async def open_client_per_process(address: httpx2.URL) -> AsyncIterator[list[httpx2.AsyncClient]]:
    """Open one client per worker; while a client connects, the other workers are suspended."""
    processes = list_workers(address)
    async with contextlib.AsyncExitStack() as stack:
        clients = []
        for process in processes:
            client = await stack.enter_async_context(
                open_client(address, max_connections=_CONNECTIONS_PER_PROCESS)
            )
            clients.append(client)
            with _suspend(other for other in processes if other != process):
                await asyncio.gather(
                    *(client.get("/health") for _ in range(_CONNECTIONS_PER_PROCESS))
                )
        yield clients


@contextlib.contextmanager
def _suspend(processes: Iterable[psutil.Process]) -> Iterator[None]:
    with contextlib.ExitStack() as stack:
        for process in processes:
            process.suspend()
            stack.callback(process.resume)
        yield


Client = httpx2.AsyncClient
PendingResponse = Coroutine[Any, Any, httpx2.Response]
SendRequest = Callable[[Client], PendingResponse]


async def send_round_robin(
    clients: Sequence[Client], *requests: SendRequest
) -> list[httpx2.Response]:
    """Send all requests concurrently, alternating between the clients."""
    assignments = zip(requests, itertools.cycle(clients), strict=False)
    return await asyncio.gather(*(request(client) for request, client in assignments))


def count_outcomes(responses: Sequence[httpx2.Response]) -> Counter[Any]:
    """Count the responses by outcome: 200 for any success, else status and error code."""
    return Counter(
        200 if response.is_success else require_error(response) for response in responses
    )


def freeze_processes(pgdata: Path) -> Callable[[], object]:
    """Suspend a PostgreSQL server: connections are accepted, but nothing responds."""
    pid = int((pgdata / "postmaster.pid").read_text().split()[0])
    postmaster = psutil.Process(pid)
    postmaster.suspend()  # first, so that it starts no new processes
    frozen = [postmaster, *postmaster.children()]
    for process in frozen:
        with contextlib.suppress(psutil.NoSuchProcess):  # a session that has just ended
            process.suspend()

    def thaw() -> None:
        for process in frozen:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.resume()

    return thaw
