"""Memory for request bodies: one budget per process, shared by all connections."""

from typing import Final

#: What a connection may hold without charging the budget. Nearly every body is smaller, so a
#: budget that is exhausted by large bodies does not stop payments.
FREE_BYTES: Final = 16 * 1024
MAX_PENDING_BYTES: Final = 64 * 1024 * 1024


class BodyBudget:
    """Bytes of request bodies that are held until their requests are answered."""

    __slots__ = ("_limit", "used")

    def __init__(self, limit: int = MAX_PENDING_BYTES) -> None:
        self._limit = limit
        self.used = 0

    def resize(self, charged: int, held: int) -> int | None:
        """Charge a connection that holds this much instead of what it was charged before.

        Return the new charge, or None where the budget does not allow it.
        """
        wanted = max(0, held - FREE_BYTES)
        if wanted > charged and self.used + wanted - charged > self._limit:
            return None
        self.used += wanted - charged
        return wanted
