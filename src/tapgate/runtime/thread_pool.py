"""Thread pool for work that would block the event loop."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from tapgate_client.errors import unavailable

T = TypeVar("T")


class BoundedThreadPool:
    """Thread pool with at most `max_pending` pending calls. Others get 503 with Retry-After.

    A call is pending while its caller waits, whether it is queued or running.
    """

    def __init__(self, name: str, *, threads: int, max_pending: int) -> None:
        self._executor = ThreadPoolExecutor(threads, thread_name_prefix=name)
        self._busy_message = f"Too many {name} are in progress. Try again shortly."
        self._max_pending = max_pending
        self._pending = 0

    async def run(self, work: Callable[..., T], *args: object) -> T:
        if self._pending >= self._max_pending:
            raise unavailable(self._busy_message)
        self._pending += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._executor, work, *args)
        finally:
            self._pending -= 1
