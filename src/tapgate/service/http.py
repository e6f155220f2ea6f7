"""A request and its answer as a service sees them, whichever way they come in and go out."""

from collections.abc import Mapping
from typing import Final, NamedTuple, Protocol

from tapgate.errors import ApiError, Code

#: What every answer tells a browser that shows it: it is what its type says and nothing else, it
#: loads nothing, and no page has it inside.
SECURITY_HEADERS: Final[Mapping[str, str]] = {
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "default-src 'none'; base-uri 'none'; frame-ancestors 'none'",
}


_MAX_LENGTH_DIGITS: Final = 20


class Request(Protocol):
    """The path is as called: still encoded, which is also what a client has signed. Header names
    are lower case."""

    method: str
    path: str
    query: bytes
    headers: dict[bytes, bytes]
    peer: str
    #: Whether the whole body was received.
    is_complete: bool

    def check_content_length(self, limit: int) -> None:
        """Refuse a body that is declared to be larger than this."""
        ...

    async def read_body(self, limit: int) -> bytes:
        """Return the whole body.

        Raises 413 for a larger one, 503 where the process has no memory left for it, and
        `Disconnected` where the client goes away before its end.
        """
        ...


class Response(NamedTuple):
    status: int
    head: bytes  # its header lines, each with its end
    body: bytes
    #: For how many seconds nothing more is taken from the connection that it goes out on.
    pause: float = 0.0


class ClientDisconnectedError(Exception):
    """The client went away before its request was complete."""


def add_header(headers: dict[bytes, bytes], name: bytes, value: bytes) -> None:
    """One that comes several times is one with all its values (RFC 9110, 5.3). Were one of them
    taken, a proxy that looks at another would let in what it means to keep out."""
    before = headers.get(name)
    headers[name] = value if before is None else b"%b, %b" % (before, value)


def check_content_length(headers: Mapping[bytes, bytes], limit: int) -> None:
    """Raise 413 where Content-Length is above a limit."""
    declared = headers.get(b"content-length")
    if declared and declared.isdigit() and int(declared[:_MAX_LENGTH_DIGITS]) > limit:
        raise ApiError(Code.PAYLOAD_TOO_LARGE)


def encode_header(name: str, value: str) -> bytes:
    """One line of an answer's head."""
    line = f"{name.lower()}: {value}".encode("latin-1")
    if b"\n" in line or b"\r" in line:
        raise ValueError("a header would begin a line of its own")
    return line + b"\r\n"


def encode_headers(headers: Mapping[str, str]) -> bytes:
    """Several lines of an answer's head."""
    return b"".join([encode_header(name, value) for name, value in headers.items()])
