"""Concurrency limit: fair between groups, bounded, and exact after cancellation."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from drivers.connections import drain_event_loop
from tapgate.runtime.fair_limit import FairLimit
from tapgate_client.errors import ApiError


def build_limit(**sizes: Any) -> FairLimit:
    defaults = {"slots": 1, "slots_per_group": 1, "queue": 8, "queue_per_group": 8, "timeout": 60.0}
    return FairLimit("Too many", **{**defaults, **sizes})


class ConcurrentCallers:
    """Starts callers that hold a slot until `finish` and records the order in which they run."""

    def __init__(self, limit: FairLimit) -> None:
        self.limit = limit
        self.run_order: list[str] = []
        self.tasks: list[asyncio.Task[None]] = []
        self.gate = asyncio.Semaphore(0)

    async def start(self, *groups: str) -> None:
        for group in groups:
            self.tasks.append(asyncio.create_task(self._call(group)))
            await asyncio.sleep(0)

    async def finish(self, count: int = 1) -> None:
        for _ in range(count):
            self.gate.release()
            for _ in range(5):
                await asyncio.sleep(0)

    async def gather_statuses(self) -> list[int]:
        """Return the HTTP statuses in the order of the calls."""
        done = await asyncio.gather(*self.tasks, return_exceptions=True)
        return [outcome.status if isinstance(outcome, ApiError) else 200 for outcome in done]

    async def _call(self, group: str) -> None:
        async with self.limit.slot(group):
            self.run_order.append(group)
            await self.gate.acquire()


@pytest.fixture
async def callers() -> AsyncIterator[ConcurrentCallers]:
    callers = ConcurrentCallers(build_limit())
    yield callers
    for task in callers.tasks:
        task.cancel()


async def test_waiting_groups_take_turns(callers: ConcurrentCallers) -> None:
    await callers.start("a", "a", "a", "a", "b", "c", "b")
    await callers.finish(7)
    assert callers.run_order == ["a", "a", "b", "c", "a", "b", "a"]
    assert await callers.gather_statuses() == [200] * 7


async def test_group_cannot_fill_the_queue() -> None:
    callers = ConcurrentCallers(build_limit(queue_per_group=2))
    await callers.start("a", "a", "a", "a", "b")
    await callers.finish(4)
    assert await callers.gather_statuses() == [200, 200, 200, 503, 200]


async def test_new_group_displaces_the_newest_caller_of_the_longest_queue() -> None:
    callers = ConcurrentCallers(build_limit(queue=3))
    await callers.start("a", "a", "a", "a", "b", "c", "d")
    await callers.finish(4)
    # "d" finds three groups with one caller each, so it displaces none of them.
    assert await callers.gather_statuses() == [200, 200, 503, 503, 200, 200, 503]


async def test_group_is_limited_to_its_maximum_number_of_slots() -> None:
    callers = ConcurrentCallers(build_limit(slots=3, slots_per_group=2))
    await callers.start("a", "a", "a", "b")
    assert callers.run_order == ["a", "a", "b"]
    await callers.finish(4)
    assert await callers.gather_statuses() == [200] * 4


async def test_queue_timeout_returns_503_with_retry_after() -> None:
    limit = build_limit(timeout=0.01)
    async with limit.slot("a"):
        with pytest.raises(ApiError) as raised:
            async with limit.slot("b"):
                pass
    assert (raised.value.status, raised.value.headers) == (503, {"Retry-After": "1"})
    async with limit.slot("b"):
        pass


async def test_canceled_callers_release_their_slots(callers: ConcurrentCallers) -> None:
    await callers.start("a", "b", "c")
    callers.tasks[1].cancel()
    callers.tasks[0].cancel()
    await drain_event_loop()
    assert callers.run_order == ["a", "c"]
    callers.tasks[2].cancel()
    await drain_event_loop()
    await callers.start("d")
    assert callers.run_order == ["a", "c", "d"]


async def test_caller_canceled_when_it_gets_a_slot_passes_the_slot_on(
    callers: ConcurrentCallers,
) -> None:
    await callers.start("a", "b", "c")
    callers.gate.release()
    await asyncio.sleep(0)  # "a" leaves and passes its slot to "b", which has not run yet
    callers.tasks[1].cancel()
    await drain_event_loop()
    assert "c" in callers.run_order


async def test_canceled_waiter_does_not_block_its_group(callers: ConcurrentCallers) -> None:
    await callers.start("a", "b", "b")
    # The first "b" is canceled, and "a" releases its slot before "b" is removed from the queue.
    (canceled_waiter, _) = callers.limit.waiters["b"]
    canceled_waiter.cancel()
    callers.gate.release()
    await drain_event_loop()
    assert callers.run_order == ["a", "b"]


async def test_canceled_waiter_can_be_displaced() -> None:
    callers = ConcurrentCallers(build_limit(queue=2))
    await callers.start("a", "b", "b")
    callers.limit.waiters["b"][-1].cancel()
    await callers.start("c")
    await callers.finish(3)
    assert callers.run_order == ["a", "b", "c"]
    for task in callers.tasks:
        task.cancel()
