"""Briefly cached result from an asynchronous function."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class CachedResult(Generic[T]):
    """Calls a function at most once per `max_age` seconds, regardless of the number of callers."""

    def __init__(self, compute: Callable[[], Awaitable[T]], max_age: float) -> None:
        self._compute = compute
        self.max_age = max_age
        self._computed_at = float("-inf")
        self._computation: asyncio.Task[None] | None = None
        #: The latest result. None before the first.
        self.latest: T | None = None

    async def get(self) -> T:
        """Return the latest result, or compute a new one if it is too old."""
        loop = asyncio.get_running_loop()
        if self.latest is None or loop.time() - self._computed_at >= self.max_age:
            if self._computation is None:
                self._computation = loop.create_task(self._run())
            # Other callers wait for the same computation, so a canceled caller must not cancel it.
            await asyncio.shield(self._computation)
        assert self.latest is not None
        return self.latest

    async def _run(self) -> None:
        try:
            self.latest = await self._compute()
            self._computed_at = asyncio.get_running_loop().time()
        finally:
            self._computation = None
