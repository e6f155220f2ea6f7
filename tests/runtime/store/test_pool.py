"""Connection pool, tested with fake connections and random operation sequences."""

import asyncio
from typing import Any

import asyncpg
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tapgate.runtime.store import pool as pool_module
from tapgate.runtime.store.pool import Pool

POOL_SIZE = 3
SHORT_TIMEOUT_SECONDS = 0.01
LONG_TIMEOUT_SECONDS = 30.0


class FakeConnection:
    """The part of a connection that the pool uses."""

    def __init__(self) -> None:
        self.closed = False

    def is_closed(self) -> bool:
        return self.closed

    def terminate(self) -> None:
        self.closed = True

    async def close(self) -> None:
        self.closed = True


class FakeServer:
    """Opens fake connections and fails if more than `POOL_SIZE` are open."""

    def __init__(self) -> None:
        self.connections: list[FakeConnection] = []
        self.is_down = False

    async def connect(self) -> Any:
        await asyncio.sleep(0)
        if self.is_down:
            raise ConnectionRefusedError
        self.connections.append(FakeConnection())
        assert self.open_count <= POOL_SIZE
        return self.connections[-1]

    @property
    def open_count(self) -> int:
        return sum(not connection.closed for connection in self.connections)


@pytest.fixture
def fake_server() -> FakeServer:
    return FakeServer()


@pytest.fixture
def pool(fake_server: FakeServer) -> Pool:
    return Pool(fake_server.connect, POOL_SIZE)


async def test_released_connection_is_reused(pool: Pool, fake_server: FakeServer) -> None:
    first = await pool.acquire(LONG_TIMEOUT_SECONDS)
    pool.release(first)
    assert await pool.acquire(LONG_TIMEOUT_SECONDS) is first
    assert fake_server.open_count == 1


async def test_waiting_tasks_get_connections_in_order_of_arrival(pool: Pool) -> None:
    held = [await pool.acquire(LONG_TIMEOUT_SECONDS) for _ in range(POOL_SIZE)]
    waiting = [asyncio.create_task(pool.acquire(LONG_TIMEOUT_SECONDS)) for _ in range(2)]
    await asyncio.sleep(0)
    pool.release(held[1])
    pool.release(held[0])
    assert [await task for task in waiting] == [held[1], held[0]]


async def test_acquire_times_out_and_the_pool_recovers(pool: Pool) -> None:
    held = [await pool.acquire(LONG_TIMEOUT_SECONDS) for _ in range(POOL_SIZE)]
    with pytest.raises(TimeoutError):
        await pool.acquire(SHORT_TIMEOUT_SECONDS)
    pool.release(held[0])
    assert await pool.acquire(LONG_TIMEOUT_SECONDS) is held[0]


async def test_broken_connection_is_replaced_for_a_waiting_task(
    pool: Pool, fake_server: FakeServer
) -> None:
    held = [await pool.acquire(LONG_TIMEOUT_SECONDS) for _ in range(POOL_SIZE)]
    waiting = asyncio.create_task(pool.acquire(LONG_TIMEOUT_SECONDS))
    await asyncio.sleep(0)
    held[0].terminate()
    pool.release(held[0])
    assert await waiting not in held
    assert fake_server.open_count == POOL_SIZE


async def test_connection_assigned_to_a_canceled_task_returns_to_the_pool(pool: Pool) -> None:
    held = [await pool.acquire(LONG_TIMEOUT_SECONDS) for _ in range(POOL_SIZE)]
    waiting = asyncio.create_task(pool.acquire(LONG_TIMEOUT_SECONDS))
    await asyncio.sleep(0)
    pool.release(held[0])
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert await pool.acquire(LONG_TIMEOUT_SECONDS) is held[0]


