"""Runs leased jobs concurrently, limited per destination and in total.

A slow destination occupies only its own share of the concurrency. If all of the concurrency is in
use, a destination whose jobs all wait gets the next free slot. Each destination has a window:
the number of jobs that may be leased for it, running or waiting in memory. The window grows while
the destination processes its jobs quickly and shrinks when it becomes slow, so jobs do not wait
long after their lease.
"""

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable, Hashable, Iterator
from typing import Final, Generic, TypeVar

K = TypeVar("K", bound=Hashable)
J = TypeVar("J")

#: A window grows if half of it is processed within this time.
TARGET_SECONDS: Final = 0.5
#: A destination's window is kept for this time while it has no jobs.
_IDLE_SECONDS: Final = 60.0


class _Lane(Generic[J]):
    """One destination's jobs."""

    def __init__(self, window: int) -> None:
        self.waiting: deque[J] = deque()
        self.running = 0
        self.window = window
        self.is_full = False  # the last lease used the whole capacity, so more jobs may be due
        self.filled_at = 0.0

    @property
    def leased(self) -> int:
        return len(self.waiting) + self.running

    @property
    def is_half_empty(self) -> bool:
        return self.leased <= self.window // 2


class JobRunner(Generic[K, J]):
    """Runs jobs with `run`, which must not raise.

    `on_capacity` is called when jobs finish while more may be due.
    """

    def __init__(
        self,
        run: Callable[[J], Awaitable[None]],
        *,
        max_concurrent: int,
        max_concurrent_per_destination: int,
        max_window: int,
        on_capacity: Callable[[], None],
    ) -> None:
        self._run = run
        self._max_concurrent = max_concurrent
        self._min_window = max_concurrent_per_destination
        self._max_window = max_window
        self._on_capacity = on_capacity
        self._lanes: dict[K, _Lane[J]] = {}
        self._starved: dict[K, _Lane[J]] = {}  # jobs wait and none runs; longest waiting first
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def leased(self) -> int:
        """Number of jobs that are running or waiting."""
        return sum(lane.leased for lane in self._lanes.values())

    @property
    def _has_free_slots(self) -> bool:
        return len(self._tasks) < self._max_concurrent

    def get_capacities(self) -> dict[K, int]:
        """Return how many jobs may be leased for each destination that has leased jobs."""
        now = time.monotonic()
        for key, lane in list(self._lanes.items()):
            self._adapt_window(lane, now)
            if not lane.leased and now - lane.filled_at > _IDLE_SECONDS:
                del self._lanes[key]
        return {key: lane.window - lane.leased for key, lane in self._lanes.items()}

    def has_jobs(self, destination: K) -> bool:
        """Return whether jobs are running or waiting for a destination."""
        lane = self._lanes.get(destination)
        return lane is not None and lane.leased > 0

    def add(self, destination: K, jobs: list[J]) -> None:
        """Start or enqueue the jobs from one lease."""
        lane = self._lanes.get(destination)
        if lane is None:
            lane = self._lanes[destination] = _Lane(self._min_window)
        lane.waiting.extend(jobs)
        lane.is_full = lane.leased >= lane.window
        lane.filled_at = time.monotonic()
        self._start_tasks(destination, lane)

    def take_waiting(self, is_expired: Callable[[J], bool] = lambda _: True) -> Iterator[J]:
        """Remove and yield the jobs that have not started, or only the expired ones."""
        for lane in self._lanes.values():
            while lane.waiting and is_expired(lane.waiting[0]):
                lane.window = self._min_window
                yield lane.waiting.popleft()

    async def wait_until_idle(self) -> None:
        while self._tasks:
            await asyncio.wait(self._tasks)

    async def stop(self, *, timeout_seconds: float) -> None:
        """Wait for running jobs until the timeout, then cancel them and drop waiting jobs."""
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=timeout_seconds)
        for lane in self._lanes.values():
            lane.waiting.clear()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _adapt_window(self, lane: _Lane[J], now: float) -> None:
        if not lane.is_full or not lane.is_half_empty:
            return
        is_fast = now - lane.filled_at < TARGET_SECONDS
        window = lane.window * 2 if is_fast else lane.window // 2
        lane.window = min(max(window, self._min_window), self._max_window)
        lane.is_full = False

    def _start_tasks(self, destination: K, lane: _Lane[J]) -> None:
        while lane.waiting and lane.running < self._min_window and self._has_free_slots:
            lane.running += 1
            task = asyncio.create_task(self._run_lane(lane, lane.waiting.popleft()))
            self._tasks.add(task)
            task.add_done_callback(lambda task: self._on_task_done(task, destination))
        if lane.waiting and not lane.running:
            self._starved[destination] = lane
        else:
            self._starved.pop(destination, None)

    async def _run_lane(self, lane: _Lane[J], job: J) -> None:
        """Run a job and then its destination's waiting jobs, one at a time.

        Return early if another destination is starved.
        """
        while True:
            await self._run(job)
            if not lane.waiting or self._starved:
                return
            job = lane.waiting.popleft()
            if lane.is_full and lane.is_half_empty:
                self._on_capacity()

    def _on_task_done(self, task: asyncio.Task[None], destination: K) -> None:
        had_free_slots = self._has_free_slots
        self._tasks.discard(task)
        lane = self._lanes[destination]
        lane.running -= 1
        if lane.is_full and lane.is_half_empty:
            self._on_capacity()
        while self._starved and self._has_free_slots:
            other = next(iter(self._starved))
            self._start_tasks(other, self._starved[other])
        # Jobs may have been added after the task found none and before this callback.
        self._start_tasks(destination, lane)
        if not lane.leased and self._max_window == self._min_window:
            del self._lanes[destination]  # there is no window to keep
        if not had_free_slots:  # others may have waited for this task
            for other, waiting in self._lanes.items():
                if not self._has_free_slots:
                    return
                self._start_tasks(other, waiting)
