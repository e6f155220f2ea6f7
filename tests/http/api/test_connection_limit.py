"""Process connection limits, per address and in total, and a worker's accept loop."""

import asyncio
import errno
import fcntl
import resource
import socket
import sys
import termios
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest

from builders.http_apps import EdgeApp, load_settings
from drivers.connections import build_server_config
from tapgate.http import worker
from tapgate.http.body_budget import FREE_BODY_BYTES, BodyBudget
from tapgate.http.connection import BoundedConnection
from tapgate.http.connection_limit import ConnectionLimit
from tapgate.http.worker import WorkerServer
from tapgate.messenger.web import render_error


def build_limit(folder: Path, total: int, per_address: int, proxies: str = "") -> ConnectionLimit:
    return ConnectionLimit(
        load_settings(
            folder,
            TAPGATE_MAX_CONNECTIONS=str(total),
            TAPGATE_MAX_CONNECTIONS_PER_ADDRESS=str(per_address),
            TAPGATE_TRUSTED_PROXIES=proxies,
        )
    )


def admit_each(limit: ConnectionLimit, *addresses: str) -> list[bool]:
    return [limit.acquire(address) is not None for address in addresses]


def test_connections_per_address_are_limited_and_released(tmp_path: Path) -> None:
    connections = build_limit(tmp_path, 10, 2)
    first = connections.acquire("192.0.2.1")
    assert admit_each(connections, *["192.0.2.1"] * 3) == [True, False, False]
    assert admit_each(connections, "192.0.2.2") == [True]
    assert first is not None
    first()
    assert connections.open_count == 2
    assert admit_each(connections, "192.0.2.1", "192.0.2.1") == [True, False]


def test_addresses_of_one_ipv6_network_share_the_limit(tmp_path: Path) -> None:
    connections = build_limit(tmp_path, 10, 2)
    assert admit_each(connections, *(f"2001:db8::{n}" for n in range(4))) == [
        True,
        True,
        False,
        False,
    ]
    assert admit_each(connections, "2001:db8:0:1::1") == [True]


def test_total_limit_applies_to_all_addresses(tmp_path: Path) -> None:
    connections = build_limit(tmp_path, 3, 2)
    assert admit_each(connections, *(f"192.0.2.{n}" for n in range(4))) == [True, True, True, False]


def test_trusted_proxy_has_reserved_connections_and_no_limit_per_address(tmp_path: Path) -> None:
    connections = build_limit(tmp_path, 16, 2, "10.0.0.1")
    direct = admit_each(connections, *(f"192.0.2.{n}" for n in range(20)))
    assert direct.count(True) == 14  # one eighth is reserved for trusted proxies
    assert admit_each(connections, *["10.0.0.1"] * 3) == [True, True, False]


async def test_worker_exempts_trusted_proxies_from_the_body_budget_per_address(
    gateway: EdgeApp, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    budget = BodyBudget(8_000)
    monkeypatch.setattr(BoundedConnection, "body_budget", budget)
    async with serve(gateway, build_limit(tmp_path, 16, 2, "10.0.0.1")):
        assert budget.resize("192.0.2.1", 0, FREE_BODY_BYTES + 2_001) is None
        assert budget.resize("10.0.0.1", 0, FREE_BODY_BYTES + 2_001) == 2_001


@pytest.mark.parametrize(
    ("files", "connections"),
    [(1024, 768), (300, 150), (100_000, 4096), (resource.RLIM_INFINITY, 4096)],
)
def test_total_limit_stays_below_the_open_file_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files: int, connections: int
) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (files, files))
    limited = build_limit(tmp_path, 4096, 10_000)
    assert admit_each(limited, *["192.0.2.1"] * 5000).count(True) == connections


@pytest.mark.parametrize("service", ["gateway", "messenger"])
@pytest.mark.parametrize("sends_first", [False, True])
async def test_excess_connection_gets_503_and_a_closed_connection_frees_its_slot(
    gateway: EdgeApp,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    service: str,
    sends_first: bool,
) -> None:
    if service == "messenger":
        monkeypatch.setattr(gateway.app, "render_error", render_error)
    connections = build_limit(tmp_path, 10, 2)
    async with serve(gateway, connections) as port:
        held = [await asyncio.open_connection("127.0.0.1", port) for _ in range(2)]
        await wait_until(lambda: connections.open_count == 2)
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        if sends_first:
            writer.write(b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n")
        response = await asyncio.wait_for(reader.read(), 60)
        head, _, body = response.partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 503 ")
        assert b"\r\nretry-after: 1\r\n" in head
        assert b"\r\nconnection: close" in head
        assert b"Too many connections. Try again shortly." in body
        writer.close()
        for _, held_writer in held:
            held_writer.close()
        await wait_until(lambda: connections.open_count == 0)
        async with httpx2.AsyncClient(base_url=f"http://127.0.0.1:{port}") as client:
            assert (await client.get("/health")).status_code == 200


@asynccontextmanager
async def serve(gateway: EdgeApp, connections: ConnectionLimit) -> AsyncIterator[int]:
    """Run the application behind a worker's accept loop and yield the port."""
    config = build_server_config(gateway.app)
    config.load()
    lifeline, supervisor_end = socket.socketpair()
    with lifeline, supervisor_end, socket.create_server(("127.0.0.1", 0)) as listener:
        server = worker.WorkerServer(config, lifeline, connections)
        server.lifespan = config.lifespan_class(config)
        listener.setblocking(False)
        asyncio.get_running_loop().add_reader(listener, server.accept, listener)
        try:
            yield listener.getsockname()[1]
        finally:
            server.should_exit = True
            asyncio.get_running_loop().remove_reader(listener)
            for connection in list(server.server_state.connections):
                connection.shutdown()
            await wait_until(lambda: connections.open_count == 0)


async def wait_until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not condition():
            await asyncio.sleep(0.01)


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0), backlog=100) as listener:
        listener.setblocking(False)
        yield listener


