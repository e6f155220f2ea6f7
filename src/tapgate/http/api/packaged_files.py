"""Static files served from the package, so that pages work without internet access."""

import asyncio
import threading
from collections.abc import Mapping
from functools import cached_property
from hashlib import sha256
from importlib.resources import files
from pathlib import PurePath
from typing import Final

from tapgate.http.api.request_context import RequestContext
from tapgate.http.compression import CompressedReply
from tapgate.http.endpoint import Reply
from tapgate_client.errors import ApiError, Code

_CONTENT_TYPES: Final = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml; charset=utf-8",
    ".woff2": "font/woff2",
    ".webmanifest": "application/manifest+json",
}


class PackagedFiles:
    """Static files in one package folder. Each is compressed when it is first requested.

    Files whose extension is not in `_CONTENT_TYPES`, such as licenses, are not served.
    """

    def __init__(self, package: str, folder: str, headers: Mapping[str, str]) -> None:
        self._folder = files(package) / folder
        self._headers = headers
        self.replies: dict[str, CompressedReply] = {}
        self._build_lock = threading.Lock()

    async def serve(self, request: RequestContext, name: str) -> Reply[bytes]:
        reply = self.replies.get(name)
        if reply is None:
            if name not in self._names:
                raise ApiError(Code.NOT_FOUND)
            # In a thread, because compression takes CPU time that payments need too.
            reply = await asyncio.to_thread(self._load_reply, name)
        return reply.select(request)

    @cached_property
    def _names(self) -> frozenset[str]:
        names = (file.name for file in self._folder.iterdir())
        return frozenset(name for name in names if PurePath(name).suffix in _CONTENT_TYPES)

    def _load_reply(self, name: str) -> CompressedReply:
        # Under a lock: many first requests at once would each compress the file and keep a copy.
        with self._build_lock:
            if name not in self.replies:
                self.replies[name] = self._build_reply(name)
            return self.replies[name]

    def _build_reply(self, name: str) -> CompressedReply:
        content = (self._folder / name).read_bytes()
        headers = {
            "ETag": f'"{sha256(content).hexdigest()[:32]}"',
            # Browsers must revalidate, so that an upgrade takes effect immediately.
            "Cache-Control": "no-cache",
            "Referrer-Policy": "no-referrer",
            **self._headers,
        }
        content_type = _CONTENT_TYPES[PurePath(name).suffix]
        return CompressedReply(Reply(content, headers=headers, content_type=content_type))
