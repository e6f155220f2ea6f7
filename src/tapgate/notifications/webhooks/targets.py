"""Where events may be sent: what a URL must be like, and which addresses are the public's.

The shape of a URL is checked when it is given. In production its name is looked up too, then and
again before every single sending: whoever controls a name can point it anywhere in between.
"""

import asyncio
import re
import socket
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from ipaddress import (
    IPv4Address,
    IPv4Network,
    IPv6Address,
    IPv6Network,
    ip_address,
    ip_network,
)
from typing import Any, Final
from urllib.parse import SplitResult, urlsplit

from tapgate.edge.fields import TEXT_RULE, InvalidValueError, Rule

Address = IPv4Address | IPv6Address
Resolve = Callable[[str], Awaitable[Sequence[str]]]

_SCHEMES: Final = ("https", "http")
#: What a URL is written with once everything else is percent-encoded.
_WRITTEN_WITH: Final = re.compile(r"[A-Za-z0-9\-._~:/?#\[\]@!$&'()*+,;=%]+")
_LABEL: Final = re.compile(r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?", re.IGNORECASE)
#: How a last label looks that some resolver takes for part of an address: 127.1, 0x7f.1, 017700.
_NUMBER: Final = re.compile(r"[0-9]+|0x[0-9a-f]*", re.IGNORECASE)
_LONGEST_NAME: Final = 253
_LOCAL_ENDINGS: Final = (".localhost", ".local", ".internal", ".home.arpa")

_CLOSED_IPV4: Final = tuple(
    IPv4Network(network)
    for network in (
        "0.0.0.0/8",
        "10.0.0.0/8",
        "100.64.0.0/10",  # shared by a carrier's customers
        "127.0.0.0/8",
        "168.63.129.16/32",  # a cloud's own service to its machines
        "169.254.0.0/16",  # link-local, and clouds' metadata
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
_OPEN_IPV6: Final = ip_network("2000::/3")
_CLOSED_IPV6: Final = tuple(
    IPv6Network(network)
    # Special purposes (tunnels among them), documentation, 6to4: the last leads to any IPv4.
    for network in ("2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20")
)
_NAT64: Final = IPv6Network("64:ff9b::/96")


class RefusedError(Exception):
    """A target that events are not sent to; the sentence goes on after the word `url`."""


class TargetRule(Rule):
    """The shape of a URL; whether it is the public's is known only with the settings."""

    example = "https://shop.example.com/tapgate"
    max_json_bytes = TEXT_RULE.max_json_bytes

    def check(self, value: str) -> str:
        TEXT_RULE.check(value)
        try:
            read(value)
        except RefusedError as refusal:
            raise InvalidValueError(str(refusal)) from None
        return value

    def to_json_schema(self) -> dict[str, Any]:
        return {"format": "uri", "maxLength": TEXT_RULE.maximum}


def read(url: str) -> SplitResult:
    """The parts of a URL that is written in one of the plain ways."""
    if _WRITTEN_WITH.fullmatch(url) is None:
        raise RefusedError("must be a URL, in ASCII")
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        raise RefusedError("must be a URL") from None
    if parts.scheme not in _SCHEMES:
        raise RefusedError("must begin with https://")
    if "@" in parts.netloc:
        raise RefusedError("must not contain a user name or a password")
    if not host or port == 0 or not (_literal(host) or _is_name(host)):
        raise RefusedError("must name a host, by its name or in the usual form of an address")
    return parts


async def require_public(url: str, resolve: Resolve) -> list[str]:
    """The addresses behind a URL, all of them the public's."""
    parts = read(url)
    if parts.scheme != "https":
        raise RefusedError("must begin with https://")
    host = parts.hostname or ""
    if "." not in host.rstrip(".") and ":" not in host:
        raise RefusedError("must not name a host of a private network")
    if host.rstrip(".").endswith(_LOCAL_ENDINGS):
        raise RefusedError("must not name a host of a private network")
    found = await addresses(url, resolve)
    if not all(is_public(ip_address(address)) for address in found):
        raise RefusedError("must not lead to a private address")
    return found


async def addresses(url: str, resolve: Resolve) -> list[str]:
    """The addresses behind a URL; OSError when there is none."""
    host = read(url).hostname or ""
    found = [host] if _literal(host) else list(dict.fromkeys(await resolve(host)))
    if not found:
        raise OSError("the name has no address")
    return found


async def resolve_by_system(host: str) -> Sequence[str]:
    """Keeps one thread per name, whoever asks and however often: the system goes on looking for a
    name that nobody answers for, long after all have given up."""
    look_up = _under_way.get(host)
    if look_up is None:
        look_up = _under_way[host] = _look_ups.submit(_look_up, host)
        look_up.add_done_callback(lambda _: _under_way.pop(host))
    return await asyncio.shield(asyncio.wrap_future(look_up))


_look_ups: Final = ThreadPoolExecutor(32, thread_name_prefix="names")
_under_way: Final[dict[str, Future[Sequence[str]]]] = {}


def _look_up(host: str) -> Sequence[str]:
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except UnicodeError as error:  # what the resolver's encoding of names refuses
        raise OSError("not a name") from error
    return [str(address[0]) for *_, address in found]


def is_public(address: Address) -> bool:
    if isinstance(address, IPv6Address):
        inner = _inner(address)
        if inner is None:
            return address in _OPEN_IPV6 and not any(address in closed for closed in _CLOSED_IPV6)
        address = inner
    return not any(address in closed for closed in _CLOSED_IPV4)


def _inner(address: IPv6Address) -> IPv4Address | None:
    """The IPv4 address that is meant by an IPv6 address, where it is one in disguise."""
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    if address in _NAT64:
        return IPv4Address(int(address) & 0xFFFFFFFF)
    return None


def _literal(host: str) -> Address | None:
    if "%" in host:  # a zone, which only this machine understands
        return None
    try:
        return ip_address(host)
    except ValueError:
        return None


def _is_name(host: str) -> bool:
    name = host.removesuffix(".")
    labels = name.split(".")
    return (
        len(name) <= _LONGEST_NAME
        and all(_LABEL.fullmatch(label) for label in labels)
        and _NUMBER.fullmatch(labels[-1]) is None
    )
