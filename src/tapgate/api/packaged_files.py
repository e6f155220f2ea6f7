"""Static files served from the package, so that pages work without internet access."""

from collections.abc import Mapping
from functools import cached_property
from hashlib import sha256
from importlib.resources import files
from pathlib import PurePath
from typing import Final

import msgspec

from tapgate.api.endpoint import Reply
from tapgate.api.request_context import RequestContext
from tapgate.errors import ApiError, Code

_CONTENT_TYPES: Final = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml; charset=utf-8",
    ".webmanifest": "application/manifest+json",
}


class _PackagedFile(msgspec.Struct, frozen=True):
    content: bytes
    content_type: str
    headers: Mapping[str, str]


class PackagedFiles:
    """Static files of one package folder.

    Files whose extension is not in `_CONTENT_TYPES`, such as licenses, are not served.
    """

    def __init__(self, package: str, folder: str, headers: Mapping[str, str]) -> None:
        self._folder = files(package) / folder
        self._headers = headers

    def serve(self, request: RequestContext, name: str) -> Reply[bytes]:
        file = self._files.get(name)
        if file is None:
            raise ApiError(Code.NOT_FOUND)
        if request.get_header(b"if-none-match") == file.headers["ETag"]:
            return Reply(b"", status=304, headers=file.headers, content_type=file.content_type)
        return Reply(file.content, headers=file.headers, content_type=file.content_type)

    @cached_property
    def _files(self) -> Mapping[str, _PackagedFile]:
        return {
            file.name: self._build_file(
                file.read_bytes(), _CONTENT_TYPES[PurePath(file.name).suffix]
            )
            for file in self._folder.iterdir()
            if PurePath(file.name).suffix in _CONTENT_TYPES
        }

    def _build_file(self, content: bytes, content_type: str) -> _PackagedFile:
        headers = {
            "ETag": f'"{sha256(content).hexdigest()[:32]}"',
            # Browsers must revalidate, so that an upgrade takes effect immediately.
            "Cache-Control": "no-cache",
            "Referrer-Policy": "no-referrer",
        }
        return _PackagedFile(content, content_type, headers | dict(self._headers))
