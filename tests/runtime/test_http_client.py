"""HTTP client for trusted services: persistent connections, and requests that are repeated."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

import pytest

from tapgate.runtime.http_client import (
    ConnectError,
    ConnectionPool,
    HttpClient,
    encode_request,
    parse_target,
)

_HEAD = b"HTTP/1.1 202 Accepted\r\nContent-Length: 2\r\n\r\n"


class Server:
    """HTTP server that sends a response's head and body separately.

    On each connection, it reads `max_requests`, and closes it when another request arrives.
    """

    def __init__(self) -> None:
        self.url = ""
        self.max_requests = 1000
        self.connections = 0
        self.bodies: list[bytes] = []
        self.allow_responses = asyncio.Event()
        self.allow_responses.set()

    @contextlib.asynccontextmanager
    async def listen(self) -> AsyncIterator[None]:
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/messages"
        try:
            yield
        finally:
            self.allow_responses.set()
            server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        with contextlib.closing(writer), contextlib.suppress(EOFError, ConnectionError):
            for _ in range(self.max_requests):
                await reader.readuntil(b"\r\n\r\n")
                self.bodies.append(await reader.readexactly(1))
                await self.allow_responses.wait()
                writer.write(_HEAD)
                await writer.drain()
                writer.write(b"ok")
            await reader.readuntil(b"\r\n\r\n")


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    server = Server()
    async with server.listen():
        yield server


@pytest.fixture
async def client() -> AsyncIterator[HttpClient]:
    with contextlib.closing(HttpClient(timeout_seconds=30)) as client:
        yield client


async def post_all(client: HttpClient, url: str, *bodies: bytes) -> list[int]:
    return [
        (await client.post(url, content=body, headers={"X-Name": "value"})).status_code
        for body in bodies
    ]


async def test_requests_share_a_connection(server: Server, client: HttpClient) -> None:
    assert await post_all(client, server.url, b"1", b"2", b"3") == [202] * 3
    assert server.bodies == [b"1", b"2", b"3"]
    assert server.connections == 1


async def test_request_on_a_closed_connection_is_repeated(
    server: Server, client: HttpClient
) -> None:
    server.max_requests = 2
    assert await post_all(client, server.url, b"1", b"2", b"3", b"4", b"5") == [202] * 5
    assert server.bodies == [b"1", b"2", b"3", b"4", b"5"]
    assert server.connections == 3


async def test_unreachable_server_is_a_connect_error(client: HttpClient) -> None:
    with pytest.raises(ConnectError):
        await post_all(client, "http://127.0.0.1:9/messages", b"1")


async def test_request_without_a_response_times_out(server: Server) -> None:
    server.allow_responses.clear()
    client = HttpClient(timeout_seconds=0.05)
    with pytest.raises(TimeoutError):
        await post_all(client, server.url, b"1")


async def test_each_request_on_a_connection_has_its_own_timeout(server: Server) -> None:
    target = parse_target(server.url)
    pool = ConnectionPool()
    connection = await pool.connect(target, target.server_name, timeout_seconds=30)
    request = encode_request(target, {}, b"1")

    async def send(*, timeout_seconds: float) -> int:
        status = await connection.send(request, timeout_seconds=timeout_seconds)
        await connection.wait_for_body()
        return status

    assert await send(timeout_seconds=1) == 202
    server.allow_responses.clear()
    asyncio.get_running_loop().call_later(1.2, server.allow_responses.set)
    assert await send(timeout_seconds=30) == 202  # responds after the first timeout has passed
    server.allow_responses.clear()
    with pytest.raises(TimeoutError):
        await send(timeout_seconds=0.01)


def test_certificate_is_verified_for_the_encoded_host_name() -> None:
    """Decoded, the name would be `faß.example`, which Python encodes as `fass.example`."""
    assert parse_target("https://xn--fa-hia.example./hook").server_name == "xn--fa-hia.example"
    assert parse_target("https://[2001:db8::1]/hook").server_name == "2001:db8::1"
