"""Network faults: a server with scripted failures, and a TCP proxy for PostgreSQL."""

import asyncio
import contextlib
import datetime
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple

import httpx2
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from tapgate.runtime.store.url import parse_url

#: How a request is handled: forward it; drop it before the gateway receives it; forward it and drop
#: the response; neither forward it nor respond.
SERVE, DROP, SERVE_AND_DROP, HANG = "serve", "drop", "serve and drop", "hang"


class ReceivedRequest(NamedTuple):
    method: str
    target: str
    headers: dict[str, str]
    body: bytes


class FlakyServer:
    """Handles each request according to the next of `behaviors`, or forwards it if none is left.

    A behavior may also be a complete response, as bytes.
    """

    def __init__(self, gateway: httpx2.AsyncBaseTransport) -> None:
        self._gateway = gateway
        self.behaviors: list[str | bytes] = []
        self.requests: list[ReceivedRequest] = []
        self.url = ""
        self._stopping = asyncio.Event()

    @asynccontextmanager
    async def listen(self) -> AsyncIterator["FlakyServer"]:
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        try:
            yield self
        finally:
            self._stopping.set()
            server.close()
            await server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while await self._handle_request(reader, writer):
                pass
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    async def _handle_request(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> bool:
        request_line, *lines = (await reader.readuntil(b"\r\n\r\n")).decode().strip().split("\r\n")
        method, target, _ = request_line.split(" ")
        header_pairs = (line.split(":", 1) for line in lines)
        headers = {name.lower(): value.strip() for name, value in header_pairs}
        body = await reader.readexactly(int(headers.get("content-length", "0")))
        received = ReceivedRequest(method, target, headers, body)
        self.requests.append(received)
        behavior = self.behaviors.pop(0) if self.behaviors else SERVE
        if isinstance(behavior, bytes):
            writer.write(behavior)
        elif behavior == HANG:
            await self._stopping.wait()
        elif behavior in (SERVE, SERVE_AND_DROP):
            response = await self._forward(received)
            if behavior == SERVE:
                writer.write(response)
        await writer.drain()
        return isinstance(behavior, bytes) or behavior == SERVE

    async def _forward(self, received: ReceivedRequest) -> bytes:
        request = httpx2.Request(
            received.method,
            "http://gateway" + received.target,
            headers=received.headers,
            content=received.body,
        )
        response = await self._gateway.handle_async_request(request)
        # Not decoded, because the headers describe the encoded body.
        content = b"".join([chunk async for chunk in response.aiter_raw()])
        head = [f"HTTP/1.1 {response.status_code} X"]
        head += [f"{name}: {value}" for name, value in response.headers.items()]
        if response.status_code != 204 and "content-length" not in response.headers:
            head.append(f"content-length: {len(content)}")
        return "\r\n".join([*head, "", ""]).encode() + content


def build_response(status: int, body: str = "", *more: str) -> bytes:
    head = [f"HTTP/1.1 {status} X", f"Content-Length: {len(body)}", *more, "", body]
    return "\r\n".join(head).encode()


def build_error_response(status: int, code: str, *more: str) -> bytes:
    return build_response(status, f'{{"error": "Request failed", "code": "{code}"}}', *more)


UNAVAILABLE_RESPONSE = build_error_response(503, "SERVICE_UNAVAILABLE", "Retry-After: 0")


_SSL_REQUEST_BYTES = b"\x00\x00\x00\x08\x04\xd2\x16\x2f"
_NO_ENCRYPTION_ERROR = (
    b"SFATAL\x00C28000\x00Mno pg_hba.conf entry for this host, no encryption\x00\x00"
)
_CHUNK_BYTES = 1 << 16

#: Called with bytes from the server. If it returns True, the proxy drops them and disconnects.
ForwardHook = Callable[[bytes], Awaitable[bool]]


@contextlib.asynccontextmanager
async def run_proxy(
    url: str, tls: ssl.SSLContext | None = None, hook: ForwardHook | None = None
) -> AsyncIterator[int]:
    """Run the proxy and yield its port.

    With `tls`, a client that does not request TLS gets PostgreSQL's error.
    """
    folder = parse_url(url).hosts[0][0]
    loop, tasks = asyncio.get_running_loop(), set[asyncio.Task[None]]()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.setblocking(False)

        async def accept() -> None:
            while True:
                client, _ = await loop.sock_accept(listener)
                task = asyncio.create_task(_serve(client, f"{folder}/.s.PGSQL.5432", tls, hook))
                tasks.add(task)
                task.add_done_callback(tasks.discard)

        accept_task = asyncio.create_task(accept())
        try:
            yield listener.getsockname()[1]
        finally:
            for task in (accept_task, *tasks):
                task.cancel()
            await asyncio.gather(accept_task, *tasks, return_exceptions=True)


async def _serve(
    client: socket.socket, path: str, tls: ssl.SSLContext | None, hook: ForwardHook | None
) -> None:
    loop = asyncio.get_running_loop()
    first = await loop.sock_recv(client, 8)
    if first == _SSL_REQUEST_BYTES:
        await loop.sock_sendall(client, b"S" if tls else b"N")
        first = b""
    elif tls is not None:
        length = (len(_NO_ENCRYPTION_ERROR) + 4).to_bytes(4, "big")
        await loop.sock_sendall(client, b"E" + length + _NO_ENCRYPTION_ERROR)
        client.close()
        return
    reader = asyncio.StreamReader()
    protocol = asyncio.StreamReaderProtocol(reader)
    with contextlib.suppress(OSError):
        transport, _ = await loop.connect_accepted_socket(lambda: protocol, client, ssl=tls)
        writer = asyncio.StreamWriter(transport, protocol, reader, loop)
        responses, server = await asyncio.open_unix_connection(path)
        server.write(first)
        try:
            await asyncio.gather(_pump(reader, server), _pump(responses, writer, hook))
        finally:
            server.close()
            writer.close()


async def _pump(
    source: asyncio.StreamReader, target: asyncio.StreamWriter, hook: ForwardHook | None = None
) -> None:
    while data := await source.read(_CHUNK_BYTES):
        if hook is not None and await hook(data):
            break
        target.write(data)
        await target.drain()
    target.close()


@contextlib.asynccontextmanager
async def run_distant_server(port: int, tls: ssl.SSLContext, delay: float) -> AsyncIterator[int]:
    """Forward TLS connections to a local port as if over a long line, and yield the proxy's port.

    All bytes take `delay` seconds in each direction, including TLS handshake bytes.
    """

    async def wait(_: bytes) -> bool:
        await asyncio.sleep(delay)
        return False

    async with _forward(port, None, tls) as tls_port, _forward(tls_port, wait) as line_port:
        yield line_port


@contextlib.asynccontextmanager
async def _forward(
    port: int, hook: ForwardHook | None, tls: ssl.SSLContext | None = None
) -> AsyncIterator[int]:
    """Forward connections to a local port, and yield the listener's port."""
    tasks = set[asyncio.Task[None]]()

    async def carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        responses, server = await asyncio.open_connection("127.0.0.1", port)
        try:
            await asyncio.gather(_pump(reader, server, hook), _pump(responses, writer, hook))
        except OSError:
            pass
        finally:
            server.transport.abort()
            writer.transport.abort()

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(carry(reader, writer))
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    listener = await asyncio.start_server(accept, "127.0.0.1", 0, ssl=tls)
    try:
        yield listener.sockets[0].getsockname()[1]
    finally:
        listener.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def make_certificates(folder: Path) -> tuple[ssl.SSLContext, Path]:
    """Create certificates; return a server context for `localhost` and the CA's path."""
    authority_key, key = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    authority = _build_certificate("authority", authority_key, "authority", authority_key)
    certificate = _build_certificate("localhost", key, "authority", authority_key)
    root, chain = folder / "root.pem", folder / "server.pem"
    root.write_bytes(authority.public_bytes(serialization.Encoding.PEM))
    secret = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    chain.write_bytes(secret + certificate.public_bytes(serialization.Encoding.PEM))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(chain)
    return context, root


def _build_certificate(
    name: str, key: ec.EllipticCurvePrivateKey, issuer: str, issuer_key: ec.EllipticCurvePrivateKey
) -> x509.Certificate:
    now = datetime.datetime.now(datetime.UTC)
    is_authority = name == issuer
    builder = (
        x509.CertificateBuilder()
        .subject_name(_build_name(name))
        .issuer_name(_build_name(issuer))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca=is_authority, path_length=None), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key.public_key()), False
        )
    )
    if not is_authority:
        builder = builder.add_extension(
            x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False
        )
    return builder.sign(issuer_key, hashes.SHA256())


def _build_name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, text)])
