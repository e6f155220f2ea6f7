"""Graph API client: error classification, media downloads and access token protection."""

import base64
import hashlib
from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest
from structlog.testing import capture_logs

from builders.auth import FakeClock
from drivers.graph_server import FakeGraphServer
from drivers.webhooks import ACCESS_TOKEN, PHONE_NUMBER_ID
from tapgate.messenger.channel.graph import GraphClient, GraphError, MediaError
from tapgate.messenger.channel.render import render_payloads
from tapgate.messenger.model import TextReply
from tapgate_sandbox.fake_provider.provider import PlannedFailure, Provider, UserMessage
from tapgate_sandbox.fake_provider.server import serve

PHONE = "+23276123456"
(HELLO_PAYLOAD,) = render_payloads(TextReply(text="Hello"), PHONE)
IMAGE_BYTES = b"\xff\xd8 a picture \xff\xd9"


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
async def provider(clock: FakeClock) -> Provider:
    provider = Provider(access_token=ACCESS_TOKEN, phone_number_id=PHONE_NUMBER_ID, clock=clock)
    await provider.send_user_message(PHONE[1:], UserMessage(text="hi"))
    return provider


@pytest.fixture
async def url(provider: Provider) -> AsyncIterator[str]:
    async with serve(provider) as url:
        yield url


@pytest.fixture
async def graph(url: str) -> AsyncIterator[GraphClient]:
    async with GraphClient(url + "/v23.0/", ACCESS_TOKEN, PHONE_NUMBER_ID) as graph:
        yield graph


@pytest.fixture
async def fake_graph_server() -> AsyncIterator[FakeGraphServer]:
    fake_graph_server = FakeGraphServer()
    async with fake_graph_server.listen():
        yield fake_graph_server


async def test_sent_message_gets_the_id_that_the_provider_assigned(
    graph: GraphClient, provider: Provider
) -> None:
    message_id = await graph.send(HELLO_PAYLOAD)
    (sent,) = provider.list_sent_to(PHONE)
    assert (sent.id, sent.message) == (message_id, HELLO_PAYLOAD)


RETRYABLE_CODES = [130429, 131056, 131000, 131016, 1, 2, 4, 80007, 190, 10, 200]
PERMANENT_CODES = [131047, 131026, 131009, 131008, 100, 132001, 131051, 368]


async def test_only_transient_and_configuration_error_codes_are_retryable(
    graph: GraphClient, provider: Provider
) -> None:
    provider.failures += [PlannedFailure(code=code) for code in RETRYABLE_CODES + PERMANENT_CODES]
    problems = []
    for _ in RETRYABLE_CODES + PERMANENT_CODES:
        with pytest.raises(GraphError) as raised:
            await graph.send(HELLO_PAYLOAD)
        problems.append((raised.value.code, raised.value.is_retryable))
    expected = [(str(code), code in RETRYABLE_CODES) for code in RETRYABLE_CODES + PERMANENT_CODES]
    assert problems == expected


async def test_wrong_access_token_is_logged_once(url: str, provider: Provider) -> None:
    async with GraphClient(url, "another token", PHONE_NUMBER_ID) as graph:
        with capture_logs() as logs:
            for _ in range(2):
                with pytest.raises(GraphError) as raised:
                    await graph.send(HELLO_PAYLOAD)
    assert (raised.value.code, raised.value.is_retryable) == ("190", True)
    assert logs == [{"event": "graph.misconfigured", "log_level": "error", "problem": "190"}]


async def test_wrong_phone_number_id_is_reported_as_misconfiguration(url: str) -> None:
    async with GraphClient(url, ACCESS_TOKEN, "1") as graph:
        with pytest.raises(GraphError) as raised:
            await graph.send(HELLO_PAYLOAD)
    assert raised.value.is_misconfigured


@pytest.mark.parametrize(
    ("status", "body", "is_retryable"),
    [
        (500, b"<html>", True),
        (502, b"", True),
        (503, b'{"error": {"code": 131047}}', True),
        (429, b"{}", True),
        (302, b"", True),
        (404, b"[]", True),
        (400, b'{"error": "no"}', False),
        (400, b'{"error": {"code": true}}', False),
        (413, b"[" * 5000, False),
    ],
)
async def test_unexpected_response_is_retryable_depending_on_its_status(
    fake_graph_server: FakeGraphServer, status: int, body: bytes, is_retryable: bool
) -> None:
    fake_graph_server.enqueue_response(status, body, f"Location: {fake_graph_server.url}/elsewhere")
    async with GraphClient(fake_graph_server.url, ACCESS_TOKEN, PHONE_NUMBER_ID) as graph:
        with pytest.raises(GraphError) as raised:
            await graph.send(HELLO_PAYLOAD)
    assert raised.value.is_retryable is is_retryable
    assert len(fake_graph_server.requests) == 1


@pytest.mark.parametrize("body", [b"{}", b"nonsense", b'{"messages": [{}]}', b'{"messages": 1}'])
async def test_success_response_without_a_message_id_counts_as_sent(
    fake_graph_server: FakeGraphServer, body: bytes
) -> None:
    fake_graph_server.enqueue_response(200, body)
    async with GraphClient(fake_graph_server.url, ACCESS_TOKEN, PHONE_NUMBER_ID) as graph:
        assert await graph.send(HELLO_PAYLOAD) == ""


