"""Caps the connections of one process, per client address and in total."""

from collections.abc import Callable
from functools import partial

from tapgate.service.client_addresses import ClientAddresses, get_address_key
from tapgate.service.open_files import get_max_connections
from tapgate.settings import Settings

#: One in so many connections is kept free for trusted proxies, so that direct clients cannot keep
#: a load balancer and its health checks out.
_RESERVED_SHARE_DIVISOR = 8


class ConnectionLimit:
    """A trusted proxy speaks for many clients: only the total applies to it.

    The total stays below the limit of open files, so that one connection too many can still be
    accepted and refused with 503.
    """

    def __init__(self, settings: Settings) -> None:
        self.is_trusted = ClientAddresses(settings.trusted_proxies).is_trusted
        self._max_per_address = settings.max_connections_per_address
        self._max_total = min(settings.max_connections, get_max_connections())
        reserved = self._max_total // _RESERVED_SHARE_DIVISOR if settings.trusted_proxies else 0
        self._max_direct = self._max_total - reserved
        self._counts: dict[str, int] = {}
        self.open_count = 0

    def acquire(self, address: str) -> Callable[[], None] | None:
        """Count a connection; return what to call at its end, or None where it is one too many."""
        key = get_address_key(address)
        count = self._counts.get(key, 0)
        if self.is_trusted(address):
            is_full = self.open_count >= self._max_total
        else:
            is_full = self.open_count >= self._max_direct or count >= self._max_per_address
        if is_full:
            return None
        self._counts[key] = count + 1
        self.open_count += 1
        return partial(self._release, key)

    def _release(self, key: str) -> None:
        self.open_count -= 1
        if self._counts[key] == 1:
            del self._counts[key]
        else:
            self._counts[key] -= 1
