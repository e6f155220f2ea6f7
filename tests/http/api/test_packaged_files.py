"""Files of the package, compressed once even if many clients request them at the same time."""

import asyncio
from typing import Any, cast

import pytest

from tapgate.http.api import packaged_files
from tapgate.http.api.packaged_files import PackagedFiles
from tapgate.http.compression import CompressedReply
from tapgate.http.endpoint import Reply


class _Request:
    def get_header(self, name: bytes) -> str | None:
        return None


async def test_simultaneous_first_requests_share_one_copy(monkeypatch: pytest.MonkeyPatch) -> None:
    compressed = []

    def compress(reply: Reply[bytes]) -> CompressedReply:
        compressed.append(reply)
        return CompressedReply(reply)

    monkeypatch.setattr(packaged_files, "CompressedReply", compress)
    files = PackagedFiles("tapgate.sites.console", "assets", {})
    request = cast(Any, _Request())
    replies = await asyncio.gather(*(files.serve(request, "console.js") for _ in range(50)))
    assert len(compressed) == 1
    assert {id(reply.body) for reply in replies} == {id(compressed[0].body)}