async def test_connection_failure_is_retryable(fake_graph_server: FakeGraphServer) -> None:
    async with GraphClient(fake_graph_server.url, ACCESS_TOKEN, PHONE_NUMBER_ID) as graph:
        # The server closes the connection without a response.
        with pytest.raises(GraphError) as raised:
            await graph.send(HELLO_PAYLOAD)
        assert raised.value.is_retryable
    async with GraphClient("http://127.0.0.1:1", ACCESS_TOKEN, PHONE_NUMBER_ID) as graph:
        with pytest.raises(GraphError) as raised:
            await graph.send(HELLO_PAYLOAD)
        assert (raised.value.code, raised.value.is_retryable) == ("ConnectError", True)
        with pytest.raises(MediaError) as media:
            await graph.fetch_media("1")
        assert media.value.is_retryable


async def test_errors_contain_neither_the_message_nor_the_token(
    fake_graph_server: FakeGraphServer,
) -> None:
    fake_graph_server.enqueue_response(400, b'{"error": {"code": 131009, "message": "Hello"}}')
    async with GraphClient(fake_graph_server.url, ACCESS_TOKEN, PHONE_NUMBER_ID) as graph:
        with pytest.raises(GraphError) as raised:
            await graph.send(HELLO_PAYLOAD)
    assert "Hello" not in repr(raised.value)
    assert ACCESS_TOKEN not in repr(raised.value)
    assert ACCESS_TOKEN not in repr(vars(raised.value))


async def test_media_is_fetched_and_its_hash_may_be_hex_or_base64(
    graph: GraphClient, provider: Provider
) -> None:
    media_id = provider.media.add(IMAGE_BYTES, "image/jpeg")
    digest = hashlib.sha256(IMAGE_BYTES).digest()
    for sha256 in (None, digest.hex(), base64.b64encode(digest).decode()):
        assert await graph.fetch_media(media_id, sha256=sha256) == IMAGE_BYTES


@pytest.mark.parametrize("sha256", [hashlib.sha256(b"").hexdigest(), "nonsense", "AAAA"])
async def test_media_with_a_different_hash_is_rejected(
    graph: GraphClient, provider: Provider, sha256: str
) -> None:
    media_id = provider.media.add(IMAGE_BYTES, "image/jpeg")
    with pytest.raises(MediaError, match="does not match its SHA-256 hash"):
        await graph.fetch_media(media_id, sha256=sha256)


async def test_media_over_the_size_limit_is_rejected(
    graph: GraphClient, provider: Provider
) -> None:
    media_id = provider.media.add(IMAGE_BYTES, "image/jpeg")
    assert await graph.fetch_media(media_id, limit=len(IMAGE_BYTES)) == IMAGE_BYTES
    with pytest.raises(MediaError, match="is too large"):
        await graph.fetch_media(media_id, limit=len(IMAGE_BYTES) - 1)


@pytest.mark.parametrize("media_id", ["123", "../secrets", "a/b", "", "1?x=1", "é"])
async def test_unknown_media_id_is_reported_as_missing(graph: GraphClient, media_id: str) -> None:
    with pytest.raises(MediaError, match="was not found"):
        await graph.fetch_media(media_id)


def _build_media_info(url: str, **others: Any) -> bytes:
    return httpx2.Request("POST", "http://x", json={"url": url} | others).content


async def test_media_larger_than_its_stated_size_is_aborted_during_the_download(
    fake_graph_server: FakeGraphServer,
) -> None:
    fake_graph_server.enqueue_response(
        200, _build_media_info(fake_graph_server.url + "/file", file_size=10)
    )
    # Declares more bytes than it sends, so reading to the end would fail with a different error.
    fake_graph_server.responses.append(
        b"HTTP/1.1 200 X\r\nContent-Length: 99999999\r\n\r\n" + b"x" * 2_000_000
    )
    async with GraphClient(fake_graph_server.url, ACCESS_TOKEN, PHONE_NUMBER_ID) as graph:
        with pytest.raises(MediaError, match="is too large"):
            await graph.fetch_media("1", limit=1_000_000)


@pytest.mark.parametrize(
    "media_url",
    [
        "http://127.0.0.1:1/file",
        "http://example.com/file",
        "ftp://example.com/file",
        "file:///etc/passwd",
        "https://token@example.com/file",
        "https:///file",
        "http://[::1/file",
        "",
    ],
)
async def test_token_is_not_sent_to_an_invalid_or_foreign_media_url(
    fake_graph_server: FakeGraphServer, media_url: str
) -> None:
    fake_graph_server.enqueue_response(200, _build_media_info(media_url))
    async with GraphClient(fake_graph_server.url, ACCESS_TOKEN, PHONE_NUMBER_ID) as graph:
        with pytest.raises(MediaError, match="cannot be fetched from"):
            await graph.fetch_media("1")
    assert len(fake_graph_server.requests) == 1


async def test_redirect_of_a_media_url_is_not_followed(fake_graph_server: FakeGraphServer) -> None:
    fake_graph_server.enqueue_response(200, _build_media_info(fake_graph_server.url + "/file"))
    fake_graph_server.enqueue_response(302, b"", f"Location: {fake_graph_server.url}/elsewhere")
    async with GraphClient(fake_graph_server.url, ACCESS_TOKEN, PHONE_NUMBER_ID) as graph:
        with pytest.raises(MediaError):
            await graph.fetch_media("1")
    assert len(fake_graph_server.requests) == 2


async def test_expired_media_url_is_reported_as_missing(
    graph: GraphClient, provider: Provider, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    media_id = provider.media.add(IMAGE_BYTES, "image/jpeg")
    get_media_info = graph.get_media_info

    async def get_media_info_after_expiry(*args: Any) -> dict[str, Any]:
        media_info = await get_media_info(*args)
        clock.advance(minutes=5)
        return media_info

    monkeypatch.setattr(graph, "get_media_info", get_media_info_after_expiry)
    with pytest.raises(MediaError, match="was not found"):
        await graph.fetch_media(media_id)
