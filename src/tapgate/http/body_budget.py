"""Memory budget for request bodies, one per process and shared by all connections."""

from collections.abc import Callable
from typing import Final

from tapgate.runtime.client_addresses import get_address_key

#: Body bytes that a connection may hold without a charge to the budget. Nearly every body is
#: smaller, so payments continue when large bodies exhaust the budget.
FREE_BODY_BYTES: Final = 16 * 1024
MAX_PENDING_BODY_BYTES: Final = 64 * 1024 * 1024


#: One address's connections can be charged at most 1/n of the budget. Trusted proxies are
#: exempt.
_ADDRESS_SHARE_DIVISOR: Final = 4


class BodyBudget:
    """Limit on request body bytes held until their responses are sent."""

    __slots__ = ("_limit", "_share", "by_address", "is_trusted", "used")

    def __init__(self, limit: int = MAX_PENDING_BODY_BYTES, share: int | None = None) -> None:
        self._limit = limit
        self._share = limit // _ADDRESS_SHARE_DIVISOR if share is None else share
        self.by_address: dict[str, int] = {}
        #: Returns whether an address is a trusted proxy, which forwards many clients' requests.
        self.is_trusted: Callable[[str], bool] = lambda _: False
        self.used = 0

    def resize(self, address: str, charged: int, held: int) -> int | None:
        """Replace a connection's previous charge with the charge for the bytes it holds now.

        Return the new charge. If it would exceed the budget or the limit per address, return None
        and keep the previous charge.
        """
        charge = max(0, held - FREE_BODY_BYTES)
        growth = charge - charged
        if growth == 0:
            return charge
        key = get_address_key(address)
        used = self.by_address.get(key, 0) + growth
        if growth > 0 and (
            self.used + growth > self._limit
            or (used > self._share and not self.is_trusted(address))
        ):
            return None
        self.used += growth
        if used:
            self.by_address[key] = used
        else:
            del self.by_address[key]
        return charge
