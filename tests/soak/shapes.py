"""Hostile clients, one function per shape. Each runs until it is canceled.

A new shape is a function with the decorator `shape`: `make soak` and the tests run all of them.
"""

import asyncio
import contextlib
import secrets
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Final, NamedTuple

GATEWAY: Final = "gateway"
MESSENGER: Final = "messenger"
BOTH: Final = (GATEWAY, MESSENGER)

#: Below the connection limit per address, so that none is rejected.
CONNECTIONS: Final = 200
_HEAD: Final = b"Host: x\r\n"
_SMALL_WINDOW: Final = 4096
_DRIP_SECONDS: Final = 0.5
#: A connection that the server has closed is opened again after this time.
_RECONNECT_SECONDS: Final = 0.05


class Target(NamedTuple):
    service: str
    port: int

    @contextlib.asynccontextmanager
    async def connect(
        self, *, window: int | None = None
    ) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
        """Open a connection; `window` limits the client's receive buffer, in bytes."""
        client = socket.socket()
        if window is not None:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, window)
        client.setblocking(False)
        try:
            await asyncio.get_running_loop().sock_connect(client, ("127.0.0.1", self.port))
            reader, writer = await asyncio.open_connection(sock=client, limit=window or 2**16)
        except BaseException:
            client.close()
            raise
        try:
            yield reader, writer
        finally:
            writer.transport.abort()


Attack = Callable[[Target], Awaitable[None]]


class Shape(NamedTuple):
    name: str
    services: tuple[str, ...]
    attack: Attack


SHAPES: Final[dict[str, Shape]] = {}


def shape(
    services: tuple[str, ...] = BOTH, connections: int = CONNECTIONS
) -> Callable[[Attack], Attack]:
    """Declare a hostile client, which runs on this many connections at once."""

    def add(attack: Attack) -> Attack:
        async def repeat(target: Target) -> None:
            while True:
                with contextlib.suppress(OSError, asyncio.IncompleteReadError, ValueError):
                    await attack(target)
                await asyncio.sleep(_RECONNECT_SECONDS)

        async def attack_all(target: Target) -> None:
            await asyncio.gather(*(repeat(target) for _ in range(connections)))

        SHAPES[attack.__name__] = Shape(attack.__name__, services, attack_all)
        return attack

    return add


def build_get(path: str, *headers: bytes) -> bytes:
    lines = b"".join(header + b"\r\n" for header in headers)
    return b"GET %b HTTP/1.1\r\n%b%b\r\n" % (path.encode(), _HEAD, lines)


def build_post(path: str, body: bytes, *headers: bytes) -> bytes:
    lines = b"".join(header + b"\r\n" for header in headers)
    head = b"POST %b HTTP/1.1\r\n%bContent-Type: application/json\r\n" % (path.encode(), _HEAD)
    return b"%b%bContent-Length: %d\r\n\r\n%b" % (head, lines, len(body), body)


def get_post_path(target: Target) -> str:
    """Return a path that reads a body before it knows the caller."""
    return "/api/v1/admin/login" if target.service == GATEWAY else "/api/v1/external/messaging"


async def drip(writer: asyncio.StreamWriter, data: bytes) -> None:
    """Send one piece of data after another, until the server disconnects."""
    while True:
        writer.write(data)
        await writer.drain()
        await asyncio.sleep(_DRIP_SECONDS)


async def read_all(reader: asyncio.StreamReader) -> None:
    while await reader.read(2**16):
        pass


async def repeat_request(target: Target, build_request: Callable[[], bytes]) -> None:
    """Send requests as fast as the server responds."""
    async with target.connect() as (reader, writer):
        while True:
            writer.write(build_request())
            head = await reader.readuntil(b"\r\n\r\n")
            length = head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0]
            await reader.readexactly(int(length or b"0"))


@shape()
async def send_head_slowly(target: Target) -> None:
    async with target.connect() as (_, writer):
        writer.write(b"GET /health HTTP/1.1\r\n" + _HEAD)
        await drip(writer, b"X: x\r\n")


@shape()
async def send_huge_head(target: Target) -> None:
    async with target.connect() as (_, writer):
        writer.write(b"GET /health HTTP/1.1\r\n" + _HEAD + b"X: " + b"x" * 60_000)
        await drip(writer, b"x")


@shape()
async def send_body_slowly(target: Target) -> None:
    async with target.connect() as (_, writer):
        writer.write(build_post(get_post_path(target), b"x" * 9_000)[:-8_999])
        await drip(writer, b"x")


@shape()
async def drip_chunks(target: Target) -> None:
    async with target.connect() as (_, writer):
        head = f"POST {get_post_path(target)} HTTP/1.1\r\nHost: x\r\n"
        writer.write(head.encode() + b"Transfer-Encoding: chunked\r\n\r\n")
        await drip(writer, b"1\r\nx\r\n")


@shape()
async def send_incomplete_body(target: Target) -> None:
    async with target.connect() as (_, writer):
        body = b"x" * 15_000
        writer.write(build_post(get_post_path(target), body)[:-1])
        await asyncio.sleep(20)


@shape(connections=4)
async def flood_pipelined(target: Target) -> None:
    async with target.connect() as (reader, writer):
        await asyncio.gather(read_all(reader), flood(writer, build_get("/health") * 500))


