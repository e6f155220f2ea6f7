"""When to try again, and how long to wait before."""

import random
import time
from collections.abc import Callable

import msgspec


class RetryPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """At most so many tries of a call; none begins when `within` seconds have passed.

    The pauses double from the first to the longest, each shortened by chance so that many clients
    do not come back at once. What the gateway asks for by `Retry-After` is waited in full.
    """

    max_attempts: int = 4
    initial_delay: float = 0.2
    max_delay: float = 5.0
    max_elapsed: float = 30.0


NO_RETRIES = RetryPolicy(max_attempts=1)


class RetryBudget:
    """How much of it is left for one call."""

    def __init__(self, retries: RetryPolicy, now: Callable[[], float] = time.monotonic) -> None:
        self._policy = retries
        self._now = now
        self._deadline = now() + retries.max_elapsed
        self._failed_attempts = 0

    def next_delay(self, asked: float | None) -> float | None:
        """After another failed try: how long to wait for the next; None when it was the last."""
        self._failed_attempts += 1
        if self._failed_attempts >= self._policy.max_attempts:
            return None
        longest = min(
            self._policy.max_delay, self._policy.initial_delay * 2 ** (self._failed_attempts - 1)
        )
        chosen = longest * random.uniform(0.5, 1)  # noqa: S311 - no secret
        pause = chosen if asked is None else asked + chosen - longest / 2
        return pause if self._now() + pause < self._deadline else None
