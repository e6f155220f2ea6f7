"""Memory for request bodies: one budget per process, shared by all connections."""

from collections.abc import Callable
from typing import Final

from tapgate.service.client_addresses import get_address_key

#: What a connection may hold without charging the budget. Nearly every body is smaller, so a
#: budget that is exhausted by large bodies does not stop payments.
FREE_BODY_BYTES: Final = 16 * 1024
MAX_PENDING_BODY_BYTES: Final = 64 * 1024 * 1024


#: One in so many parts of the budget is the most that the connections of one address may hold.
_ADDRESS_SHARE_DIVISOR: Final = 4


class BodyBudget:
    """Bytes of request bodies that are held until their requests are answered."""

    __slots__ = ("_by_address", "_limit", "_share", "is_trusted", "used")

    def __init__(self, limit: int = MAX_PENDING_BODY_BYTES, share: int | None = None) -> None:
        self._limit = limit
        self._share = limit // _ADDRESS_SHARE_DIVISOR if share is None else share
        self._by_address: dict[str, int] = {}
        #: Whether an address is a trusted proxy's, which speaks for many clients.
        self.is_trusted: Callable[[str], bool] = lambda _: False
        self.used = 0

    def resize(self, address: str, charged: int, held: int) -> int | None:
        """Charge a connection that holds this much instead of what it was charged before.

        Return the new charge, or None where the budget or the address's share does not allow it.
        """
        wanted = max(0, held - FREE_BODY_BYTES)
        growth = wanted - charged
        if growth == 0:
            return wanted
        key = get_address_key(address)
        used = self._by_address.get(key, 0) + growth
        if growth > 0 and (
            self.used + growth > self._limit
            or (used > self._share and not self.is_trusted(address))
        ):
            return None
        self.used += growth
        if used:
            self._by_address[key] = used
        else:
            del self._by_address[key]
        return wanted