async def test_slot_offered_to_a_canceled_task_goes_to_the_next_one(pool: Pool) -> None:
    held = [await pool.acquire(LONG_TIMEOUT_SECONDS) for _ in range(POOL_SIZE)]
    canceled, waiting = [asyncio.create_task(pool.acquire(LONG_TIMEOUT_SECONDS)) for _ in range(2)]
    await asyncio.sleep(0)
    held[0].terminate()
    pool.release(held[0])
    canceled.cancel()
    with pytest.raises(asyncio.CancelledError):
        await canceled
    for _ in range(4):
        await asyncio.sleep(0)
    assert waiting.done(), "the task still waits although the pool has a free slot"
    assert await waiting not in held


async def test_failed_connect_frees_its_slot(pool: Pool, fake_server: FakeServer) -> None:
    fake_server.is_down = True
    for _ in range(POOL_SIZE + 1):
        with pytest.raises(ConnectionRefusedError):
            await pool.acquire(LONG_TIMEOUT_SECONDS)
    fake_server.is_down = False
    assert len({await pool.acquire(LONG_TIMEOUT_SECONDS) for _ in range(POOL_SIZE)}) == POOL_SIZE


async def test_connection_idle_for_too_long_is_closed(
    pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = await pool.acquire(LONG_TIMEOUT_SECONDS)
    pool.release(old)
    monkeypatch.setattr(pool_module, "MAX_IDLE_SECONDS", 0.0)
    assert await pool.acquire(LONG_TIMEOUT_SECONDS) is not old
    assert old.is_closed()


async def test_connection_opened_while_the_pool_closes_is_closed(
    pool: Pool, fake_server: FakeServer
) -> None:
    acquiring = asyncio.create_task(pool.acquire(LONG_TIMEOUT_SECONDS))
    await asyncio.sleep(0)
    await pool.close()
    with pytest.raises(asyncpg.InterfaceError, match="the connection pool is closing"):
        await acquiring
    assert len(fake_server.connections) == 1
    assert fake_server.open_count == 0


async def test_close_waits_for_connections_in_use(pool: Pool, fake_server: FakeServer) -> None:
    used, idle = (
        await pool.acquire(LONG_TIMEOUT_SECONDS),
        await pool.acquire(LONG_TIMEOUT_SECONDS),
    )
    pool.release(idle)
    closing = asyncio.create_task(pool.close())
    await asyncio.sleep(0)
    assert not closing.done()
    with pytest.raises(asyncpg.InterfaceError):
        await pool.acquire(LONG_TIMEOUT_SECONDS)
    pool.release(used)
    await closing
    assert fake_server.open_count == 0


@settings(max_examples=200)
@given(
    st.lists(st.sampled_from(["acquire", "release", "break", "cancel", "down", "up"]), max_size=60)
)
def test_connections_are_never_lost_or_shared(steps: list[str]) -> None:
    asyncio.run(_run_steps(steps))


async def _run_steps(steps: list[str]) -> None:
    fake_server = FakeServer()
    pool = Pool(fake_server.connect, POOL_SIZE)
    acquiring: list[asyncio.Task[Any]] = []
    held: list[Any] = []
    for step in steps:
        if step == "acquire":
            acquiring.append(asyncio.create_task(pool.acquire(LONG_TIMEOUT_SECONDS)))
        elif step in ("release", "break") and held:
            if step == "break":
                held[0].terminate()
            pool.release(held.pop(0))
        elif step == "cancel" and acquiring:
            acquiring.pop().cancel()
        elif step in ("down", "up"):
            fake_server.is_down = step == "down"
        for _ in range(4):
            await asyncio.sleep(0)
        finished = [task for task in acquiring if task.done()]
        acquiring = [task for task in acquiring if not task.done()]
        held += [task.result() for task in finished if not task.exception()]
        assert len(set(held)) == len(held)
        assert not acquiring or len(held) == POOL_SIZE or fake_server.is_down
    fake_server.is_down = False
    for task in acquiring:
        task.cancel()
    await asyncio.gather(*acquiring, return_exceptions=True)
    for connection in held:
        pool.release(connection)
    connections = [await pool.acquire(LONG_TIMEOUT_SECONDS) for _ in range(POOL_SIZE)]
    assert len(set(connections)) == POOL_SIZE
