"""Identity provider document, cached by this process."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from typing import Final, Generic, TypeVar

from tapgate.auth.oidc.requests import ProviderError
from tapgate_client.clock import Clock

LIFETIME: Final = timedelta(hours=1)
#: Shortest time between two downloads that callers cause with unknown keys.
MIN_REFRESH_INTERVAL: Final = timedelta(minutes=1)
#: Time after a failed download during which none is tried, so that sign-ins do not wait for a
#: provider that is down.
RETRY_DELAY: Final = timedelta(seconds=5)

T = TypeVar("T")


class CachedDocument(Generic[T]):
    def __init__(self, load: Callable[[], Awaitable[T]], clock: Clock) -> None:
        self._load = load
        self._clock = clock
        self._lock = asyncio.Lock()
        self._value: T | None = None
        self._loaded_at: datetime | None = None
        self._failed_at: datetime | None = None

    async def get(self) -> T:
        return await self._get(LIFETIME)

    async def refresh(self) -> T:
        """Return the document, downloaded again unless that happened a short time ago."""
        return await self._get(MIN_REFRESH_INTERVAL)

    async def _get(self, max_age: timedelta) -> T:
        async with self._lock:  # concurrent callers share one download
            now = self._clock()
            if (
                self._value is not None
                and self._loaded_at is not None
                and now < self._loaded_at + max_age
            ):
                return self._value
            if self._failed_at is not None and now < self._failed_at + RETRY_DELAY:
                raise ProviderError("recently failed")
            try:
                self._value = await self._load()
            except ProviderError:
                self._failed_at = self._clock()
                raise
            self._loaded_at, self._failed_at = now, None
            return self._value
