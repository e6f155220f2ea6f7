"""When to try again, and how long to wait before."""

import random
import time
from collections.abc import Callable

import msgspec


class Retries(msgspec.Struct, frozen=True, kw_only=True):
    """At most so many tries of a call; none begins when `within` seconds have passed.

    The pauses double from the first to the longest, each shortened by chance so that many clients
    do not come back at once. What the gateway asks for by `Retry-After` is waited in full.
    """

    tries: int = 4
    first_pause: float = 0.2
    longest_pause: float = 5.0
    within: float = 30.0


NO_RETRIES = Retries(tries=1)


class Patience:
    """How much of it is left for one call."""

    def __init__(self, retries: Retries, now: Callable[[], float] = time.monotonic) -> None:
        self._retries = retries
        self._now = now
        self._ends = now() + retries.within
        self._failed = 0

    def pause(self, asked: float | None) -> float | None:
        """After another failed try: how long to wait for the next; None when it was the last."""
        self._failed += 1
        if self._failed >= self._retries.tries:
            return None
        longest = min(
            self._retries.longest_pause, self._retries.first_pause * 2 ** (self._failed - 1)
        )
        chosen = longest * random.uniform(0.5, 1)  # noqa: S311 - no secret
        pause = chosen if asked is None else asked + chosen - longest / 2
        return pause if self._now() + pause < self._ends else None
