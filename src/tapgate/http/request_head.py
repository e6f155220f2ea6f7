"""Request head: size limits, request target and Host field."""

from collections.abc import Mapping
from typing import Final

import httptools

MAX_HEAD_BYTES: Final = 64 * 1024
#: Longer targets are rejected: no endpoint needs one, and decoding it byte by byte is costly.
MAX_TARGET_BYTES: Final = 16 * 1024
#: Added to the size of each field line, as in HTTP/2 (RFC 9113, 6.5.2). A line costs more than its
#: bytes: lines with the same name are joined one by one.
FIELD_OVERHEAD_BYTES: Final = 32

_HOST_CHARACTERS: Final = (
    b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~!$&'()*+;=%:[]"
)


class InvalidHeadError(ValueError):
    """Invalid request head. The message states the reason."""


def split_target(target: bytes) -> tuple[str, bytes]:
    """Return a request target's percent-encoded path, or `*` if it has none, and its query."""
    if target.startswith(b"/"):
        path, _, query = target.partition(b"?")
    else:
        parsed = httptools.parse_url(target)
        path, query = parsed.path or b"*", parsed.query or b""
    return path.decode("latin-1"), query


def require_host(host: bytes | None, *, is_http_1_0: bool) -> None:
    """Require one valid Host field (RFC 9112, 3.2). Only HTTP/1.0 may omit it.

    Repeated fields are joined by a comma, which is invalid in a host.
    """
    if host is None:
        if not is_http_1_0:
            raise InvalidHeadError("The Host header is missing.")
    elif host.translate(None, _HOST_CHARACTERS):
        raise InvalidHeadError("The Host header must be one host name or address.")


def encode_without_upgrade(
    method: bytes, target: bytes, version: bytes, headers: Mapping[bytes, bytes]
) -> bytes:
    """Encode a request head without its protocol upgrade."""
    lines = [b"%b %b HTTP/%b" % (method, target, version)]
    for name, value in headers.items():
        if name == b"connection":
            options = [option.strip() for option in value.lower().split(b",")]
            kept = [option for option in options if option in (b"close", b"keep-alive")]
            lines.append(b"connection: " + b", ".join(kept))
        elif name != b"upgrade":
            lines.append(b"%b: %b" % (name, value))
    return b"\r\n".join(lines) + b"\r\n\r\n"
