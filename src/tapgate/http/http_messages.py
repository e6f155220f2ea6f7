"""HTTP requests and responses, independent of the server implementation."""

from collections.abc import AsyncIterator, Awaitable, Mapping, Sequence
from functools import lru_cache
from http import HTTPStatus
from typing import Final, NamedTuple, Protocol, TypeVar

from tapgate_client.errors import ApiError, Code

T = TypeVar("T")

#: Default response headers. They forbid browsers to guess the content type, to load resources, and
#: to show the response in a frame.
SECURITY_HEADERS: Final[Mapping[str, str]] = {
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "default-src 'none'; base-uri 'none'; frame-ancestors 'none'",
}
_MAX_LENGTH_DIGITS: Final = 20
_STATUS_LINES = {
    status.value: f"HTTP/1.1 {status.value} {status.phrase}\r\n".encode() for status in HTTPStatus
}


class Request(Protocol):
    """HTTP request.

    The path is still percent-encoded, as the client sent and signed it. Header names are lowercase.
    """

    method: str
    path: str
    query: bytes
    headers: dict[bytes, bytes]
    peer: str
    #: False if part of the body may not have been received yet.
    is_complete: bool

    async def read_body(self, limit: int) -> bytes:
        """Return the whole body.

        Raises 413 if the body exceeds the limit, 503 if the body memory budget is exhausted, and
        ClientDisconnectedError if the client disconnects before the body ends.
        """
        ...

    async def cancel_on_disconnect(self, work: Awaitable[T]) -> T:
        """Await work. If the client disconnects, cancel it and raise ClientDisconnectedError."""
        ...


class BodyStream(Protocol):
    """Body that is sent while it is received from another process."""

    def __aiter__(self) -> AsyncIterator[bytes]: ...

    def close(self) -> None:
        """End the transfer, even if the body is incomplete."""
        ...


class Response(NamedTuple):
    status: int
    head: bytes  # header lines, each terminated by CRLF
    body: bytes
    #: Seconds for which the server stops reading from the connection after this response.
    pause: float = 0.0
    #: Rest of the body. Content-Length includes it.
    stream: BodyStream | None = None
    #: Whether the body may be compressed; see `http.compression`.
    is_compressible: bool = False


class Application(Protocol):
    """Application that a server calls for each request."""

    async def respond(self, request: Request, /) -> Response:
        """Return the response. Raise ClientDisconnectedError if the body stays incomplete."""
        ...


class ClientDisconnectedError(Exception):
    """The client disconnected before its request was complete."""


def add_header(headers: dict[bytes, bytes], name: bytes, value: bytes) -> None:
    """Add a header. Repeated headers' values are joined with commas (RFC 9110, 5.3).

    If only one value were used, a proxy that inspects a different one could be bypassed.
    """
    existing = headers.get(name)
    headers[name] = value if existing is None else b"%b, %b" % (existing, value)


def check_content_length(headers: Mapping[bytes, bytes], limit: int) -> None:
    """Raise 413 if Content-Length is a number above the limit."""
    declared = headers.get(b"content-length")
    if declared and declared.isdigit() and int(declared[:_MAX_LENGTH_DIGITS]) > limit:
        raise ApiError(Code.PAYLOAD_TOO_LARGE)


def require_plain_body(headers: Mapping[bytes, bytes]) -> None:
    """Raise 415 if the body is compressed."""
    encoding = headers.get(b"content-encoding", b"").strip().lower()
    if encoding not in (b"", b"identity"):
        raise ApiError(
            Code.UNSUPPORTED_ENCODING,
            "Send the body without Content-Encoding: compressed bodies are not supported.",
        )


def encode_header(name: str, value: str) -> bytes:
    """Encode one header line. Raise ValueError for line breaks and non-Latin-1 characters."""
    line = f"{name.lower()}: {value}".encode("latin-1")
    if b"\n" in line or b"\r" in line:
        raise ValueError("a header must not contain line breaks")
    return line + b"\r\n"


def encode_headers(headers: Mapping[str, str]) -> bytes:
    return b"".join([encode_header(name, value) for name, value in headers.items()])


def encode_response(
    response: Response, server_headers: Sequence[tuple[bytes, bytes]], *, keep_alive: bool
) -> bytes:
    status, head, body = response[:3]
    return b"".join(
        (
            _STATUS_LINES.get(status) or b"HTTP/1.1 %d Other\r\n" % status,
            _encode_server_headers(*server_headers),
            head,
            b"\r\n" if keep_alive else b"connection: close\r\n\r\n",
            body,
        )
    )


@lru_cache(maxsize=2)
def _encode_server_headers(*headers: tuple[bytes, bytes]) -> bytes:
    """Encode the server's default headers, cached because the date changes only once a second."""
    return b"".join([b"%b: %b\r\n" % header for header in headers])