@shape()
async def flood_without_reading(target: Target) -> None:
    async with target.connect(window=_SMALL_WINDOW) as (_, writer):
        await flood(writer, build_get("/health") * 500)


@shape()
async def flood_large_heads(target: Target) -> None:
    async with target.connect(window=_SMALL_WINDOW) as (_, writer):
        await flood(writer, build_get("/health", b"X: " + b"x" * 30_000))


async def flood(writer: asyncio.StreamWriter, data: bytes) -> None:
    while True:
        writer.write(data)
        await writer.drain()


@shape()
async def read_slowly(target: Target) -> None:
    async with target.connect(window=_SMALL_WINDOW) as (reader, writer):
        writer.write(build_get("/openapi.json"))
        while await reader.read(1024):
            await asyncio.sleep(_DRIP_SECONDS)


@shape()
async def read_nothing(target: Target) -> None:
    path = "/guide/api/admin" if target.service == GATEWAY else "/openapi.json"
    async with target.connect(window=_SMALL_WINDOW) as (reader, writer):
        reader._transport.pause_reading()  # type: ignore[attr-defined]
        writer.write(build_get(path) + build_get("/openapi.json"))
        await asyncio.sleep(60)


@shape()
async def read_no_metrics(target: Target) -> None:
    async with target.connect(window=_SMALL_WINDOW) as (reader, writer):
        reader._transport.pause_reading()  # type: ignore[attr-defined]
        writer.write(build_get("/metrics"))
        await asyncio.sleep(2)


@shape(connections=250)
async def stay_idle(target: Target) -> None:
    async with target.connect() as (reader, _):
        await reader.read(1)


@shape()
async def half_close(target: Target) -> None:
    async with target.connect(window=_SMALL_WINDOW) as (reader, writer):
        writer.write(build_get("/openapi.json"))
        writer.write_eof()
        await reader.read(1)
        await asyncio.sleep(5)


@shape(connections=50)
async def reconnect(target: Target) -> None:
    async with target.connect() as (_, writer):
        writer.write(b"GET /hea")
        await writer.drain()


@shape(connections=50)
async def send_malformed_requests(target: Target) -> None:
    async with target.connect() as (reader, writer):
        writer.write(secrets.token_bytes(200) + b"\r\n\r\n")
        await read_all(reader)


@shape(connections=120)
async def flood_metrics(target: Target) -> None:
    await repeat_request(target, lambda: build_get("/metrics"))


@shape(connections=120)
async def flood_document(target: Target) -> None:
    await repeat_request(target, lambda: build_get("/openapi.json"))


@shape(connections=120)
async def flood_health(target: Target) -> None:
    await repeat_request(target, lambda: build_get("/health"))


@shape((GATEWAY,), connections=120)
async def flood_guide_search(target: Target) -> None:
    await repeat_request(target, lambda: build_get("/guide/search?q=the+and+for+with+that+not"))


@shape((GATEWAY,), connections=120)
async def flood_unknown_page(target: Target) -> None:
    await repeat_request(
        target, lambda: build_get(f"/guide/{secrets.token_hex(40)}", b"Accept: text/html")
    )


@shape((GATEWAY,), connections=120)
async def flood_unknown_reference_page(target: Target) -> None:
    await repeat_request(
        target, lambda: build_get(f"/guide/api/{secrets.token_hex(40)}", b"Accept: text/html")
    )


@shape((GATEWAY,), connections=120)
async def flood_console(target: Target) -> None:
    await repeat_request(target, lambda: build_get("/console/sign-in", b"Accept: text/html"))


@shape((GATEWAY,), connections=120)
async def flood_portal(target: Target) -> None:
    await repeat_request(target, lambda: build_get("/portal/sign-in", b"Accept: text/html"))


@shape((GATEWAY,), connections=120)
async def flood_verify_page(target: Target) -> None:
    await repeat_request(target, lambda: build_get("/verify", b"Accept: text/html"))


@shape((GATEWAY,), connections=120)
async def flood_login(target: Target) -> None:
    body = b'{"email":"%b@example.com","password":"wrong horse battery"}'
    await repeat_request(
        target, lambda: build_post("/api/v1/admin/login", body % secrets.token_hex(8).encode())
    )


@shape((GATEWAY,), connections=120)
async def flood_unknown_api_keys(target: Target) -> None:
    await repeat_request(
        target,
        lambda: build_get(
            "/api/v1/transactions",
            b"Authorization: Bearer svc_test_" + secrets.token_hex(24).encode(),
        ),
    )


@shape((GATEWAY,), connections=120)
async def flood_invalid_tokens(target: Target) -> None:
    token = b"eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.e30." + secrets.token_hex(21).encode()
    request = build_get("/api/v1/transactions", b"Authorization: Bearer " + token)
    await repeat_request(target, lambda: request)


@shape(connections=120)
async def flood_invalid_signatures(target: Target) -> None:
    if target.service == MESSENGER:
        signature = b"X-Hub-Signature-256: sha256=" + secrets.token_hex(32).encode()
        request = build_post("/api/v1/webhooks/messaging", b"{}" * 5_000, signature)
    else:
        request = build_post(
            "/api/v1/pos/pay",
            b"{}",
            b"X-API-Key-ID: key_" + secrets.token_hex(8).encode(),
            b"X-Timestamp: 2026-01-01T00:00:00Z",
            b"X-Signature: " + secrets.token_hex(32).encode(),
        )
    await repeat_request(target, lambda: request)
