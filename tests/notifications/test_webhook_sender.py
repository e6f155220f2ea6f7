"""A webhook is sent to the address that was validated, under the host name of the URL."""

import ssl
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from drivers.webhooks import WebhookReceiver
from tapgate.webhooks.sender import NoResponseError, WebhookSender

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
        with pytest.raises(NoResponseError, match="ConnectError"):
            await sender.send(f"https://{HOST}:{receiver.port}/", {}, b"{}")
    assert receiver.received == []


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
    monkeypatch.setattr("tapgate.webhooks.target_urls._NON_PUBLIC_IPV4", ())
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