@pytest.fixture
async def server(gateway: EdgeApp, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[WorkerServer]:
    """A server that accepts connections only when the test calls `_accept`."""
    monkeypatch.setattr(worker, "ACCEPT_PAUSE_SECONDS", 3600.0)
    config = build_server_config(gateway.app)
    config.load()
    lifeline, supervisor_end = socket.socketpair()
    with lifeline, supervisor_end:
        server = WorkerServer(config, lifeline)
        server.lifespan = config.lifespan_class(config)
        yield server
        for connection in list(server.server_state.connections):
            connection.shutdown()
        await asyncio.sleep(0)


async def open_connections(listener: socket.socket, count: int) -> list[socket.socket]:
    address, before = listener.getsockname(), count_pending_connections(listener)
    clients = [socket.create_connection(address) for _ in range(count)]
    async with asyncio.timeout(60):
        while count_pending_connections(listener) < before + count:
            await asyncio.sleep(0.01)
    return clients


def count_pending_connections(listener: socket.socket) -> int:
    """Return the kernel's accept queue length (the listening socket's `tcpi_unacked`)."""
    tcp_info = listener.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 28)
    return int.from_bytes(tcp_info[24:28], sys.byteorder)


async def accept_connections(server: WorkerServer, listener: socket.socket) -> int:
    before = len(server.server_state.connections)
    server.accept(listener)
    await asyncio.gather(*server.connecting)
    await asyncio.sleep(0)
    return len(server.server_state.connections) - before


def close_connections(clients: list[socket.socket]) -> None:
    for client in clients:
        client.close()


async def test_accept_batch_grows_while_connections_are_pending_and_then_resets(
    server: WorkerServer, listener: socket.socket
) -> None:
    clients = await open_connections(listener, 11)
    assert [await accept_connections(server, listener) for _ in range(4)] == [2, 3, 4, 2]
    clients += await open_connections(listener, 3)
    assert await accept_connections(server, listener) == 2
    assert await accept_connections(server, listener) == 1
    assert await accept_connections(server, listener) == 0  # as after another process accepted them
    close_connections(clients)


async def test_too_many_open_files_leaves_connections_in_the_queue(
    server: WorkerServer, listener: socket.socket
) -> None:
    class ExhaustedListener:
        def accept(self) -> None:
            raise OSError(errno.EMFILE, "Too many open files")

        def fileno(self) -> int:
            return listener.fileno()

    clients = await open_connections(listener, 1)
    server.accept(ExhaustedListener())  # type: ignore[arg-type]
    assert await accept_connections(server, listener) == 1
    close_connections(clients)


async def test_connection_lost_before_its_setup_is_not_registered(server: WorkerServer) -> None:
    lost = socket.socket()  # closed, so every operation on it fails
    lost.close()
    await server.connect(lost)
    assert server.server_state.connections == set()


async def test_data_that_a_client_does_not_read_fills_no_large_buffers(
    server: WorkerServer, listener: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker, "freeze_startup_objects", lambda: None)
    await server.startup([listener])
    transports: list[Any] = []

    def is_blocked() -> bool:
        transports[:] = [item.transport for item in server.server_state.connections]
        return any(transport.get_write_buffer_size() for transport in transports)

    try:
        with socket.socket() as client:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            client.connect(listener.getsockname())
            client.sendall(b"GET /api/v1/large HTTP/1.1\r\nHost: x\r\n\r\n")
            await wait_until(is_blocked)
            await asyncio.sleep(0.1)
            (transport,) = transports
            accepted = transport.get_extra_info("socket")
            queued = fcntl.ioctl(accepted, termios.TIOCOUTQ, b"\0" * 4)
            assert 0 < int.from_bytes(queued, sys.byteorder) <= 256 * 1024
            assert transport.get_write_buffer_size() <= 128 * 1024
            assert max(transport.get_write_buffer_limits()) <= 16 * 1024  # for small responses
            # The kernel doubles the value, for its own overhead.
            assert accepted.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF) <= 128 * 1024
    finally:
        asyncio.get_running_loop().remove_reader(listener)
        await wait_until(lambda: not server.server_state.connections)


async def test_worker_accepts_nothing_when_the_supervisor_exits_before_startup(
    server: WorkerServer, listener: socket.socket
) -> None:
    clients = await open_connections(listener, 1)
    lifeline, supervisor_end = socket.socketpair()
    supervisor_end.close()
    with lifeline:
        server.lifeline = lifeline
        await server.startup([listener])
        await wait_until(lambda: server.should_exit)
    assert not server.server_state.connections
    accepted_elsewhere, _ = listener.accept()
    accepted_elsewhere.close()
    close_connections(clients)
