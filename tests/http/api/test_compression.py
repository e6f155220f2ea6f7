"""Compressed responses: which, for which clients, and without secrets that sizes could reveal."""

import gzip
from typing import Any, Final, get_args

import brotli
import msgspec
import pytest

from tapgate.http.compression import compress_response
from tapgate.http.http_messages import Response
from tapgate.server.gateway import list_endpoints

_ENDPOINTS: Final = list_endpoints()
_GZIP: Final = {b"accept-encoding": b"gzip"}
#: Parts of field names that hold secrets.
_SECRETS: Final = ("secret", "password", "recovery_codes", "access_token", "invitation_url")


def build_response(body: bytes, extra: bytes = b"") -> Response:
    head = b"content-type: application/json\r\n%bcontent-length: %d\r\n" % (extra, len(body))
    return Response(200, head, body)


@pytest.mark.parametrize("size", [1024, 16 * 1024, 16 * 1024 + 1, 300_000])
async def test_body_is_compressed_with_its_new_length(size: int) -> None:
    body = (b"abcdefgh" * size)[:size]
    compressed = await compress_response(build_response(body), _GZIP)
    assert gzip.decompress(compressed.body) == body
    assert b"content-length: %d\r\n" % len(compressed.body) in compressed.head
    assert compressed.head.count(b"content-length") == 1
    assert b"content-encoding: gzip\r\n" in compressed.head
    assert b"vary: accept-encoding\r\n" in compressed.head


@pytest.mark.parametrize(
    ("body", "head", "headers"),
    [
        (b"x" * 1023, b"", _GZIP),  # smaller than a packet
        (b"x" * 5000, b"", {}),
        (b"x" * 5000, b"", {b"accept-encoding": b"gzip;q=0, br"}),
        (b"x" * 5000, b'a: b\r\netag: "1"\r\n', _GZIP),  # the tag names another representation
    ],
)
async def test_body_stays_plain(body: bytes, head: bytes, headers: dict[bytes, bytes]) -> None:
    response = await compress_response(build_response(body, head), headers)
    assert response.body == body
    assert b"content-encoding" not in response.head


def test_only_reads_are_compressed_and_no_response_to_a_terminal() -> None:
    compressed = [endpoint for endpoint in _ENDPOINTS if endpoint.compresses]
    assert len(compressed) > 50
    assert {endpoint.method for endpoint in compressed} == {"GET"}
    assert not [each.path for each in compressed if each.path.startswith("/api/v1/pos/")]


def test_no_compressed_response_contains_a_secret() -> None:
    found = {
        endpoint.name: names
        for endpoint in _ENDPOINTS
        if endpoint.compresses and (names := list_secret_fields(endpoint.response_type, set()))
    }
    assert found == {}


def list_secret_fields(kind: Any, seen: set[Any]) -> list[str]:
    """Return the fields of a response type, and of the types in it, whose names mean a secret."""
    if kind in seen:
        return []
    seen.add(kind)
    names = []
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        for field in msgspec.structs.fields(kind):
            is_secret = any(part in field.encode_name for part in _SECRETS)
            names += [field.encode_name] if is_secret and field.type not in (bool, int) else []
            names += list_secret_fields(field.type, seen)
    for inner in get_args(kind):
        names += list_secret_fields(inner, seen) if not isinstance(inner, str) else []
    return names


def test_brotli_is_smaller_than_gzip() -> None:
    text = b"".join(b"line %d of a stylesheet { color: red; }\n" % row for row in range(500))
    assert len(brotli.compress(text, quality=9)) < len(gzip.compress(text))
