"""Limit on concurrent requests per process. Further requests get 503 with Retry-After.

Rejecting a request costs almost nothing, and the limit keeps latency low for accepted requests.
"""

from typing import Final

from tapgate_client.errors import ApiError, Code

#: High enough to fill the ledger's batches, low enough to keep latency short under overload.
MAX_CONCURRENT_REQUESTS: Final = 1_000

#: Retry-After value, and the time for which the server does not read from the connection; see
#: `Response.pause`.
RETRY_AFTER_SECONDS: Final = 1


class OverloadError(ApiError):
    def __init__(self) -> None:
        super().__init__(
            Code.SERVICE_UNAVAILABLE,
            "The server is overloaded and did not process the request. Try again shortly.",
            headers={"Retry-After": str(RETRY_AFTER_SECONDS)},
        )
        self.pause = RETRY_AFTER_SECONDS


class ConcurrencyLimit:
    """Context manager that counts requests in progress and raises OverloadError at the limit."""

    __slots__ = ("count",)

    def __init__(self) -> None:
        self.count = 0

    def require_capacity(self) -> None:
        """Raise OverloadError at the limit, without taking a slot.

        Call before waiting for a body. If slots were taken this early, slow or stalled clients
        could lock out all others.
        """
        if self.count >= MAX_CONCURRENT_REQUESTS:
            raise OverloadError

    def __enter__(self) -> None:
        self.require_capacity()
        self.count += 1

    def __exit__(self, *_: object) -> None:
        self.count -= 1
