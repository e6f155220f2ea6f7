"""Response compression for clients that accept it.

Files and documents are compressed once per process, with Brotli and gzip. Responses that are
rendered per request are compressed with gzip if their declaration says so.

The size of a compressed response reveals whether a text that a stranger chose repeats a secret in
it (the BREACH attack). A response that contains both must therefore never be compressed. Responses
to payments are not compressed either, because they are smaller than the work is worth.
"""

import asyncio
import gzip
import zlib
from collections.abc import Mapping
from typing import Final

import brotli
import msgspec

from tapgate.http.endpoint import BaseRequestContext, Reply
from tapgate.http.http_messages import Response

#: In order of preference.
_ENCODINGS: Final = ("br", "gzip")
_VARY: Final = "Accept-Encoding"
_BROTLI_QUALITY: Final = 9
_GZIP_LEVEL: Final = 5
#: A smaller response fits into one packet anyway.
_MIN_BYTES: Final = 1024
#: A larger body is compressed in a thread, so that payments do not wait for it.
_MAX_INLINE_BYTES: Final = 16 * 1024
_COMPRESSIBLE_TYPES: Final = ("text/", "application/json", "application/manifest", "image/svg")


def is_compressible(content_type: str) -> bool:
    """Return whether compression reduces a type's size, as opposed to fonts and photos."""
    return content_type.startswith(_COMPRESSIBLE_TYPES)


def accepts(accept_encoding: str, encoding: str) -> bool:
    """Return whether an `Accept-Encoding` header names an encoding with a weight above 0."""
    for part in accept_encoding.lower().split(","):
        name, _, parameters = part.partition(";")
        if name.strip() == encoding:
            weight = parameters.partition("q=")[2].strip()
            return not weight or bool(weight.strip("0."))
    return False


class CompressedReply:
    """Reply with a body that does not change, and its compressed variants.

    `reply` must have an ETag. Each variant has its own, because it is a different representation.
    """

    def __init__(self, reply: Reply[bytes]) -> None:
        self._variants = {"": reply}
        body = reply.body
        if not isinstance(body, bytes) or not is_compressible(reply.content_type):
            return
        reply.headers = {**reply.headers, "Vary": _VARY}
        for encoding, content in (
            ("br", brotli.compress(body, quality=_BROTLI_QUALITY)),
            ("gzip", gzip.compress(body, mtime=0)),
        ):
            if len(content) < len(body):
                self._variants[encoding] = _build_variant(reply, content, encoding)

    @property
    def content(self) -> bytes:
        """Return the body as it is without compression."""
        body = self._variants[""].body
        assert isinstance(body, bytes)
        return body

    def select(self, request: BaseRequestContext) -> Reply[bytes]:
        """Return the variant that the client prefers, or 304 if the client has it already."""
        accepted = request.get_header(b"accept-encoding") or ""
        encoding = next(
            (each for each in _ENCODINGS if each in self._variants and accepts(accepted, each)), ""
        )
        reply = self._variants[encoding]
        if matches_etag(request.get_header(b"if-none-match"), reply.headers["ETag"]):
            return msgspec.structs.replace(reply, body=b"", status=304)
        return msgspec.structs.replace(reply)


def _build_variant(reply: Reply[bytes], content: bytes, encoding: str) -> Reply[bytes]:
    etag = reply.headers["ETag"].removesuffix('"')
    headers = {**reply.headers, "ETag": f'{etag}-{encoding}"', "Content-Encoding": encoding}
    return msgspec.structs.replace(reply, body=content, headers=headers)


def matches_etag(if_none_match: str | None, etag: str) -> bool:
    """Return whether an `If-None-Match` header lists the tag. Proxies may have made it weak."""
    tags = [tag.strip().removeprefix("W/") for tag in (if_none_match or "").split(",")]
    return etag in tags or "*" in tags


async def compress_response(response: Response, headers: Mapping[bytes, bytes]) -> Response:
    """Return a response with its body compressed, if the client accepts gzip and it is worth it.

    Only for responses that are declared compressible.
    """
    body, head = response.body, response.head
    if response.stream is not None or len(body) < _MIN_BYTES or b"\r\netag:" in head:
        return response
    head += b"vary: accept-encoding\r\n"
    if not accepts(headers.get(b"accept-encoding", b"").decode("latin-1"), "gzip"):
        return response._replace(head=head)
    if len(body) <= _MAX_INLINE_BYTES:
        content = _compress(body)
    else:
        content = await asyncio.to_thread(_compress, body)
    length, new_length = (b"content-length: %d\r\n" % len(each) for each in (body, content))
    head = head.replace(length, new_length, 1) + b"content-encoding: gzip\r\n"
    return response._replace(head=head, body=content)


def _compress(body: bytes) -> bytes:
    # Not `gzip.compress`, which costs twice as much for small bodies.
    compressor = zlib.compressobj(_GZIP_LEVEL, wbits=zlib.MAX_WBITS | 16)
    return compressor.compress(body) + compressor.flush()
