"""Limit on one process's connections, per client address and in total."""

from collections.abc import Callable
from functools import partial

from tapgate.core.settings import Settings
from tapgate.runtime.client_addresses import ClientAddresses, get_address_key
from tapgate.runtime.open_files import get_max_connections

#: If trusted proxies are configured, 1/n of all connections is reserved for them, so that direct
#: clients cannot lock out a load balancer and its health checks.
_RESERVED_SHARE_DIVISOR = 8


class ConnectionLimit:
    """Counts open connections, with a limit per client address and a total limit.

    Only the total applies to a trusted proxy, which forwards many clients' requests. The total
    stays below the open file limit, so that an excess connection can still be accepted to send 503.
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
        """Count a connection. Return its release function, or None if a limit is reached."""
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
