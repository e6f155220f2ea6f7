"""Target URLs: accepted syntax and public addresses."""

import asyncio
import socket
import threading
from collections.abc import Sequence
from ipaddress import ip_address
from typing import Any

import pytest

from cases import each
from tapgate.events.webhooks.target_urls import (
    HostNotFoundError,
    is_public_address,
    require_public,
    resolve_addresses,
    resolve_with_system,
)
from tapgate_client.schemas.fields import InvalidValueError
from tapgate_client.schemas.urls import TargetRejectedError, TargetUrlRule


class FakeResolver:
    """A resolver that returns fixed addresses and records its queries."""

    def __init__(self, *addresses: str) -> None:
        self.addresses = addresses
        self.queries: list[str] = []

    async def __call__(self, host: str) -> Sequence[str]:
        self.queries.append(host)
        return self.addresses


@each(
    "url",
    [
        "https://shop.example.com",
        "HTTPS://Shop.Example.com:8443/hook?token=a%20b&c=[d]",
        "https://xn--bcher-kva.example/",
        "https://a_b.example.com./hook",
        "https://93.184.215.14/",
        "https://[2606:2800:21f:cb07:6820:80da:af6b:8b2c]:443/",
        "http://localhost:8080",
        "https://3com.com/",
    ],
)
def test_valid_url_is_returned_unchanged(url: str) -> None:
    assert TargetUrlRule().check(url) == url


@each(
    "url",
    [
        "",
        " ",
        "shop.example.com/hook",
        "//shop.example.com/hook",
        "ftp://shop.example.com/",
        "file:///etc/passwd",
        "javascript:alert(1)",
        "https://",
        "https:///hook",
        "https://:443/",
        "https://ada:secret@shop.example.com/",
        "https://ada@shop.example.com/",
        "https://@shop.example.com/",
        "https://shop.example.com@127.0.0.1/",
        "https://shop.example.com:0/",
        "https://shop.example.com:65536/",
        "https://shop.example.com:https/",
        "https://shop..example.com/",
        "https://-shop.example.com/",
        "https://" + "a" * 64 + ".example.com/",
        "https://shop.example.com/" + "a" * 255,
        "https://shop.example.com/a b",
        "https://shop.example.com/\tb",
        "https://shop.example.com\\@127.0.0.1/",
        "https://shop.example.com/\r\nX-Injected: yes",
        "https://bücher.example/",
        "https://①②⑦.0.0.1/",
        "https://shop.example.com%00.evil.example/",
        "https://%6cocalhost/",
        # Invalid or nonstandard addresses, some of which resolvers accept as 127.0.0.1.
        "https://2130706433/",
        "https://0x7f000001/",
        "https://0x7f.1/",
        "https://127.1/",
        "https://127.0.1/",
        "https://017700000001/",
        "https://0177.0.0.1/",
        "https://127.0.0.01/",
        "https://127.0.0.1./",
        "https://127.0.0.0x1/",
        "https://1.2.3.4.5/",
        "https://256.0.0.1/",
        "https://[127.0.0.1]/",
        "https://[fe80::1%25eth0]/",
        "https://[::1/",
        "https://::1/",
    ],
)
def test_invalid_or_ambiguous_url_is_rejected(url: str) -> None:
    with pytest.raises(InvalidValueError):
        TargetUrlRule().check(url)


@each(
    "address",
    """0.0.0.0 0.1.2.3 10.0.0.1 10.255.255.255 100.64.0.1 100.100.100.200 100.127.255.255 127.0.0.1
    127.255.255.255 168.63.129.16 169.254.0.1 169.254.169.254 172.16.0.1 172.31.255.255 192.0.0.8
    192.0.2.1 192.88.99.1 192.168.255.255 198.18.0.1 198.19.255.255 198.51.100.1 203.0.113.1
    224.0.0.1 239.255.255.255 240.0.0.1 255.255.255.255
    :: ::1 ::127.0.0.1 ::ffff:127.0.0.1 ::ffff:10.0.0.1 ::ffff:169.254.169.254 ::ffff:0:127.0.0.1
    64:ff9b::127.0.0.1 64:ff9b::a00:1 64:ff9b:1::1 100::1 2001::1 2001:10::1 2001:20::1
    2001:db8::1 2002:7f00:1:: 2002:a00:1:: 3fff::1 4000::1 fc00::1 fd00:ec2::254 fe80::1 fec0::1
    ff02::1""".split(),
)
def test_reserved_and_private_addresses_are_not_public(address: str) -> None:
    assert not is_public_address(ip_address(address))


@each(
    "address",
    """1.1.1.1 9.255.255.255 11.0.0.0 93.184.215.14 100.63.255.255 100.128.0.0 126.255.255.255
    128.0.0.1 168.63.129.17 169.253.255.255 172.15.255.255 172.32.0.0 192.167.255.255 192.169.0.0
    223.255.255.255 2606:2800:21f:cb07:6820:80da:af6b:8b2c 2a00:1450:4001:80b::200e
    ::ffff:1.1.1.1 64:ff9b::1.1.1.1""".split(),
)
def test_public_addresses_are_recognized(address: str) -> None:
    assert is_public_address(ip_address(address))


async def test_name_with_any_private_address_is_rejected() -> None:
    assert await require_public("https://shop.example.com/", FakeResolver("1.1.1.1")) == ["1.1.1.1"]
    with pytest.raises(TargetRejectedError):
        await require_public("https://shop.example.com/", FakeResolver("1.1.1.1", "10.0.0.1"))
    with pytest.raises(TargetRejectedError):
        await require_public("https://shop.example.com/", FakeResolver("::ffff:10.0.0.1"))


async def test_ip_address_is_not_resolved() -> None:
    resolver = FakeResolver("127.0.0.1")
    assert await require_public("https://1.1.1.1/", resolver) == ["1.1.1.1"]
    assert await require_public("https://[2606:4700::1111]/", resolver) == ["2606:4700::1111"]
    assert resolver.queries == []


async def test_name_without_an_address_is_an_error() -> None:
    with pytest.raises(HostNotFoundError):
        await resolve_addresses("https://shop.example.com/", FakeResolver())
    with pytest.raises(HostNotFoundError):
        await resolve_addresses("https://" + "a" * 63 + ".invalid/", resolve_with_system)


async def test_system_resolver_resolves_localhost() -> None:
    addresses = await resolve_addresses("http://localhost/", resolve_with_system)
    assert addresses
    assert not any(is_public_address(ip_address(address)) for address in addresses)


async def test_slow_name_lookups_do_not_block_other_lookups(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A lookup by the system resolver occupies its thread until it ends, even after a timeout."""
    started, resume, getaddrinfo = threading.Event(), threading.Event(), socket.getaddrinfo

    def resolve_slowly(host: str, *args: Any, **options: Any) -> Any:
        if host == "slow.example.com":
            started.set()
            resume.wait(timeout=60)
        return getaddrinfo("127.0.0.1", *args, **options)

    monkeypatch.setattr(socket, "getaddrinfo", resolve_slowly)
    lookups = [asyncio.create_task(resolve_with_system("slow.example.com")) for _ in range(100)]
    try:
        async with asyncio.timeout(30):
            while not started.is_set():
                await asyncio.sleep(0.01)
            assert await resolve_with_system("quick.example.com") == ["127.0.0.1"]
            assert await asyncio.to_thread(lambda: "not blocked") == "not blocked"
    finally:
        resume.set()
    assert await asyncio.gather(*lookups) == [["127.0.0.1"]] * 100
