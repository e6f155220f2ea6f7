"""SSRF: webhook and media URLs that would make the platform call internal addresses."""

import ast
from collections.abc import AsyncIterator, Iterator, Sequence
from ipaddress import IPv4Address, IPv6Address
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tapgate
from drivers.graph_server import FakeGraphServer
from drivers.webhooks import ACCESS_TOKEN, PHONE_NUMBER_ID
from tapgate.events.webhooks.sender import NoResponseError, WebhookSender
from tapgate.events.webhooks.target_urls import NON_PUBLIC_IPV4, is_public_address, require_public
from tapgate.messenger.channel.graph import GraphClient, MediaError
from tapgate_client.schemas.urls import TargetRejectedError

PRIVATE_ADDRESSES = st.sampled_from(NON_PUBLIC_IPV4).flatmap(
    lambda network: st.integers(int(network.network_address), int(network.broadcast_address)).map(
        IPv4Address
    )
)


@given(PRIVATE_ADDRESSES)
def test_non_public_ipv4_address_is_recognized_in_every_ipv6_embedding(
    address: IPv4Address,
) -> None:
    """IPv6 has several ways to embed an IPv4 address, and a network may route any of them."""
    inner = int(address)
    embeddings = [
        IPv6Address(f"::ffff:{address}"),
        IPv6Address(f"::{address}") if inner > 1 else IPv6Address("::1"),
        IPv6Address(f"::ffff:0:{address}"),
        IPv6Address(f"64:ff9b::{address}"),
        IPv6Address(f"64:ff9b:1::{address}"),
        IPv6Address((0x2002 << 112) | (inner << 80)),  # 6to4
        IPv6Address((0x20010000 << 96) | (inner ^ 0xFFFFFFFF)),  # Teredo
        IPv6Address(f"fe80::5efe:{address}"),
    ]
    assert not is_public_address(address)
    assert [item for item in embeddings if is_public_address(item)] == []


class RebindingResolver:
    """Resolver that returns a public address on odd calls and a loopback address on even calls."""

    def __init__(self) -> None:
        self.call_count = 0

    async def __call__(self, host: str) -> Sequence[str]:
        self.call_count += 1
        return ["93.184.215.14"] if self.call_count % 2 else ["127.0.0.1"]


async def test_dns_rebinding_between_check_and_use_is_rejected() -> None:
    """A name that was checked must not be resolved again when connecting."""
    resolver = RebindingResolver()
    url = "https://shop.example.com/hook"
    assert await require_public(url, resolver) == ["93.184.215.14"]
    with pytest.raises(TargetRejectedError):
        await require_public(url, resolver)
    # Each delivery resolves the name once and connects only to an address that it has checked.
    resolver.call_count = 1
    sender = WebhookSender(public_only=True, resolve=resolver)
    with pytest.raises(NoResponseError, match="TargetRejectedError"):
        await sender.send(url, {}, b"{}")
    assert resolver.call_count == 2


@pytest.fixture
async def fake_graph_server() -> AsyncIterator[FakeGraphServer]:
    fake_graph_server = FakeGraphServer()
    async with fake_graph_server.listen():
        yield fake_graph_server


@pytest.mark.parametrize(
    "media_id",
    ["..", ".", "../me", "1/../2", "1?a=b", "1#a", "//evil.example/1", "1\r\nX: y", "", "%2e"],
)
async def test_media_id_with_url_syntax_is_rejected_without_a_request(
    fake_graph_server: FakeGraphServer, media_id: str
) -> None:
    """The ID comes from a message and is put into a URL that receives the access token."""
    async with GraphClient(fake_graph_server.url, ACCESS_TOKEN, PHONE_NUMBER_ID) as graph:
        with pytest.raises(MediaError, match="was not found"):
            await graph.fetch_media(media_id)
    assert fake_graph_server.requests == []


def list_http_clients() -> Iterator[tuple[str, dict[str, object]]]:
    """Yield each module that creates an HTTP client, with the client's options."""
    root = Path(tapgate.__file__).parent
    for file in root.rglob("*.py"):
        text = file.read_text()
        if "Client(" not in text and "urlopen" not in text:
            continue
        for node in ast.walk(ast.parse(text)):
            match node:
                case ast.Call(
                    ast.Attribute(attr="AsyncClient" | "Client" | "urlopen"), _, keywords
                ):
                    options = {
                        item.arg or "": getattr(item.value, "value", None) for item in keywords
                    }
                    yield file.relative_to(root).as_posix(), options


def test_no_http_client_follows_redirects_or_uses_environment_proxies() -> None:
    """Following redirects would bypass every target check.

    The clients are found in the source, so new clients are covered automatically.
    """
    clients = dict(list_http_clients())
    assert "messenger/channel/graph.py" in clients
    for module, options in clients.items():
        assert options.get("follow_redirects", False) is False, module
        if not module.startswith("cli/"):  # runs on the caller's own machine
            assert options["trust_env"] is False, module
