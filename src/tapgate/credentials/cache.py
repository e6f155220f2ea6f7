"""What was read from the database, kept in the process until a signal says that it changed."""

from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

from tapgate.store.signals import Signals

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Cache(Generic[K, V]):
    """Every signal of its topic empties it: changes are rare, and a wrong guess at what one
    touches would let in a credential that was taken back.

    What is not there is asked for again each time, so that guesses cannot fill it.
    """

    def __init__(
        self,
        signals: Signals,
        topic: str,
        load: Callable[[K], Awaitable[V | None]],
        size: int = 10_000,
    ) -> None:
        self._signals = signals
        self._load = load
        self._size = size
        self._values: dict[K, V] = {}
        self._generation = 0
        signals.on(topic, lambda _: self._forget())
        signals.on_gap(self._forget)

    async def get(self, key: K) -> V | None:
        if self._signals.listening:
            value = self._values.get(key)
            if value is not None:
                return value
        generation = self._generation
        value = await self._load(key)
        # A change while it was being read may or may not be in it: good for this once only.
        if value is not None and self._signals.listening and generation == self._generation:
            self._keep(key, value)
        return value

    def _keep(self, key: K, value: V) -> None:
        if len(self._values) >= self._size:
            del self._values[next(iter(self._values))]
        self._values[key] = value

    def _forget(self) -> None:
        self._generation += 1
        self._values.clear()
