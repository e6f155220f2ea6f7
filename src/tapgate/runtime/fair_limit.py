"""Concurrency limit with round-robin queues per group, so that no group starves another."""

import asyncio
import contextlib
from collections import Counter, deque
from collections.abc import AsyncIterator, Hashable

from tapgate_client.errors import unavailable

_Waiter = asyncio.Future[None]


class FairLimit:
    """Concurrency limit with at most `slots` running and `queue` waiting callers.

    Free slots go to the waiting groups in round-robin order. A group runs at most `slots_per_group`
    and queues at most `queue_per_group` callers. If the queue is full, a new caller displaces the
    newest caller in the group with the longest queue, if that queue is longer than the new caller's
    own queue would become. Callers get 503 with Retry-After if they cannot be queued, are
    displaced, or wait longer than `timeout` seconds.
    """

    def __init__(
        self,
        busy_message: str,
        *,
        slots: int,
        slots_per_group: int,
        queue: int,
        queue_per_group: int,
        timeout: float,
    ) -> None:
        self._busy_message = busy_message
        self._free_slots = slots
        self._slots_per_group = slots_per_group
        self._max_queue = queue
        self._max_queue_per_group = queue_per_group
        self._timeout = timeout
        self._running: Counter[Hashable] = Counter()
        #: Groups with waiting callers, in round-robin order.
        self.waiters: dict[Hashable, deque[_Waiter]] = {}

    @contextlib.asynccontextmanager
    async def slot(self, group: Hashable) -> AsyncIterator[None]:
        """Hold a slot for the context. Wait for a free slot, or raise 503."""
        if self._can_run(group) and group not in self.waiters:
            self._acquire(group)
        else:
            await self._wait_for_slot(group)
        try:
            yield
        finally:
            self._release(group)

    def _can_run(self, group: Hashable) -> bool:
        return self._free_slots > 0 and self._running[group] < self._slots_per_group

    def _acquire(self, group: Hashable) -> None:
        self._free_slots -= 1
        self._running[group] += 1

    def _release(self, group: Hashable) -> None:
        self._free_slots += 1
        self._running[group] -= 1
        if not self._running[group]:
            del self._running[group]
        self._grant_free_slots()

    async def _wait_for_slot(self, group: Hashable) -> None:
        self._ensure_queue_room(group)
        waiter: _Waiter = asyncio.get_running_loop().create_future()
        self.waiters.setdefault(group, deque()).append(waiter)
        try:
            async with asyncio.timeout(self._timeout):
                await waiter
        except BaseException as error:
            if waiter.done() and not waiter.cancelled() and waiter.exception() is None:
                self._release(group)  # the slot was granted just before the timeout or cancellation
            else:
                self._remove_waiter(group, waiter)
            if isinstance(error, TimeoutError):
                raise unavailable(self._busy_message) from None
            raise

    def _ensure_queue_room(self, group: Hashable) -> None:
        queued = len(self.waiters.get(group, ()))
        if queued >= self._max_queue_per_group:
            raise unavailable(self._busy_message)
        if sum(map(len, self.waiters.values())) < self._max_queue:
            return
        longest_group = max(self.waiters, key=lambda other: len(self.waiters[other]))
        if len(self.waiters[longest_group]) <= queued + 1:
            raise unavailable(self._busy_message)
        displaced = self.waiters[longest_group][-1]
        self._remove_waiter(longest_group, displaced)
        if not displaced.done():  # a done waiter has just timed out or been canceled
            displaced.set_exception(unavailable(self._busy_message))

    def _remove_waiter(self, group: Hashable, waiter: _Waiter) -> None:
        queue = self.waiters.get(group)
        if queue is not None and waiter in queue:
            queue.remove(waiter)
            if not queue:
                del self.waiters[group]

    def _grant_free_slots(self) -> None:
        for group in list(self.waiters):
            if not self._can_run(group):
                continue
            queue = self.waiters.pop(group)
            while queue and queue[0].done():  # timed out or canceled, but not yet removed
                queue.popleft()
            if not queue:
                continue
            self._acquire(group)
            queue.popleft().set_result(None)
            if queue:
                self.waiters[group] = queue  # moved to the end of the round-robin order
