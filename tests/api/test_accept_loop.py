"""Accept loop of a worker: small batches that grow while more connections are pending."""

import asyncio
import errno
import socket
import sys
from collections.abc import AsyncIterator, Iterator
from typing import Any, cast

import pytest
import uvicorn

from api.builders import EdgeApp
from tapgate.http import worker
from tapgate.http.protocol import HttpProtocol
from tapgate.http.worker import _Server


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0), backlog=100) as listener:
        listener.setblocking(False)
        yield listener


@pytest.fixture
async def server(gateway: EdgeApp, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[_Server]:
    """A server that accepts connections only when the test calls `_accept`."""
    monkeypatch.setattr(worker, "_ACCEPT_PAUSE_SECONDS", 3600.0)
    config = uvicorn.Config(
        cast(Any, gateway.app),
        http=HttpProtocol,
        interface="asgi3",
        ws="none",
        lifespan="off",
        log_config=None,
        proxy_headers=False,
    )
    config.load()
    lifeline, supervisor_end = socket.socketpair()
    with lifeline, supervisor_end:
        server = _Server(config, lifeline)
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
    """Return the length of the kernel's accept queue (`tcpi_unacked` of the listening socket)."""
    tcp_info = listener.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 28)
    return int.from_bytes(tcp_info[24:28], sys.byteorder)


async def accept_connections(server: _Server, listener: socket.socket) -> int:
    before = len(server.server_state.connections)
    server._accept(listener)
    await asyncio.gather(*server._connecting)
    await asyncio.sleep(0)
    return len(server.server_state.connections) - before


def close_connections(clients: list[socket.socket]) -> None:
    for client in clients:
        client.close()


async def test_accept_batch_grows_while_connections_are_pending_and_then_resets(
    server: _Server, listener: socket.socket
) -> None:
    clients = await open_connections(listener, 11)
    assert [await accept_connections(server, listener) for _ in range(4)] == [2, 3, 4, 2]
    clients += await open_connections(listener, 3)
    assert await accept_connections(server, listener) == 2
    assert await accept_connections(server, listener) == 1
    assert await accept_connections(server, listener) == 0  # as after another process accepted them
    close_connections(clients)


async def test_too_many_open_files_leaves_connections_in_the_queue(
    server: _Server, listener: socket.socket
) -> None:
    class ExhaustedListener:
        def accept(self) -> None:
            raise OSError(errno.EMFILE, "Too many open files")

        def fileno(self) -> int:
            return listener.fileno()

    clients = await open_connections(listener, 1)
    server._accept(ExhaustedListener())  # type: ignore[arg-type]
    assert await accept_connections(server, listener) == 1
    close_connections(clients)


async def test_connection_lost_before_its_setup_is_not_registered(server: _Server) -> None:
    lost = socket.socket()  # closed, so every operation on it fails
    lost.close()
    await server._connect(lost)
    assert server.server_state.connections == set()


async def test_worker_accepts_nothing_when_the_supervisor_exits_before_startup(
    server: _Server, listener: socket.socket
) -> None:
    clients = await open_connections(listener, 1)
    lifeline, supervisor_end = socket.socketpair()
    supervisor_end.close()
    with lifeline:
        server._lifeline = lifeline
        await server.startup([listener])
        await asyncio.sleep(0.05)
    assert server.should_exit
    assert not server.server_state.connections
    accepted_elsewhere, _ = listener.accept()
    accepted_elsewhere.close()
    close_connections(clients)
