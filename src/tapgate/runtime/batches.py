"""Collects items into batches that are processed together."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class BatchProcessor(Generic[T]):
    """Passes items to `process` in batches, one batch at a time.

    A batch contains the items that arrived during the previous batch and the delay after it.
    `process` must not raise.
    """

    def __init__(
        self, process: Callable[[list[T]], Awaitable[None]], *, delay_seconds: float = 0.0
    ) -> None:
        self._process = process
        self._delay_seconds = delay_seconds
        self._items: list[T] = []
        self._task: asyncio.Task[None] | None = None

    def add(self, item: T) -> None:
        self._items.append(item)
        if self._task is None:
            self._task = asyncio.create_task(self._run())

    async def wait_until_idle(self) -> None:
        while self._task is not None:
            await asyncio.wait([self._task])

    async def _run(self) -> None:
        try:
            while self._items:
                await asyncio.sleep(self._delay_seconds)
                items, self._items = self._items, []
                await self._process(items)
        finally:
            self._task = None
