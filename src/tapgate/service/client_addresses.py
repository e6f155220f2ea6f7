"""The client's address, also behind trusted proxies, and what a limit by address counts."""

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import Final

import structlog

_log = structlog.get_logger()

Network = IPv4Network | IPv6Network

#: What one customer of a provider has at the least: all of it counts as one.
_IPV6_PREFIX_BITS: Final = 64
#: RFC 6052: all IPv4 clients behind a NAT64, in one network. One of them must not lock out all.
_NAT64_NETWORK: Final = IPv6Network("64:ff9b::/96")

#: How much of X-Forwarded-For is read, from its end: clients can make up its beginning.
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
        """Whether this is the address of a trusted proxy."""
        return is_within(address, self._trusted_proxies)

    def _warn_untrusted_proxy(self, peer: str) -> None:
        """Log once per process: clients behind an untrusted proxy share one address's limits."""
        self._has_warned = True
        _log.warning(
            "addresses.untrusted_proxy",
            peer=peer,
            hint="X-Forwarded-For is ignored; set TAPGATE_TRUSTED_PROXIES if a proxy sent it",
        )

    def _resolve_forwarded(self, peer: str, forwarded: bytes) -> str:
        """Return the last address that is not a trusted proxy's: a client can make up the rest."""
        address = peer
        hops = [hop.strip() for hop in forwarded.decode("latin-1").split(",")]
        if len(forwarded) == _MAX_FORWARDED_BYTES:
            del hops[0]  # perhaps the end of an address, which can be another one
        hops = [hop for hop in hops if hop]
        while hops and self.is_trusted(address):
            named = _strip_port(hops.pop())
            if "%" in named or _parse_address(named) is None:
                break
            address = named
        return address


@lru_cache(maxsize=4096)
def get_address_key(address: str) -> str:
    """Return what a limit by address counts: with IPv6 a network, as one client has 2^64."""
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
        parsed = parsed.ipv4_mapped  # an IPv4 client of a socket that listens on IPv6
    return parsed is not None and any(parsed in network for network in networks)


def _strip_port(hop: str) -> str:
    match = _ADDRESS_WITH_PORT.fullmatch(hop)
    return hop if match is None else match[1] or match[2]


def _parse_address(text: str) -> IPv4Address | IPv6Address | None:
    """Parse an address, whatever its zone: that can be any text."""
    try:
        return ip_address(text.partition("%")[0])
    except ValueError:
        return None
