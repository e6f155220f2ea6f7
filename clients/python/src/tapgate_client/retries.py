"""Retry policy: number of attempts, and backoff between them."""

import random
import time
from collections.abc import Callable

import msgspec


class RetryPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """Limits and backoff for the attempts of one request.

    A request is sent at most `max_attempts` times, not counting one attempt that is repeated with
    renewed tokens. No retry starts after `max_elapsed` seconds. Delays double from `initial_delay`
    to `max_delay`, and jitter shortens each by up to half to spread out concurrent clients. A delay
    is never shorter than the gateway's `Retry-After`.
    """

    max_attempts: int = 4
    initial_delay: float = 0.2
    max_delay: float = 5.0
    max_elapsed: float = 30.0


NO_RETRIES = RetryPolicy(max_attempts=1)


class RetryBudget:
    """Remaining attempts and time of one request."""

    def __init__(self, retries: RetryPolicy, now: Callable[[], float] = time.monotonic) -> None:
        self._policy = retries
        self._now = now
        self._deadline = now() + retries.max_elapsed
        self._failed_attempts = 0

    def next_delay(self, retry_after: float | None) -> float | None:
        """Return the delay before the next attempt, or None if no attempts or time remain."""
        self._failed_attempts += 1
        if self._failed_attempts >= self._policy.max_attempts:
            return None
        max_delay = min(
            self._policy.max_delay, self._policy.initial_delay * 2 ** (self._failed_attempts - 1)
        )
        jittered = max_delay * random.uniform(0.5, 1)  # noqa: S311 - jitter needs no secure randomness
        delay = jittered if retry_after is None else retry_after + jittered - max_delay / 2
        return delay if self._now() + delay < self._deadline else None
