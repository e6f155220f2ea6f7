"""OpenAPI document compression and revalidation."""

import json

import pytest

from builders.http_apps import EdgeApp
from tapgate.http.compression import accepts, matches_etag

PATH = "/openapi.json"


@pytest.mark.parametrize(
    ("accepted", "encoding"), [("br;q=0, gzip;q=0.5", "gzip"), ("gzip, deflate, br", "br")]
)
async def test_document_is_compressed_for_clients_that_accept_it(
    gateway: EdgeApp, accepted: str, encoding: str
) -> None:
    plain = await gateway.client.get(PATH, headers={"Accept-Encoding": "identity"})
    compressed = await gateway.client.get(PATH, headers={"Accept-Encoding": accepted})
    assert "content-encoding" not in plain.headers
    assert compressed.headers["content-encoding"] == encoding
    assert int(compressed.headers["content-length"]) < len(plain.content) / 4
    assert compressed.content == plain.content  # the client decompresses
    for response in (plain, compressed):
        assert response.headers["vary"] == "Accept-Encoding"
        assert response.headers["cache-control"] == "no-cache"
        assert response.headers["content-type"] == "application/json"
        assert json.loads(response.content)["openapi"] == "3.1.0"


async def test_unchanged_document_is_not_sent_again(gateway: EdgeApp) -> None:
    tags = set()
    for encoding in ("identity", "gzip"):
        first = await gateway.client.get(PATH, headers={"Accept-Encoding": encoding})
        tag = first.headers["etag"]
        tags.add(tag)
        for known in (tag, f"W/{tag}", f'"other", {tag}', "*"):
            headers = {"Accept-Encoding": encoding, "If-None-Match": known}
            again = await gateway.client.get(PATH, headers=headers)
            assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", tag)
        headers = {"Accept-Encoding": encoding, "If-None-Match": '"other"'}
        assert (await gateway.client.get(PATH, headers=headers)).status_code == 200
    assert len(tags) == 2  # the two encodings are different representations


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("gzip", True),
        ("GZIP, deflate, br", True),
        ("deflate , gzip ; q=1.0", True),
        ("gzip;q=0.001", True),
        ("gzip;q=0", False),
        ("gzip;q=0.000", False),
        ("identity", False),
        ("xgzip", False),
        ("*", False),  # identity is always acceptable
        ("", False),
        (";;,,;q=", False),
    ],
)
def test_accepted_encodings_are_parsed(header: str, expected: bool) -> None:
    assert accepts(header, "gzip") is expected


def test_absent_tag_matches_nothing() -> None:
    assert not matches_etag(None, '"a"')
    assert not matches_etag('"ab"', '"a"')
