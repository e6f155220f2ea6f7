"""Raw HTTP client connection that can disconnect during a request."""

import asyncio
import time
from typing import Any, Final

import msgspec

from torture.plan import CutPoint

#: Timeout for connecting, and default timeout for a response.
RESPONSE_TIMEOUT_SECONDS: Final = 1.0
#: A connection that was idle for longer is not used again: the server may be closing it. Less than
#: the gateway's keep-alive timeout, and than the time for which a stopping gateway drains.
_MAX_IDLE_SECONDS: Final = 1.5
_HEAD_END: Final = b"\r\n\r\n"
_REPLAYED_HEADER: Final = b"\r\nidempotent-replayed: true"
_CLOSE_HEADER: Final = b"\r\nconnection: close"
_JSON_HEADER: Final = b"\r\ncontent-type: application/json"


class ConnectFailedError(Exception):
    """The gateway does not accept connections."""


class NoResponseError(Exception):
    """The request was sent at least in part, and its outcome is unknown."""


class Response(msgspec.Struct, frozen=True, kw_only=True):
    status: int
    body: dict[str, Any]
    replayed: bool

    @property
    def code(self) -> str:
        return str(self.body.get("code", ""))


class ClientConnection:
    """One connection, opened on demand."""

    def __init__(self, port: int, *, timeout_seconds: float = RESPONSE_TIMEOUT_SECONDS) -> None:
        self._port = port
        self._timeout_seconds = timeout_seconds
        self._used_at = 0.0
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def send(self, request: bytes, *, timeout_seconds: float | None = None) -> Response:
        reader, writer = await self._open()
        try:
            async with asyncio.timeout(timeout_seconds or self._timeout_seconds):
                writer.write(request)
                response, is_last = await _read_response(reader)
        except (OSError, EOFError, TimeoutError) as error:
            self.close()
            raise NoResponseError from error
        except BaseException:
            self.close()
            raise
        self._used_at = time.monotonic()
        # After a 503, the gateway pauses reading from the connection until Retry-After.
        if is_last or response.status == 503:
            self.close()
        return response

    async def send_and_disconnect(self, request: bytes, cut: CutPoint) -> None:
        """Send the request up to the cut point and disconnect."""
        _, writer = await self._open()
        body_at = request.index(_HEAD_END) + len(_HEAD_END)
        ends = {"head": body_at // 2, "body": (body_at + len(request)) // 2, "response": None}
        try:
            writer.write(request[: ends[cut]])
            # The write is sent immediately; the delay lets the gateway start processing it.
            await asyncio.sleep(0.002 if cut == "response" else 0)
        finally:
            self.close()

    def close(self) -> None:
        if self._streams is not None:
            self._streams[1].transport.abort()
            self._streams = None

    async def _open(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        if time.monotonic() - self._used_at > _MAX_IDLE_SECONDS:
            self.close()
        if self._streams is None:
            try:
                async with asyncio.timeout(self._timeout_seconds):
                    self._streams = await asyncio.open_connection("127.0.0.1", self._port)
                self._used_at = time.monotonic()
            except (OSError, TimeoutError) as error:
                raise ConnectFailedError from error
        return self._streams


async def _read_response(reader: asyncio.StreamReader) -> tuple[Response, bool]:
    """Return the response, and whether the server closes the connection after it."""
    head = (await reader.readuntil(_HEAD_END)).lower()
    length = int(head.partition(b"content-length: ")[2].partition(b"\r")[0])
    body = await reader.readexactly(length)
    if _JSON_HEADER not in head:  # from a proxy without a gateway; the outcome is unknown
        return Response(status=503, body={}, replayed=False), True
    response = Response(
        status=int(head[9:12]), body=msgspec.json.decode(body), replayed=_REPLAYED_HEADER in head
    )
    return response, _CLOSE_HEADER in head
