"""The webhook client: validated addresses, connection reuse, limits and malformed responses."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from drivers.webhooks import WebhookReceiver
from tapgate.events.webhooks import sender as webhook_sender
from tapgate.events.webhooks.sender import NoResponseError, WebhookSender
from tapgate.runtime import http_client
from tapgate.runtime.http_client import encode_request, parse_target
from tapgate_client.schemas.webhooks import WebhookAttemptError

HOST = "shop.example.com"


class FakeResolver:
    """A resolver that returns one of the given address lists per query, in order."""

    def __init__(self, *responses: list[str]) -> None:
        self.address_lists = list(responses)
        self.queries: list[str] = []

    async def __call__(self, host: str) -> Sequence[str]:
        self.queries.append(host)
        return self.address_lists.pop(0)


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    """Return a file with a key and a self-signed certificate for HOST."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, HOST)])
    now = datetime.now(UTC)
    created = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(HOST)]), critical=False)
        .sign(key, hashes.SHA256())
    )
    file = tmp_path / "certificate.pem"
    file.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        + created.public_bytes(serialization.Encoding.PEM)
    )
    return file


def build_ssl_context(certificate: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    return context


async def test_name_is_resolved_once_and_the_connection_uses_that_address(
    receiver: WebhookReceiver,
) -> None:
    resolver = FakeResolver(["127.0.0.1"])
    response = await WebhookSender(public_only=False, resolve=resolver).send(
        f"http://{HOST}:{receiver.port}/hook#part", {"X-Own": "1"}, b"{}"
    )
    assert response.status == 204
    (received,) = receiver.received
    assert received.request_line == "POST /hook HTTP/1.1"
    assert received.headers["host"] == f"{HOST}:{receiver.port}"
    assert received.headers["x-own"] == "1"
    assert resolver.queries == [HOST]


async def test_sender_tries_the_next_address_if_one_is_unreachable(
    receiver: WebhookReceiver,
) -> None:
    resolver = FakeResolver(["127.0.0.2", "127.0.0.1"])
    sender = WebhookSender(public_only=False, resolve=resolver)
    assert (await sender.send(f"http://{HOST}:{receiver.port}/", {}, b"{}")).status == 204
    assert len(receiver.received) == 1


async def test_tls_certificate_is_verified_against_the_host_name(certificate: Path) -> None:
    receiver = WebhookReceiver()
    server_names: list[str | None] = []
    context = build_ssl_context(certificate)
    context.sni_callback = lambda _socket, name, _context: server_names.append(name)
    trust = ssl.create_default_context(cafile=str(certificate))
    async with receiver.listen(context):
        sender = WebhookSender(
            public_only=False, resolve=FakeResolver(*[["127.0.0.1"]] * 3), ssl_context=trust
        )
        assert (await sender.send(f"https://{HOST}:{receiver.port}/", {}, b"{}")).status == 204
        assert (await sender.send(f"https://{HOST}.:{receiver.port}/", {}, b"{}")).status == 204
        assert server_names == [HOST, HOST]
        with pytest.raises(NoResponseError, match="ConnectError"):
            await sender.send(f"https://other.example.com:{receiver.port}/", {}, b"{}")
        with pytest.raises(NoResponseError, match="ConnectError"):
            await sender.send(f"https://127.0.0.1:{receiver.port}/", {}, b"{}")
    assert len(receiver.received) == 2


async def test_untrusted_certificate_is_rejected(certificate: Path) -> None:
    receiver = WebhookReceiver()
    async with receiver.listen(build_ssl_context(certificate)):
        sender = WebhookSender(public_only=False, resolve=FakeResolver(["127.0.0.1"]))
        with pytest.raises(NoResponseError, match="ConnectError") as failure:
            await sender.send(f"https://{HOST}:{receiver.port}/", {}, b"{}")
    assert failure.value.reason == WebhookAttemptError.TLS_FAILED
    assert receiver.received == []


async def test_reason_of_a_missing_response_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(webhook_sender, "RESPONSE_TIMEOUT_SECONDS", 0.2)

    async def find_reason(url: str, *, public_only: bool = False) -> WebhookAttemptError:
        with pytest.raises(NoResponseError) as failure:
            await WebhookSender(public_only=public_only).send(url, {}, b"{}")
        return failure.value.reason

    assert await find_reason("http://127.0.0.1:9/") == WebhookAttemptError.CONNECTION_REFUSED
    reason = await find_reason("http://127.0.0.1/", public_only=True)
    assert reason == WebhookAttemptError.URL_REJECTED
    assert await find_reason(f"http://{'a' * 63}.invalid/") == WebhookAttemptError.HOST_NOT_FOUND
    async with Server([]).listen() as server:
        url = f"http://127.0.0.1:{server.port}/"
        assert await find_reason(url) == WebhookAttemptError.CONNECTION_CLOSED
    receiver = WebhookReceiver()
    async with receiver.listen():
        assert await find_reason(f"{receiver.url}/slow") == WebhookAttemptError.TIMEOUT
        receiver.allow_responses.set()


@pytest.mark.parametrize("address", ["127.0.0.1", "::ffff:127.0.0.1"])
async def test_production_rejects_a_name_that_resolves_to_a_local_address(
    certificate: Path, address: str
) -> None:
    receiver = WebhookReceiver()
    trust = ssl.create_default_context(cafile=str(certificate))
    async with receiver.listen(build_ssl_context(certificate)):
        sender = WebhookSender(public_only=True, resolve=FakeResolver([address]), ssl_context=trust)
        with pytest.raises(NoResponseError, match="TargetRejectedError"):
            await sender.send(f"https://{HOST}:{receiver.port}/", {}, b"{}")
    assert receiver.received == []


async def test_production_connects_to_the_address_that_was_checked(
    certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # No public address is reachable in a test, so loopback counts as public here.
    monkeypatch.setattr("tapgate.events.webhooks.target_urls.NON_PUBLIC_IPV4", ())
    receiver, resolver = WebhookReceiver(), FakeResolver(["127.0.0.1"], ["10.0.0.1"])
    trust = ssl.create_default_context(cafile=str(certificate))
    async with receiver.listen(build_ssl_context(certificate)):
        sender = WebhookSender(public_only=True, resolve=resolver, ssl_context=trust)
        assert (await sender.send(f"https://{HOST}:{receiver.port}/", {}, b"{}")).status == 204
    assert resolver.queries == [HOST]
    assert len(receiver.received) == 1


async def test_proxy_from_the_environment_is_ignored(
    receiver: WebhookReceiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    assert (await WebhookSender(public_only=False).send(receiver.url, {}, b"{}")).status == 204


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
    monkeypatch.setattr(http_client, "MAX_IDLE_SECONDS", -1.0)
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
async def test_endless_body_framing_ends_the_body(
    overhead: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tapgate.events.webhooks.sender.BODY_TIMEOUT_SECONDS", 3600.0)
    response = b"HTTP/1.1 200 X\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n" + overhead
    async with Server([response, *[b"x" * 10_000] * 10, b"open"]).listen() as server:
        async with asyncio.timeout(60):
            received = await WebhookSender(public_only=False).send(server.url, {}, b"{}")
        assert (received.status, received.text) == (200, "ok")


def test_header_with_a_line_break_is_rejected() -> None:
    with pytest.raises(ValueError, match="line break"):
        encode_request(parse_target("http://shop.example.com"), {"X": "a\r\nY: b"}, b"")
