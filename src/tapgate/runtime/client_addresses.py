"""Client addresses behind trusted proxies, and keys for per-address limits."""

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import Final

import structlog

_log = structlog.get_logger()

Network = IPv4Network | IPv6Network

#: Providers assign at least a /64 to each customer, so limits treat a /64 as one client.
_IPV6_PREFIX_BITS: Final = 64
#: NAT64 (RFC 6052) maps all IPv4 addresses into this network, so each address has its own limit.
_NAT64_NETWORK: Final = IPv6Network("64:ff9b::/96")

#: Bytes of X-Forwarded-For to read, from its end. Clients can forge its beginning.
_MAX_FORWARDED_BYTES: Final = 512
#: `192.0.2.1:80`, `[2001:db8::1]` or `[2001:db8::1]:80`.
_ADDRESS_WITH_PORT: Final = re.compile(r"([0-9.]+):[0-9]{1,5}|\[([0-9A-Fa-f:.]+)\](?::[0-9]{1,5})?")


class ClientAddresses:
    def __init__(self, trusted_proxies: Sequence[Network]) -> None:
        self._trusted_proxies = tuple(trusted_proxies)
        self._resolve_cached = lru_cache(maxsize=4096)(self._resolve_forwarded)
        self._has_warned = False

    def resolve(self, peer: str, headers: Mapping[bytes, bytes]) -> str:
        if not self._trusted_proxies:
            if b"x-forwarded-for" in headers and not self._has_warned:
                self._warn_untrusted_proxy(peer)
            return peer
        return self._resolve_cached(
            peer, headers.get(b"x-forwarded-for", b"")[-_MAX_FORWARDED_BYTES:]
        )

    def is_trusted(self, address: str) -> bool:
        """Return whether this is a trusted proxy's address."""
        return is_within(address, self._trusted_proxies)

    def _warn_untrusted_proxy(self, peer: str) -> None:
        """Warn that X-Forwarded-For is ignored, so all clients behind a proxy share its limits."""
        self._has_warned = True
        _log.warning(
            "addresses.untrusted_proxy",
            peer=peer,
            hint="X-Forwarded-For is ignored. Set TAPGATE_TRUSTED_PROXIES if a proxy sends it.",
        )

    def _resolve_forwarded(self, peer: str, forwarded: bytes) -> str:
        """Return the nearest address, counted from the server, that is not a trusted proxy.

        If all hops are trusted proxies, return the farthest one. If a hop is invalid, return the
        trusted proxy that reported it. Farther hops may be forged.
        """
        address = peer
        hops = [hop.strip() for hop in forwarded.decode("latin-1").split(",")]
        if len(forwarded) == _MAX_FORWARDED_BYTES:
            del hops[0]  # possibly truncated, which could yield a different valid address
        hops = [hop for hop in hops if hop]
        while hops and self.is_trusted(address):
            hop_address = _strip_port(hops.pop())
            if "%" in hop_address or _parse_address(hop_address) is None:
                break
            address = hop_address
        return address


@lru_cache(maxsize=4096)
def get_address_key(address: str) -> str:
    """Return an address's key for per-address limits.

    The key is the /64 network for an IPv6 address. For IPv4, IPv4-mapped and NAT64 addresses, it is
    the address.
    """
    if ":" not in address:
        return address
    parsed = _parse_address(address)
    if not isinstance(parsed, IPv6Address) or parsed.ipv4_mapped or parsed in _NAT64_NETWORK:
        return address
    return str(IPv6Network((int(parsed), _IPV6_PREFIX_BITS), strict=False))


@lru_cache(maxsize=4096)
def is_within(address: str, networks: tuple[Network, ...]) -> bool:
    """Return whether an address belongs to one of the networks."""
    parsed = _parse_address(address)
    if isinstance(parsed, IPv6Address) and parsed.ipv4_mapped:
        parsed = parsed.ipv4_mapped  # an IPv4 client on an IPv6 socket
    return parsed is not None and any(parsed in network for network in networks)


def _strip_port(hop: str) -> str:
    match = _ADDRESS_WITH_PORT.fullmatch(hop)
    return hop if match is None else match[1] or match[2]


def _parse_address(text: str) -> IPv4Address | IPv6Address | None:
    """Parse an address, ignoring its zone. Return None if the address is invalid."""
    try:
        return ip_address(text.partition("%")[0])
    except ValueError:
        return None
