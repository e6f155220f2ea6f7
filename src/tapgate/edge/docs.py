"""The docs page and its files, served from the package: it works without the internet."""

from functools import cache
from hashlib import sha256
from importlib.resources import files

import msgspec

from tapgate.edge.call import Call
from tapgate.edge.endpoint import Reply
from tapgate.errors import ApiError, Code

_CONTENT_TYPES = {
    "index.html": "text/html; charset=utf-8",
    "start.js": "text/javascript; charset=utf-8",
    "swagger-ui-bundle.js": "text/javascript; charset=utf-8",
    "swagger-ui.css": "text/css; charset=utf-8",
}

#: The page runs its own script and talks to its own origin, nothing else.
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


class _PageFile(msgspec.Struct, frozen=True):
    content: bytes
    content_type: str
    headers: dict[str, str]


@cache
def _page_files() -> dict[str, _PageFile]:
    folder = files("tapgate.edge") / "docs_page"
    return {name: _page_file((folder / name).read_bytes(), name) for name in _CONTENT_TYPES}


def _page_file(content: bytes, name: str) -> _PageFile:
    headers = {
        "ETag": f'"{sha256(content).hexdigest()[:32]}"',
        "Cache-Control": "no-cache",  # kept, but asked about: an upgrade shows at once
        "Content-Security-Policy": _POLICY,
        "Referrer-Policy": "no-referrer",
    }
    return _PageFile(content, _CONTENT_TYPES[name], headers)


def page_file(call: Call, name: str) -> Reply[bytes]:
    file = _page_files().get(name)
    if file is None:
        raise ApiError(Code.NOT_FOUND)
    if call.header(b"if-none-match") == file.headers["ETag"]:
        return Reply(b"", status=304, headers=file.headers, content_type=file.content_type)
    return Reply(file.content, headers=file.headers, content_type=file.content_type)
