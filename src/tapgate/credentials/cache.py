"""In-process cache of credentials, invalidated by signals."""

from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

from tapgate.credentials.charges import FREE, Charge
from tapgate.store.signals import Signals

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")
T = TypeVar("T")


class Cache(Generic[K, V]):
    """Every signal of its topic empties it: changes are rare, and a wrong guess at what one
    touches would let in a credential that was revoked.

    Unknown keys are not cached, so that guesses cannot fill it. Their lookups are charged to the
    caller. A key that was good before is looked up without a charge: after a signal, genuine
    callers are let in although others have used up the rate of their address.
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
        #: Good at their last lookup.
        self._seen: dict[K, None] = {}
        self._generation = 0
        signals.on(topic, lambda _: self._forget())
        signals.on_gap(self._forget)

    async def get(self, key: K, charge: Charge = FREE) -> V | None:
        if self._signals.listening:
            value = self._values.get(key)
            if value is not None:
                return value
        generation = self._generation
        value = await self._look_up(key, charge)
        # A change while it was being read may or may not be in it: good for this once only.
        if value is not None and self._signals.listening and generation == self._generation:
            self._keep(self._values, key, value)
        return value

    async def _look_up(self, key: K, charge: Charge) -> V | None:
        is_seen = key in self._seen
        if not is_seen:
            await charge.charge()
        try:
            value = await self._load(key)
        except Exception:
            if not is_seen:
                await charge.refund()
            raise
        if value is None:
            self._seen.pop(key, None)
        elif not is_seen:
            self._keep(self._seen, key, None)
            await charge.refund()
        return value

    def _keep(self, kept: dict[K, T], key: K, value: T) -> None:
        if len(kept) >= self._size:
            del kept[next(iter(kept))]
        kept[key] = value

    def _forget(self) -> None:
        self._generation += 1
        self._values.clear()
