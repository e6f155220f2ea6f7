"""The OpenAPI documents of both services equal the stored baseline.

After an intended API change, run this file as a script to store the new documents:

    .venv/bin/python tests/docs/test_openapi_unchanged.py
"""

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from tapgate.messenger.openapi import build_document
from tapgate.messenger.routes import ENDPOINTS
from tapgate.server.gateway import build_openapi_document

BASELINE: Final = Path(__file__).parent / "openapi_baseline.json.gz"
UPDATE_HINT: Final = (
    "If the change of the API is intended, store the new documents and commit the file:\n"
    "    .venv/bin/python tests/docs/test_openapi_unchanged.py"
)
_MAX_REPORTED: Final = 20


def build_documents() -> dict[str, Any]:
    return {"gateway": build_openapi_document(), "messenger": json.loads(build_document(ENDPOINTS))}


def read_baseline() -> dict[str, Any]:
    documents: dict[str, Any] = json.loads(gzip.decompress(BASELINE.read_bytes()))
    return documents


def list_differences(before: Any, after: Any, location: str) -> Iterator[tuple[str, str]]:
    """Yield the location and the description of each difference."""
    if isinstance(before, dict) and isinstance(after, dict):
        for name in sorted(before.keys() | after.keys()):
            yield from list_differences(
                before.get(name, "(absent)"), after.get(name, "(absent)"), f"{location} > {name}"
            )
    elif before != after:
        yield location, f"{json.dumps(before)[:200]} became {json.dumps(after)[:200]}"


@pytest.mark.parametrize("service", ["gateway", "messenger"])
def test_openapi_document_equals_the_baseline(service: str) -> None:
    found = list_differences(read_baseline()[service], build_documents()[service], service)
    differences = [f"{place}: {text}" for place, text in found]
    report = "\n".join(differences[:_MAX_REPORTED])
    assert not differences, f"{len(differences)} differences:\n{report}\n{UPDATE_HINT}"


def test_every_difference_is_reported_with_its_location() -> None:
    before = {"paths": {"/a": {"get": {}}, "/b": ["x"]}, "openapi": "3.1.0"}
    after = {"paths": {"/b": ["y"], "/c": 1}, "openapi": "3.1.0"}
    assert list(list_differences(before, after, "gateway")) == [
        ("gateway > paths > /a", '{"get": {}} became "(absent)"'),
        ("gateway > paths > /b", '["x"] became ["y"]'),
        ("gateway > paths > /c", '"(absent)" became 1'),
    ]


if __name__ == "__main__":
    content = json.dumps(build_documents(), sort_keys=True, separators=(",", ":"))
    BASELINE.write_bytes(gzip.compress(content.encode(), mtime=0))
