"""A complete gateway in its own processes, as an operator runs it."""

import asyncio
import atexit
import contextlib
import os
import secrets
import socket
import sys
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import httpx2
import psutil

TAPGATE_EXECUTABLE = Path(sys.executable).with_name("tapgate")
ADMIN = {"email": "ada@example.com", "password": "correct horse battery"}


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
    """Return the worker processes of the gateway at this address.

    Excludes the supervisor and the workers of other gateways started by this process.
    """
    port = str(httpx2.URL(address).port)
    return [
        process
        for process in psutil.Process().children(recursive=True)
        if _is_worker_of(port, process)
    ]


def _is_worker_of(port: str, process: psutil.Process) -> bool:
    try:
        if "tapgate.sandbox.gateway" not in process.cmdline():
            return False
        return process.environ().get("TAPGATE_PORT") == port
    except psutil.Error:
        return False  # the process has ended


class RunningGateway(NamedTuple):
    address: str
    #: Output that follows the line announcing the address.
    stdout: asyncio.StreamReader


@contextlib.asynccontextmanager
async def run_gateway(folder: Path, url: str, *, workers: int) -> AsyncIterator[str]:
    """Run a gateway and yield its address; require a graceful shutdown at the end."""
    async with start_tapgate(folder, url, workers=workers, demo="off") as running:
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
) -> AsyncIterator[RunningGateway]:
    port = free_port()
    inherited = {name: value for name, value in os.environ.items() if "TAPGATE" not in name}
    with (folder / "log").open("wb") as log:
        process = await asyncio.create_subprocess_exec(
            TAPGATE_EXECUTABLE,
            command,
            env=inherited
            | {
                "TAPGATE_DATA_DIR": str(folder / "gateway"),
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
        assert await process.wait() == 0
