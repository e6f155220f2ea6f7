"""How much a process works on at once, and what it says to the rest: to come later.

Who is refused has cost next to nothing, and who is taken on is answered in time: what could not be
done soon is not begun.
"""

from typing import Final

from tapgate.errors import ApiError, Code

#: Enough to fill the ledger's batches; few enough that the last of them does not wait for long.
MAX_CONCURRENT_REQUESTS: Final = 1_000

#: When to come again. The connection is not listened to before, see `Answer.pause`.
RETRY_AFTER_SECONDS: Final = 1


class OverloadError(ApiError):
    def __init__(self) -> None:
        super().__init__(
            Code.SERVICE_UNAVAILABLE,
            "Too much is under way; nothing was done",
            headers={"Retry-After": str(RETRY_AFTER_SECONDS)},
        )
        self.pause = RETRY_AFTER_SECONDS


class ConcurrencyLimit:
    """The requests that are worked on, each inside a `with`. One too many does not get in."""

    __slots__ = ("_count",)

    def __init__(self) -> None:
        self._count = 0

    def require_capacity(self) -> None:
        """Before a body is waited for. Nobody's place is taken yet: whoever sends slowly, or never
        to the end, would keep others out."""
        if self._count >= MAX_CONCURRENT_REQUESTS:
            raise OverloadError

    def __enter__(self) -> None:
        self.require_capacity()
        self._count += 1

    def __exit__(self, *_: object) -> None:
        self._count -= 1
