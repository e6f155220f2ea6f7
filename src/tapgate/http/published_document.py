"""Large document that every client can fetch, with compression and revalidation."""

import asyncio
import gzip
from collections.abc import Callable
from copy import copy
from hashlib import sha256
from typing import Final

import msgspec

from tapgate.http.endpoint import BaseRequestContext, Reply

_GZIP: Final = "gzip"


class PublishedDocument:
    """Document that is rendered and compressed once per process, on first use.

    Both happen in a thread, so that the event loop keeps serving other requests.
    """

    def __init__(self, render: Callable[[], bytes]) -> None:
        self._render = render
        self._lock = asyncio.Lock()
        self._replies: dict[str, Reply[bytes]] = {}

    async def prepare(self) -> None:
        """Render the document, unless it is rendered already."""
        async with self._lock:
            self._replies = self._replies or await asyncio.to_thread(self._build_replies)

    async def serve(self, request: BaseRequestContext) -> Reply[bytes]:
        if not self._replies:
            await self.prepare()
        accepted = request.get_header(b"accept-encoding") or ""
        reply = self._replies[_GZIP if accepts_gzip(accepted) else ""]
        if matches_etag(request.get_header(b"if-none-match"), reply.headers["ETag"]):
            return msgspec.structs.replace(reply, body=b"", status=304)
        return copy(reply)

    def _build_replies(self) -> dict[str, Reply[bytes]]:
        content = self._render()
        digest = sha256(content).hexdigest()[:32]
        headers = {"Cache-Control": "no-cache", "Vary": "Accept-Encoding"}
        plain = Reply[bytes](content, headers={**headers, "ETag": f'"{digest}"'})
        compressed = Reply[bytes](
            gzip.compress(content, mtime=0),
            headers={**headers, "ETag": f'"{digest}-{_GZIP}"', "Content-Encoding": _GZIP},
        )
        return {"": plain, _GZIP: compressed}


def accepts_gzip(accept_encoding: str) -> bool:
    """Return whether an `Accept-Encoding` header names gzip with a weight above 0."""
    for part in accept_encoding.lower().split(","):
        name, _, parameters = part.partition(";")
        if name.strip() == _GZIP:
            weight = parameters.partition("q=")[2].strip()
            return not weight or bool(weight.strip("0."))
    return False


def matches_etag(if_none_match: str | None, etag: str) -> bool:
    """Return whether an `If-None-Match` header lists the tag. Proxies may have made it weak."""
    tags = [tag.strip().removeprefix("W/") for tag in (if_none_match or "").split(",")]
    return etag in tags or "*" in tags
