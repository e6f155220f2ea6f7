"""Concurrency limit whose waiting callers take turns by group, so that no group starves another."""

import asyncio
import contextlib
from collections import Counter, deque
from collections.abc import AsyncIterator, Hashable

from tapgate.errors import unavailable

_Waiter = asyncio.Future[None]


class FairLimit:
    """At most `slots` callers run and `queue` callers wait; further ones get 503 with Retry-After.

    Free slots go to the waiting groups in round-robin order. A group runs at most `slots_per_group`
    and queues at most `queue_per_group` callers. When the queue is full, the newest caller of the
    longest group gives up its place to a caller of a shorter one.
    """

    def __init__(
        self,
        busy: str,
        *,
        slots: int,
        slots_per_group: int,
        queue: int,
        queue_per_group: int,
        timeout: float,
    ) -> None:
        self._busy = busy
        self._free = slots
        self._slots_per_group = slots_per_group
        self._queue = queue
        self._queue_per_group = queue_per_group
        self._timeout = timeout
        self._running: Counter[Hashable] = Counter()
        #: In the order of the next turn; a group without waiting callers is not in it.
        self._waiting: dict[Hashable, deque[_Waiter]] = {}

    @contextlib.asynccontextmanager
    async def slot(self, group: Hashable) -> AsyncIterator[None]:
        """Hold a slot, waiting for it up to the timeout."""
        if self._can_run(group) and group not in self._waiting:
            self._occupy(group)
        else:
            await self._wait(group)
        try:
            yield
        finally:
            self._release(group)

    def _can_run(self, group: Hashable) -> bool:
        return self._free > 0 and self._running[group] < self._slots_per_group

    def _occupy(self, group: Hashable) -> None:
        self._free -= 1
        self._running[group] += 1

    def _release(self, group: Hashable) -> None:
        self._free += 1
        self._running[group] -= 1
        if not self._running[group]:
            del self._running[group]
        self._hand_out()

    async def _wait(self, group: Hashable) -> None:
        self._make_room(group)
        waiter: _Waiter = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(group, deque()).append(waiter)
        try:
            async with asyncio.timeout(self._timeout):
                await waiter
        except BaseException as error:
            if waiter.done() and not waiter.cancelled() and waiter.exception() is None:
                self._release(group)  # the slot came in the moment of the timeout
            else:
                self._withdraw(group, waiter)
            if isinstance(error, TimeoutError):
                raise unavailable(self._busy) from None
            raise

    def _make_room(self, group: Hashable) -> None:
        own = len(self._waiting.get(group, ()))
        if own >= self._queue_per_group:
            raise unavailable(self._busy)
        if sum(map(len, self._waiting.values())) < self._queue:
            return
        longest = max(self._waiting, key=lambda other: len(self._waiting[other]))
        if len(self._waiting[longest]) <= own + 1:
            raise unavailable(self._busy)
        displaced = self._waiting[longest][-1]
        self._withdraw(longest, displaced)
        if not displaced.done():  # else it has just timed out
            displaced.set_exception(unavailable(self._busy))

    def _withdraw(self, group: Hashable, waiter: _Waiter) -> None:
        queue = self._waiting.get(group)
        if queue is not None and waiter in queue:
            queue.remove(waiter)
            if not queue:
                del self._waiting[group]

    def _hand_out(self) -> None:
        for group in list(self._waiting):
            if not self._can_run(group):
                continue
            queue = self._waiting.pop(group)
            while queue and queue[0].done():  # timed out, but not withdrawn yet
                queue.popleft()
            if not queue:
                continue
            self._occupy(group)
            queue.popleft().set_result(None)
            if queue:
                self._waiting[group] = queue  # behind all other groups
