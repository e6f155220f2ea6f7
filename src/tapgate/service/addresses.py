"""Whose address counts: the peer's, or behind a trusted proxy the one that it names; and who is one
and the same to a limit."""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from ipaddress import IPv4Network, IPv6Address, IPv6Network, ip_address

import structlog

_log = structlog.get_logger()

Network = IPv4Network | IPv6Network

#: What one customer of a provider has at the least: all of it is one household.
_HOUSEHOLD_BITS = 64
#: RFC 6052: everybody who has an IPv4 address, in one network. One of them must not lock out all.
_TRANSLATED = IPv6Network("64:ff9b::/96")


class Addresses:
    def __init__(self, trusted_proxies: Sequence[Network]) -> None:
        self._trusted = tuple(trusted_proxies)
        self._named = lru_cache(maxsize=4096)(self._read)
        self._warned = False

    def of(self, peer: str, headers: Mapping[bytes, bytes]) -> str:
        if not self._trusted:
            if b"x-forwarded-for" in headers and not self._warned:
                self._warn(peer)
            return peer
        return self._named(peer, headers.get(b"x-forwarded-for", b""))

    def _warn(self, peer: str) -> None:
        """Log once per process: clients behind an untrusted proxy share one address's limits."""
        self._warned = True
        _log.warning(
            "addresses.untrusted_proxy",
            peer=peer,
            hint="X-Forwarded-For is ignored; set TAPGATE_TRUSTED_PROXIES if a proxy sent it",
        )

    def _read(self, peer: str, forwarded: bytes) -> str:
        """The last address that no trusted proxy has: what is before it, a client can make up."""
        address = peer
        hops = [hop.strip() for hop in forwarded.decode("latin-1").split(",") if hop.strip()]
        while hops and self._is_trusted(address):
            named = hops.pop()
            if not _is_address(named):
                break
            address = named
        return address

    def _is_trusted(self, address: str) -> bool:
        return _is_address(address) and any(
            ip_address(address) in network for network in self._trusted
        )


@lru_cache(maxsize=4096)
def counted_as(address: str) -> str:
    """What a limit by address counts: with IPv6, whoever has one address has 2^64 of them."""
    if ":" not in address or not _is_address(address):
        return address
    parsed = ip_address(address)
    if not isinstance(parsed, IPv6Address) or parsed.ipv4_mapped or parsed in _TRANSLATED:
        return address
    return str(IPv6Network((int(parsed), _HOUSEHOLD_BITS), strict=False))


@lru_cache(maxsize=4096)
def is_within(address: str, networks: tuple[Network, ...]) -> bool:
    """Return whether an address belongs to one of the networks."""
    if not _is_address(address):
        return False
    parsed = ip_address(address)
    if isinstance(parsed, IPv6Address) and parsed.ipv4_mapped:
        parsed = parsed.ipv4_mapped  # an IPv4 client of a socket that listens on IPv6
    return any(parsed in network for network in networks)


def _is_address(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True
