"""Validates the addresses that webhook URLs resolve to.

URL syntax (`tapgate_client.schemas.urls`) is checked when an endpoint is created or updated. In
production, the host's addresses are also checked then, and again at every attempt, because the host
name's owner can later point it to a private address.
"""

import asyncio
import socket
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Final

from tapgate_client.schemas.urls import IpAddress, TargetRejectedError, parse_ip_literal, parse_url

Resolver = Callable[[str], Awaitable[Sequence[str]]]


class HostNotFoundError(OSError):
    """The host name has no address."""


_LOCAL_SUFFIXES: Final = (".localhost", ".local", ".internal", ".home.arpa")

NON_PUBLIC_IPV4: Final = tuple(
    IPv4Network(network)
    for network in (
        "0.0.0.0/8",
        "10.0.0.0/8",
        "100.64.0.0/10",  # carrier-grade NAT
        "127.0.0.0/8",
        "168.63.129.16/32",  # Azure platform services
        "169.254.0.0/16",  # link-local, including cloud metadata services
        "172.16.0.0/12",
        "192.0.0.0/24",
        "192.0.2.0/24",
        "192.88.99.0/24",
        "192.168.0.0/16",
        "198.18.0.0/15",
        "198.51.100.0/24",
        "203.0.113.0/24",
        "224.0.0.0/4",
        "240.0.0.0/4",
    )
)
_GLOBAL_UNICAST_IPV6: Final = ip_network("2000::/3")
_NON_PUBLIC_IPV6: Final = tuple(
    IPv6Network(network)
    # In this order: special purposes (such as tunnels), documentation, 6to4 (which can embed any
    # IPv4 address), and documentation again.
    for network in ("2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20")
)
_NAT64: Final = IPv6Network("64:ff9b::/96")


async def require_public(url: str, resolve: Resolver) -> list[str]:
    """Return the host addresses for a URL; reject the URL unless all addresses are public.

    A URL without HTTPS or with a local host name is rejected too. Raises OSError if the host name
    does not resolve.
    """
    parts = parse_url(url)
    if parts.scheme != "https":
        raise TargetRejectedError("must start with https://")
    host = parts.hostname or ""
    if "." not in host.rstrip(".") and ":" not in host:
        raise TargetRejectedError("must not point to a host in a private network")
    if host.rstrip(".").endswith(_LOCAL_SUFFIXES):
        raise TargetRejectedError("must not point to a host in a private network")
    addresses = await resolve_addresses(url, resolve)
    if not all(is_public_address(ip_address(address)) for address in addresses):
        raise TargetRejectedError("must not resolve to a private IP address")
    return addresses


async def resolve_addresses(url: str, resolve: Resolver) -> list[str]:
    """Return the distinct host addresses for a URL; raise OSError if there are none."""
    host, is_address = _parse_host(url)
    addresses = [host] if is_address else list(dict.fromkeys(await resolve(host)))
    if not addresses:
        raise HostNotFoundError
    return addresses


@lru_cache(maxsize=1024)
def _parse_host(url: str) -> tuple[str, bool]:
    """Return a URL's host, and whether it is an IP address."""
    host = parse_url(url).hostname or ""
    return host, parse_ip_literal(host) is not None


async def resolve_with_system(host: str) -> Sequence[str]:
    """Resolve a host name with the system resolver.

    Concurrent lookups for one name share a thread, because the system resolver can keep retrying a
    name long after the callers have timed out.
    """
    lookup = _pending_lookups.get(host)
    if lookup is None:
        lookup = _pending_lookups[host] = _lookup_executor.submit(_resolve_host, host)
        lookup.add_done_callback(lambda _: _pending_lookups.pop(host))
    return await asyncio.shield(asyncio.wrap_future(lookup))


_lookup_executor: Final = ThreadPoolExecutor(32, thread_name_prefix="names")
_pending_lookups: Final[dict[str, Future[Sequence[str]]]] = {}


def _resolve_host(host: str) -> Sequence[str]:
    try:
        results = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (socket.gaierror, UnicodeError) as error:  # the latter: it cannot be IDNA-encoded
        raise HostNotFoundError from error
    return [str(address[0]) for *_, address in results]


def is_public_address(address: IpAddress) -> bool:
    if isinstance(address, IPv6Address):
        embedded = _get_embedded_ipv4(address)
        if embedded is None:
            return address in _GLOBAL_UNICAST_IPV6 and not any(
                address in network for network in _NON_PUBLIC_IPV6
            )
        address = embedded
    return not any(address in network for network in NON_PUBLIC_IPV4)


def _get_embedded_ipv4(address: IPv6Address) -> IPv4Address | None:
    """Return the IPv4 address embedded in an IPv4-mapped or NAT64 address, otherwise None."""
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    if address in _NAT64:
        return IPv4Address(int(address) & 0xFFFFFFFF)
    return None
