"""Connections of the webhook client: reuse, limits and malformed responses."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from tapgate.webhooks import http_client
from tapgate.webhooks.http_client import encode_request, parse_target
from tapgate.webhooks.sender import NoResponseError, WebhookSender

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


class Server:
    """Writes the given chunks for each request, and counts connections and requests."""

    def __init__(self, *responses: list[bytes]) -> None:
        self._responses = list(responses)
        self.port = 0
        self.connections = 0
        self.requests = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/hook"

    @asynccontextmanager
    async def listen(self) -> AsyncIterator["Server"]:
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        async with server:
            yield self

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while await reader.readuntil(b"\r\n\r\n"):
                await reader.readexactly(2)
                self.requests += 1
                chunks = self._responses.pop(0) if self._responses else [OK]
                for chunk in chunks:
                    writer.write(chunk)
                    await writer.drain()
                    await asyncio.sleep(0)
                if not chunks or chunks[-1] == b"":
                    return
        except (ConnectionError, EOFError):
            pass
        finally:
            writer.close()


async def send(sender: WebhookSender, server: Server) -> int:
    return (await sender.send(server.url, {}, b"{}")).status


async def test_connection_is_reused() -> None:
    async with Server().listen() as server:
        sender = WebhookSender(public_only=False)
        assert [await send(sender, server) for _ in range(5)] == [200] * 5
        assert (server.connections, server.requests) == (1, 5)
        sender.close_idle()


async def test_connection_is_not_reused_for_another_host_name_at_the_same_address() -> None:
    async def resolve(host: str) -> list[str]:
        return ["127.0.0.1"]

    async with Server().listen() as server:
        sender = WebhookSender(public_only=False, resolve=resolve)
        for host in ("a.example.com", "b.example.com", "a.example.com"):
            await sender.send(f"http://{host}:{server.port}/", {}, b"{}")
        assert server.connections == 2
        sender.close_idle()


async def test_connection_is_not_reused_after_the_name_moved_to_another_address() -> None:
    addresses = [["127.0.0.1"], ["127.0.0.2"]]

    async def resolve(host: str) -> list[str]:
        return addresses.pop(0)

    async with Server().listen() as server:
        sender = WebhookSender(public_only=False, resolve=resolve)
        url = f"http://a.example.com:{server.port}/"
        await sender.send(url, {}, b"{}")
        with pytest.raises(NoResponseError, match="ConnectError"):
            await sender.send(url, {}, b"{}")
        assert server.requests == 1
        sender.close_idle()


async def test_request_is_repeated_on_a_new_connection_if_the_idle_one_was_closed() -> None:
    async with Server([OK], []).listen() as server:
        sender = WebhookSender(public_only=False)
        assert [await send(sender, server), await send(sender, server)] == [200, 200]
        assert (server.connections, server.requests) == (2, 3)
        sender.close_idle()


async def test_request_on_a_new_connection_is_not_repeated() -> None:
    async with Server([]).listen() as server:
        with pytest.raises(NoResponseError, match="ConnectionReset"):
            await send(WebhookSender(public_only=False), server)
        assert server.requests == 1


async def test_idle_connections_expire(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_client, "_MAX_IDLE_SECONDS", -1.0)
    async with Server().listen() as server:
        sender = WebhookSender(public_only=False)
        await send(sender, server)
        sender.close_idle(only_expired=True)
        await send(sender, server)
        await send(sender, server)
        assert server.connections == 3
        sender.close_idle()


@pytest.mark.parametrize(
    ("chunks", "status"),
    [
        ([b"HTTP/1.1 100 Continue\r\n\r\n", OK], 200),
        ([b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + OK], 200),
        ([b"HTTP/1.1 204 X\r\n\r\n"], 204),
        ([b"HTTP/1.1 200 X\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n", b"0\r\n\r\n"], 200),
        ([bytes([byte]) for byte in OK], 200),
    ],
)
async def test_complete_response_leaves_the_connection_usable(
    chunks: list[bytes], status: int
) -> None:
    async with Server(chunks).listen() as server:
        sender = WebhookSender(public_only=False)
        assert [await send(sender, server), await send(sender, server)] == [status, 200]
        assert server.connections == 1
        sender.close_idle()


@pytest.mark.parametrize(
    ("chunks", "status"),
    [
        ([b"HTTP/1.1 200 X\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok"], 200),
        ([b"HTTP/1.0 200 X\r\nContent-Length: 2\r\n\r\nok"], 200),
        ([b"HTTP/1.1 200 X\r\nContent-Length: 9999\r\n\r\n" + b"x" * 2000], 200),
        ([b"HTTP/1.1 200 X\r\n\r\nuntil the end", b""], 200),
        ([b"HTTP/1.1 101 X\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n"], 101),
        ([OK + OK], 200),
        ([OK + b"HTTP/1.1 500 X\r\n"], 200),
    ],
)
async def test_connection_in_an_unknown_state_is_closed(chunks: list[bytes], status: int) -> None:
    async with Server(chunks).listen() as server:
        sender = WebhookSender(public_only=False)
        assert [await send(sender, server), await send(sender, server)] == [status, 200]
        assert server.connections == 2
        sender.close_idle()


@pytest.mark.parametrize(
    "response",
    [
        b"HTTP/1.1 200 X\r\n" + b"X-Long: " + b"x" * 200_000,
        b"HTTP/1.1 200 X\r\n" + b"X: y\r\n" * 40_000,
        b"HTTP/1.1 100 X\r\n\r\n" * 10_000,
        b"HTTP/1.1 200 X\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n",
        b"HTTP/1.1 200 X\r\nContent-Length: x\r\n\r\n",
        b"HTTP/9.9.9 200 X\r\n\r\n",
        b"GET / HTTP/1.1\r\n\r\n",
        b"\x00\x01\x02",
    ],
)
async def test_malformed_or_oversized_head_is_a_protocol_error(response: bytes) -> None:
    async with Server([response, b""]).listen() as server:
        with pytest.raises(NoResponseError, match="RemoteProtocolError"):
            await send(WebhookSender(public_only=False), server)


@pytest.mark.parametrize("overhead", [b"0\r\nX-Long: ", b"2;extension="])
async def test_endless_framing_of_the_body_ends_the_body(overhead: bytes) -> None:
    response = b"HTTP/1.1 200 X\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n" + overhead
    async with Server([response, *[b"x" * 10_000] * 10, b"open"]).listen() as server:
        started_at = time.monotonic()
        received = await WebhookSender(public_only=False).send(server.url, {}, b"{}")
        assert (received.status, received.text) == (200, "ok")
        assert time.monotonic() - started_at < 1.5  # the timeout of the body is 2 seconds


def test_header_with_a_line_break_is_rejected() -> None:
    with pytest.raises(ValueError, match="line break"):
        encode_request(parse_target("http://shop.example.com"), {"X": "a\r\nY: b"}, b"")
