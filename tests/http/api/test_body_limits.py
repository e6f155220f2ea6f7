"""Body limits: large enough for every acceptable value, and at most 1 MiB for JSON."""

import gzip
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin

import msgspec
import pytest

from cases import each
from drivers.services import run_service
from tapgate.http.api.examples import build_example
from tapgate.http.body_limits import DEFAULT_BODY_BYTES, MAX_JSON_BYTES, compute_body_limit
from tapgate.http.endpoint import MEBIBYTE, Endpoint
from tapgate.http.field_checks import get_rule_and_type, is_struct
from tapgate.server.gateway import ENDPOINT_GROUPS
from tapgate_client.schemas.fields import FreeText, ListLength, Metadata, Text, TextRule

#: Limits that are not computed from the fields: files, and a token that is always short.
EXPLICIT_LIMITS = {
    "POST /api/v1/bank-statements": 8 * MEBIBYTE,
    "PUT /api/v1/batches/{id}/lines": 8 * MEBIBYTE,
    "POST /api/v1/cards/upload-csv": 8 * MEBIBYTE,
    "POST /api/v1/subscribers/{id}/kyc-documents": 8 * MEBIBYTE,
    "POST /api/v1/admin/refresh": DEFAULT_BODY_BYTES,
}
ENDPOINTS = [
    endpoint for endpoint in chain.from_iterable(ENDPOINT_GROUPS) if endpoint.body_type is not None
]


def build_longest_value(kind: Any) -> Any:
    """Return an acceptable value whose encoding is the longest when all characters are escaped."""
    rule, bare = get_rule_and_type(kind)
    if is_struct(bare):
        return {
            item.encode_name: build_longest_value(item.type)
            for item in msgspec.structs.fields(bare)
        }
    if get_origin(bare) is list:
        return [build_longest_value(get_args(bare)[0])] * getattr(rule, "maximum", 7)
    if isinstance(rule, TextRule):
        return "\U0001f600" * rule.maximum
    if get_origin(bare) is dict:
        return {"a": "x" * 4088}
    return build_example(kind)


def encode_escaped(value: Any) -> bytes:
    """Encode as indented JSON in which every character in a string value is escaped."""
    if isinstance(value, dict):
        members = [
            b'\n  "%b": %b' % (name.encode(), encode_escaped(item)) for name, item in value.items()
        ]
        return b"{%b\n}" % b",".join(members)
    if isinstance(value, list):
        return b"[%b]" % b", ".join(map(encode_escaped, value))
    if isinstance(value, str):
        units = value.encode("utf-16-be")
        pairs = (units[start : start + 2] for start in range(0, len(units), 2))
        return b'"%b"' % b"".join(b"\\u%04x" % int.from_bytes(pair) for pair in pairs)
    return msgspec.json.encode(value)


@each("endpoint", ENDPOINTS)
def test_largest_acceptable_body_of_every_endpoint_is_within_its_limit(endpoint: Endpoint) -> None:
    if endpoint.name in EXPLICIT_LIMITS:
        assert endpoint.body_limit == EXPLICIT_LIMITS[endpoint.name]
        return
    kind = endpoint.body_struct
    size = len(encode_escaped(build_longest_value(kind)))
    assert size <= endpoint.body_limit <= MAX_JSON_BYTES


def test_body_limit_grows_with_the_fields() -> None:
    class Small(msgspec.Struct):
        name: Text

    class Large(msgspec.Struct):
        names: Annotated[list[FreeText], ListLength(0, 5)]
        metadata: Metadata | None = None

    class Huge(msgspec.Struct):
        names: Annotated[list[FreeText], ListLength(0, 10_000)]

    assert {*map(compute_body_limit, (None, bytes, Small))} == {DEFAULT_BODY_BYTES}
    assert compute_body_limit(Large) == 4 * DEFAULT_BODY_BYTES
    assert compute_body_limit(Huge) == MAX_JSON_BYTES


@pytest.mark.parametrize("service", ["gateway", "messenger"])
async def test_compressed_body_is_rejected(tmp_path: Path, service: str) -> None:
    path = "/api/v1/echoes" if service == "gateway" else "/api/v1/external/messaging"
    body = b'{"phone": "+23276000001", "message": "menu"}'
    async with run_service(service, tmp_path, {}) as client:
        for encoding in ("gzip", "GZIP", "deflate", "br", "identity, gzip"):
            response = await client.post(
                path, content=gzip.compress(body), headers={"Content-Encoding": encoding}
            )
            assert response.status_code == 415, encoding
            assert "without Content-Encoding" in response.text
        for plain in ("", "identity"):
            response = await client.post(path, content=body, headers={"Content-Encoding": plain})
            assert response.status_code != 415
