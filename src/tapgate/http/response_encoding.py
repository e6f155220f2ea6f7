"""Encoding of responses as HTTP/1.1."""

from collections.abc import Sequence
from functools import lru_cache
from http import HTTPStatus

from tapgate.http.messages import Response

_STATUS_LINES = {
    status.value: f"HTTP/1.1 {status.value} {status.phrase}\r\n".encode() for status in HTTPStatus
}


def encode_response(
    response: Response, server_headers: Sequence[tuple[bytes, bytes]], *, keep_alive: bool
) -> bytes:
    status, head, body, _ = response
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
