"""Large document that every client can fetch, with compression and revalidation."""

import asyncio
from collections.abc import Callable
from hashlib import sha256

from tapgate.http.compression import CompressedReply
from tapgate.http.endpoint import BaseRequestContext, Reply


class PublishedDocument:
    """Document that is rendered and compressed once per process, on first use.

    Both happen in a thread, so that the event loop keeps serving other requests.
    """

    def __init__(self, render: Callable[[], bytes]) -> None:
        self._render = render
        self._lock = asyncio.Lock()
        self._reply: CompressedReply | None = None

    async def prepare(self) -> CompressedReply:
        """Render the document, unless it is rendered already."""
        async with self._lock:
            if self._reply is None:
                self._reply = await asyncio.to_thread(self._build_reply)
            return self._reply

    async def serve(self, request: BaseRequestContext) -> Reply[bytes]:
        return (self._reply or await self.prepare()).select(request)

    async def read(self) -> bytes:
        """Return the document's content."""
        return (self._reply or await self.prepare()).content

    def _build_reply(self) -> CompressedReply:
        content = self._render()
        etag = f'"{sha256(content).hexdigest()[:32]}"'
        return CompressedReply(
            Reply[bytes](content, headers={"Cache-Control": "no-cache", "ETag": etag})
        )
