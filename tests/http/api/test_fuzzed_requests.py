"""Fuzzed requests never cause a 5xx, and their error bodies are valid and echo no input."""

import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builders.http_apps import VALID_THING, WRITER, EdgeApp, build_bearer_headers, run_edge_app
from drivers.in_process import decode_response
from examples import limit_examples

CANARY = "cAnArY"

canaries = st.sampled_from([CANARY, CANARY * 100, CANARY + "\0", "\ud800" + CANARY, [CANARY]])
texts = st.text(max_size=20) | st.just(CANARY)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)
fields = st.sampled_from(
    [
        "name",
        "pin",
        "amount",
        "colour",
        "phone_number",
        "email",
        "tags",
        "parts",
        "metadata",
        "count",
    ]
)
near_things = st.dictionaries(fields, canaries | values, min_size=1, max_size=2).map(
    lambda changes: VALID_THING | changes
)
bodies = (near_things | values).map(lambda value: json.dumps(value).encode()) | st.binary(
    max_size=60
)
many_examples = settings(max_examples=limit_examples(200))


@pytest.fixture
async def unthrottled_gateway(tmp_path: Path) -> AsyncIterator[EdgeApp]:
    """An application with enough rate limit tokens for all examples."""
    async with run_edge_app(
        tmp_path, TAPGATE_RATE_LIMIT="1000", TAPGATE_RATE_BURST="100000"
    ) as app:
        yield app


def assert_valid_response(response: httpx2.Response) -> None:
    assert response.status_code < 500
    assert response.headers["x-request-id"]
    if response.status_code >= 400:
        body: dict[str, Any] = response.json()
        assert body.keys() <= {"error", "code", "message", "details"}
        assert body.keys() >= {"error", "code"}
        assert CANARY not in response.text


@many_examples
@given(content=bodies)
async def test_fuzzed_bodies_get_a_valid_response(
    unthrottled_gateway: EdgeApp, content: bytes
) -> None:
    response = await unthrottled_gateway.client.post(
        "/api/v1/things", content=content, headers=build_bearer_headers(WRITER)
    )
    assert_valid_response(response)


@dataclass
class RawRequest:
    """A request without a body, with bytes that an HTTP client would not send."""

    method: str
    path: str
    query: bytes
    headers: dict[bytes, bytes]
    peer: str = "127.0.0.1"
    is_complete: bool = True

    async def read_body(self, limit: int) -> bytes:
        return b""


async def send(edge_app: EdgeApp, request: RawRequest) -> httpx2.Response:
    response = decode_response(await edge_app.app.respond(request), request.method)
    await response.aread()
    return response


# A path as passed on by a server: ASCII, no question mark, not empty.
paths = st.lists(
    st.sampled_from(
        ["api", "v1", "things", "parts", "use", CANARY, "%43", "%", "%ff", "%00", "..", ""]
    )
    | st.text(
        st.characters(min_codepoint=33, max_codepoint=126, exclude_characters="?#"), max_size=9
    ),
    max_size=7,
).map(lambda parts: "/" + "/".join(parts))


@many_examples
@given(
    method=st.sampled_from(["GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH", "X"]),
    path=paths | paths.map(lambda path: "/api/v1/things" + path),
    query=st.binary(max_size=30).map(lambda raw: raw.replace(b"#", b"")),
)
async def test_fuzzed_paths_and_queries_get_a_valid_response(
    unthrottled_gateway: EdgeApp, method: str, path: str, query: bytes
) -> None:
    headers = {b"authorization": b"Bearer key_writer"}
    response = await send(unthrottled_gateway, RawRequest(method, path, query, headers))
    if method != "HEAD":
        assert_valid_response(response)


header_values = st.binary(max_size=40)


@many_examples
@given(
    authorization=header_values,
    request_id=header_values,
    length=header_values,
    key=st.none() | header_values,
)
async def test_fuzzed_headers_get_a_valid_response(
    unthrottled_gateway: EdgeApp,
    authorization: bytes,
    request_id: bytes,
    length: bytes,
    key: bytes | None,
) -> None:
    headers = {
        b"authorization": authorization,
        b"x-request-id": request_id,
        b"content-length": length,
        b"if-none-match": authorization,
    }
    if key is not None:
        headers[b"x-api-key-id"] = key
    for method, path in (("POST", "/api/v1/things"), ("POST", "/pay"), ("GET", "/health")):
        request = RawRequest(method, path, b"", headers)
        assert_valid_response(await send(unthrottled_gateway, request))
