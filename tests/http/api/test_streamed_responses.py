"""Large bodies: sent as fast as the client reads, and ended when the client disconnects."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from builders.worst_case_requests import FakeServerState
from drivers.connections import drain_event_loop
from tapgate.http.api.app import App
from tapgate.http.http_messages import Request, Response
from tapgate.http.protocol import HttpProtocol

CHUNKS = [b"a" * 10, b"b" * 10, b"c" * 10]
SHARED_BODY = b"x" * 200_000


class FakeStream:
    def __init__(self) -> None:
        self.sent = 0
        self.is_closed = False
        self.fails = False

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for chunk in CHUNKS:
            if self.fails:
                raise ConnectionResetError
            self.sent += 1
            yield chunk

    def close(self) -> None:
        self.is_closed = True


class FakeApp:
    render_error = staticmethod(App.render_error)

    def __init__(self) -> None:
        self.loaded_app = self
        self.streams: list[FakeStream] = []
        self.is_blocked = asyncio.Event()
        self.is_canceled = asyncio.Event()

    async def respond(self, request: Request) -> Response:
        if request.path == "/blocked":
            return await request.cancel_on_disconnect(self._block())
        if request.path == "/shared":
            return Response(200, b"content-length: 200000\r\n", SHARED_BODY)
        self.streams.append(FakeStream())
        return Response(200, b"content-length: 30\r\n", b"", stream=self.streams[-1])

    async def _block(self) -> Response:
        self.is_blocked.set()
        try:
            return await asyncio.get_running_loop().create_future()
        except asyncio.CancelledError:
            self.is_canceled.set()
            raise


class FakeTransport:
    def __init__(self) -> None:
        self.data = b""
        self.writes: list[bytes | memoryview] = []
        self.is_aborted = False

    def write(self, data: bytes | memoryview) -> None:
        self.writes.append(data)
        self.data += data

    def abort(self) -> None:
        self.is_aborted = True

    def get_extra_info(self, _name: str) -> None:
        return None

    def is_closing(self) -> bool:
        return self.is_aborted

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...

    def set_write_buffer_limits(self, high: int) -> None: ...


def connect() -> tuple[FakeApp, Any, FakeTransport]:
    app, transport = FakeApp(), FakeTransport()
    connection: Any = HttpProtocol(app, FakeServerState(), {})
    connection.connection_made(transport)
    return app, connection, transport


def build_request(method: str = "GET", path: str = "/file") -> bytes:
    return f"{method} {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode()


async def test_stream_waits_for_the_client_and_precedes_the_next_response() -> None:
    app, connection, transport = connect()
    connection.pause_writing()  # the send buffer is full
    connection.data_received(build_request())
    connection.resume_writing()
    await drain_event_loop()
    connection.data_received(build_request() + build_request())
    connection.pause_writing()
    await drain_event_loop()
    assert app.streams[1].sent == 1  # one chunk is held until the client reads
    connection.resume_writing()
    await drain_event_loop()
    assert [(stream.sent, stream.is_closed) for stream in app.streams] == [(3, True)] * 3
    responses = transport.data.split(b"HTTP/1.1 200 OK\r\n")[1:]
    assert [response.partition(b"\r\n\r\n")[2] for response in responses] == [b"".join(CHUNKS)] * 3
    connection.connection_lost(None)


async def test_connections_share_the_bytes_of_a_large_body() -> None:
    _, connection, transport = connect()
    connection.data_received(build_request(path="/shared"))
    await drain_event_loop()
    head, *parts, end = transport.writes
    assert (bytes(head).endswith(b"\r\n\r\n"), bytes(end)) == (True, b"")
    assert [len(part) for part in parts] == [65_536, 65_536, 65_536, 3_392]
    assert all(isinstance(part, memoryview) and part.obj is SHARED_BODY for part in parts)
    connection.connection_lost(None)


async def test_large_body_waits_for_the_client_and_ends_when_it_disconnects() -> None:
    _, connection, transport = connect()
    connection.data_received(build_request(path="/shared"))
    connection.pause_writing()
    await drain_event_loop()
    assert len(transport.data) < 1000  # only the head
    connection.resume_writing()
    connection.pause_writing()
    await drain_event_loop()
    assert len(transport.data) < 1000
    connection.connection_lost(None)
    await drain_event_loop()
    assert len(transport.data) < 1000


async def test_head_request_for_a_large_body_gets_no_body() -> None:
    _, connection, transport = connect()
    connection.data_received(build_request("HEAD", "/shared"))
    await drain_event_loop()
    assert transport.data.endswith(b"\r\n\r\n")
    connection.connection_lost(None)


async def test_head_request_gets_no_body() -> None:
    app, connection, transport = connect()
    connection.data_received(build_request("HEAD"))
    await drain_event_loop()
    assert transport.data.endswith(b"\r\n\r\n")
    assert (app.streams[0].sent, app.streams[0].is_closed) == (0, True)
    connection.connection_lost(None)


async def test_stream_ends_when_the_client_disconnects() -> None:
    app, connection, _ = connect()
    connection.data_received(build_request())
    connection.pause_writing()
    await drain_event_loop()
    connection.connection_lost(None)
    await drain_event_loop()
    assert (app.streams[0].sent, app.streams[0].is_closed) == (1, True)


async def test_connection_is_aborted_if_the_stream_fails(monkeypatch: Any) -> None:
    monkeypatch.setattr(FakeStream, "__init__", _init_failing)
    app, connection, transport = connect()
    connection.data_received(build_request())
    await drain_event_loop()
    assert transport.is_aborted
    assert app.streams[0].is_closed
    connection.connection_lost(None)


def _init_failing(self: FakeStream) -> None:
    self.sent, self.is_closed, self.fails = 0, False, True


async def test_work_is_canceled_when_the_client_closes_its_socket() -> None:
    app = FakeApp()
    loop = asyncio.get_running_loop()
    server = await loop.create_server(
        lambda: HttpProtocol(app, FakeServerState(), {}), "127.0.0.1", 0
    )
    async with asyncio.timeout(30), server:
        _, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        writer.write(build_request(path="/blocked"))
        await app.is_blocked.wait()
        writer.close()
        await app.is_canceled.wait()


async def test_work_is_canceled_when_the_client_disconnects() -> None:
    app, connection, _ = connect()
    connection.data_received(build_request(path="/blocked"))
    await drain_event_loop()
    assert not app.is_canceled.is_set()
    assert not connection.eof_received()  # the transport closes the connection
    connection.connection_lost(None)
    await drain_event_loop()
    assert app.is_canceled.is_set()
