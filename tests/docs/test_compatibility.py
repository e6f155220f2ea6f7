"""The API stays compatible with the last 1.x release, as docs/versioning.md promises."""

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from cases import each
from tapgate.messenger.openapi import build_document
from tapgate.messenger.routes import ENDPOINTS
from tapgate.server.gateway import build_openapi_document

_RELEASED: Final = Path(__file__).parent / "openapi_1.1.0.json.gz"
#: Pages for people, which lead to the API reference in the guide.
_REMOVED_PAGES: Final = ["GET /docs is removed", "GET /docs/{file} is removed"]

Json = dict[str, Any]


def read_released(service: str) -> Json:
    document: Json = json.loads(gzip.decompress(_RELEASED.read_bytes()))[service]
    return document


def build_current(service: str) -> Json:
    if service == "gateway":
        return build_openapi_document()
    document: Json = json.loads(build_document(ENDPOINTS))
    return document


def list_breaks(old: Json, new: Json) -> Iterator[str]:
    """Yield what a program written for the old document can no longer rely on."""
    for path, operations in old["paths"].items():
        for method, before in operations.items():
            name, after = f"{method.upper()} {path}", new["paths"].get(path, {}).get(method)
            if after is None:
                yield f"{name} is removed"
                continue
            if before.get("operationId") != after.get("operationId"):
                yield f"{name} has another operation ID"
            for problem in _compare_parameters(
                _list_parameters(old, before), _list_parameters(new, after)
            ):
                yield f"{name}: {problem}"
            if _is_body_required(after) and not _is_body_required(before):
                yield f"{name}: the body became required"
            for status in before["responses"].keys() - after["responses"].keys():
                if status.startswith("2"):
                    yield f"{name}: no response {status}"
    requests = _list_request_schemas(new)
    for name, before in old["components"]["schemas"].items():
        after = new["components"]["schemas"].get(name)
        if after is None:
            yield f"schema {name} is removed"
        else:
            yield from _compare_schemas(name, before, after, is_request=name in requests)


def _list_parameters(document: Json, operation: Json) -> dict[tuple[str, str], Json]:
    resolved = (_resolve(document, item) for item in operation.get("parameters", []))
    return {(item["in"], item["name"]): item for item in resolved}


def _compare_parameters(
    before: dict[tuple[str, str], Json], after: dict[tuple[str, str], Json]
) -> Iterator[str]:
    for place, name in before.keys() - after.keys():
        yield f"the {place} parameter {name} is removed"
    for key, parameter in after.items():
        if parameter.get("required") and not before.get(key, {}).get("required"):
            yield f"the {key[0]} parameter {key[1]} became required"
    for key in before.keys() & after.keys():
        missing = _list_values(before[key]["schema"]) - _list_values(after[key]["schema"])
        if missing and _list_values(after[key]["schema"]):
            yield f"the {key[0]} parameter {key[1]} no longer accepts {sorted(missing)}"


def _compare_schemas(name: str, before: Json, after: Json, *, is_request: bool) -> Iterator[str]:
    old, new = before.get("properties", {}), after.get("properties", {})
    for field in old.keys() - new.keys():
        yield f"{name}.{field} is removed"
    required, was_required = {*after.get("required", [])}, {*before.get("required", [])}
    if is_request:
        yield from (f"{name}.{field} became required" for field in required - was_required)
    else:
        optional = (was_required & new.keys()) - required
        yield from (f"{name}.{field} may be missing" for field in optional)
    for field in old.keys() & new.keys():
        had, has = _list_types(old[field]), _list_types(new[field])
        # A request may accept more types than before, and a response may have fewer.
        if had - has if is_request else has - had:
            yield f"{name}.{field} changed its type from {sorted(had)} to {sorted(has)}"
    if removed := _list_values(before) - _list_values(after):
        yield f"{name} no longer has {sorted(removed)}"


def _list_types(schema: Json) -> set[str]:
    if options := schema.get("anyOf", schema.get("oneOf")):
        return set().union(*map(_list_types, options))
    if "$ref" in schema:
        return {schema["$ref"]}
    types = schema.get("type", "any")
    return {types} if isinstance(types, str) else {*types}


def _list_values(schema: Json) -> set[str]:
    return {str(value) for value in schema.get("enum", [])}


def _is_body_required(operation: Json) -> bool:
    return bool(operation.get("requestBody", {}).get("required"))


def _list_request_schemas(document: Json) -> set[str]:
    """Return the schemas that request bodies consist of."""
    found: set[str] = set()
    pending = [
        operation.get("requestBody", {})
        for operations in document["paths"].values()
        for operation in operations.values()
    ]
    while pending:
        for name in _list_references(pending.pop()) - found:
            found.add(name)
            pending.append(document["components"]["schemas"].get(name, {}))
    return found


def _list_references(node: object) -> set[str]:
    if isinstance(node, list):
        return set().union(*map(_list_references, node))
    if not isinstance(node, dict):
        return set()
    names = {node["$ref"].rpartition("/")[2]} if "$ref" in node else set()
    return names.union(*map(_list_references, node.values()))


def _resolve(document: Json, node: Json) -> Json:
    while "$ref" in node:
        target = document
        for key in node["$ref"].split("/")[1:]:
            target = target[key]
        node = target
    return node


@each("service, expected", [("gateway", _REMOVED_PAGES), ("messenger", [])])
def test_nothing_of_the_released_api_is_removed(service: str, expected: list[str]) -> None:
    assert sorted(list_breaks(read_released(service), build_current(service))) == expected


def edit(*path: str, to: object = None) -> Json:
    """Return the current document with one value replaced, or removed without a new one."""
    document: Json = json.loads(json.dumps(build_current("gateway")))
    node = document
    for key in path[:-1]:
        node = node[key]
    if to is None:
        del node[path[-1]]
    else:
        node[path[-1]] = to
    return document


_SCHEMAS: Final = ("components", "schemas")
_LIST_CARDS: Final = ("paths", "/api/v1/cards", "get")


@pytest.mark.parametrize(
    ("path", "value", "problem"),
    [
        ((*_LIST_CARDS,), None, "GET /api/v1/cards is removed"),
        ((*_LIST_CARDS, "operationId"), "x", "GET /api/v1/cards has another operation ID"),
        (
            (*_LIST_CARDS, "parameters"),
            [],
            "GET /api/v1/cards: the query parameter status is removed",
        ),
        (
            (*_SCHEMAS, "Registration", "required"),
            ["address"],
            "Registration.address became required",
        ),
        ((*_SCHEMAS, "CardRecord", "required"), [], "CardRecord.status may be missing"),
        ((*_SCHEMAS, "CardRecord", "properties", "status"), None, "CardRecord.status is removed"),
        (
            (*_SCHEMAS, "CardRecord", "properties", "status"),
            {"type": "integer"},
            "CardRecord.status changed its type from",
        ),
    ],
)
def test_incompatible_change_is_found(path: tuple[str, ...], value: object, problem: str) -> None:
    breaks = list_breaks(build_current("gateway"), edit(*path, to=value))
    assert any(found.startswith(problem) for found in breaks)
