"""Static files served from the package, so that pages work without internet access."""

from collections.abc import Mapping
from copy import copy
from functools import cached_property
from hashlib import sha256
from importlib.resources import files
from pathlib import PurePath
from typing import Final

import msgspec

from tapgate.http.api.request_context import RequestContext
from tapgate.http.endpoint import Reply
from tapgate.http.published_document import matches_etag
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
    """Static files in one package folder.

    Files whose extension is not in `_CONTENT_TYPES`, such as licenses, are not served.
    """

    def __init__(self, package: str, folder: str, headers: Mapping[str, str]) -> None:
        self._folder = files(package) / folder
        self._headers = headers

    def serve(self, request: RequestContext, name: str) -> Reply[bytes]:
        reply = self._replies.get(name)
        if reply is None:
            raise ApiError(Code.NOT_FOUND)
        if matches_etag(request.get_header(b"if-none-match"), reply.headers["ETag"]):
            return msgspec.structs.replace(reply, body=b"", status=304)
        return copy(reply)

    @cached_property
    def _replies(self) -> Mapping[str, Reply[bytes]]:
        return {
            file.name: self._build_reply(file.read_bytes(), content_type)
            for file in self._folder.iterdir()
            if (content_type := _CONTENT_TYPES.get(PurePath(file.name).suffix))
        }

    def _build_reply(self, content: bytes, content_type: str) -> Reply[bytes]:
        headers = {
            "ETag": f'"{sha256(content).hexdigest()[:32]}"',
            # Browsers must revalidate, so that an upgrade takes effect immediately.
            "Cache-Control": "no-cache",
            "Referrer-Policy": "no-referrer",
        }
        return Reply(content, headers={**headers, **self._headers}, content_type=content_type)
