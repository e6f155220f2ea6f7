"""`tapgate manual`: the API reference in Markdown, one page per tag.

It is generated from the same description as openapi.json.
"""

import json
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any, cast

from tapgate.cli.manual import access
from tapgate.cli.manual.markdown import AnchorRegistry, format_code, format_link, format_table
from tapgate.cli.manual.operations import Operation, render_response_fields
from tapgate.cli.manual.schemas import Schemas, link_to_anchor
from tapgate.edge.endpoint import Endpoint
from tapgate.edge.openapi import render_openapi_document
from tapgate.edge.system import SystemSource, build_system_endpoints
from tapgate.gateway import ENDPOINT_GROUPS, WEBHOOK_EVENTS
from tapgate.messenger.routes import ROUTES

INDEX_FILE = "README.md"

#: The index page is maintained by hand up to this heading.
OPERATIONS_HEADING = "## Operations"

_GENERATED_NOTICE = (
    "<!-- Made by `make docs` from the declarations of the endpoints. Change those. -->"
)
_CURRENCY = "SLE"


def list_endpoints() -> list[Endpoint]:
    """Return all endpoints, with those about the gateway itself last."""
    nobody = cast(SystemSource, None)  # the endpoints are only described, never called
    return [*chain.from_iterable(ENDPOINT_GROUPS), *build_system_endpoints(nobody)]


def build_openapi_document() -> dict[str, Any]:
    """Return the OpenAPI document of the whole API."""
    document: dict[str, Any] = json.loads(
        render_openapi_document(list_endpoints(), _CURRENCY, WEBHOOK_EVENTS)
    )
    return document


def _inline_enums(document: dict[str, Any]) -> dict[str, Any]:
    """Return the document with enums inlined, so pages list their values where they are used."""
    schemas = document["components"]["schemas"]
    enums = {f"#/components/schemas/{name}": one for name, one in schemas.items() if "enum" in one}

    def inlined(part: Any) -> Any:
        if isinstance(part, list):
            return [inlined(one) for one in part]
        if not isinstance(part, dict):
            return part
        found = enums.get(part["$ref"]) if isinstance(part.get("$ref"), str) else None
        rest = {name: inlined(value) for name, value in part.items() if not found or name != "$ref"}
        return {"type": "string", "enum": found["enum"], **rest} if found else rest

    made: dict[str, Any] = inlined(document)
    return made


def render_access_page() -> str:
    """Return the access page, which covers the gateway and the messenger."""
    return access.render_page(list_endpoints(), ROUTES)


def render_pages(document: dict[str, Any], index: str) -> dict[str, str]:
    """Return all pages by file name. `index` is the current text of the index page."""
    document = _inline_enums(document)
    by_tag: dict[str, list[Operation]] = {one["name"]: [] for one in document["tags"]}
    for operation in _list_operations(document):
        by_tag[operation.spec["tags"][0]].append(operation)
    schemas = document["components"]["schemas"]
    made = {
        _get_file_name(tag): _render_page(tag, operations, Schemas(schemas))
        for tag, operations in by_tag.items()
    }
    by_hand = index.partition(f"\n{OPERATIONS_HEADING}\n")[0].rstrip()
    return made | {INDEX_FILE: f"{by_hand}\n\n{_render_index(by_tag)}\n"}


def write_access_page(file: Path) -> list[str]:
    """Write the page if it changed, and return its name in that case."""
    text = render_access_page()
    if file.exists() and file.read_text() == text:
        return []
    file.write_text(text)
    return [file.name]


def write_pages(folder: Path) -> list[str]:
    """Write changed pages, delete obsolete ones, and return the names of both."""
    folder.mkdir(parents=True, exist_ok=True)
    index = folder / INDEX_FILE
    made = render_pages(
        build_openapi_document(), index.read_text() if index.exists() else "# The interface\n"
    )
    changed = []
    for name, text in made.items():
        file = folder / name
        if not file.exists() or file.read_text() != text:
            file.write_text(text)
            changed.append(name)
    for file in sorted(folder.glob("*.md")):
        if file.name not in made:
            file.unlink()
            changed.append(file.name)
    return changed


def _list_operations(document: dict[str, Any]) -> Iterator[Operation]:
    alike: dict[str, tuple[dict[str, Any], list[tuple[str, str]]]] = {}
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            same = {name: what for name, what in operation.items() if name != "operationId"}
            _, names = alike.setdefault(f"{method} {json.dumps(same)}", (operation, []))
            names.append((method.upper(), path))
    for operation, names in alike.values():
        yield Operation(tuple(names), operation)


def _render_page(tag: str, operations: list[Operation], schemas: Schemas) -> str:
    anchors = AnchorRegistry()
    anchors.add(tag)
    sections = [(operation, anchors.add(operation.summary)) for operation in operations]
    roots = [one for each in operations for one in (each.body, each.response) if one is not None]
    objects = schemas.find_shared(roots)
    for name in objects:
        title = schemas.get_title(name)
        schemas.links[name] = link_to_anchor(title, anchors.add(title))
    blocks = [_GENERATED_NOTICE, f"# {tag}", _render_contents(sections)]
    for operation, _ in sections:
        blocks += [f"## {operation.summary}", *operation.render_section(schemas)]
    for name in objects:
        blocks += [f"## {schemas.get_title(name)}", schemas.get_description(name)]
        blocks.append(render_response_fields(schemas.list_fields(name)))
    return "\n\n".join(filter(None, blocks)) + "\n"


def _render_contents(sections: list[tuple[Operation, str]]) -> str:
    return format_table(
        ("Operation", ""),
        [
            (format_code(f"{method} {path}"), link_to_anchor(operation.summary, anchor))
            for operation, anchor in sections
            for method, path in operation.routes
        ],
    )


def _render_index(by_tag: dict[str, list[Operation]]) -> str:
    blocks = [OPERATIONS_HEADING, _GENERATED_NOTICE]
    for tag, operations in by_tag.items():
        anchors = AnchorRegistry()
        anchors.add(tag)
        rows = []
        for operation in operations:
            target = f"{_get_file_name(tag)}#{anchors.add(operation.summary)}"
            for method, path in operation.routes:
                rows.append(
                    (format_code(f"{method} {path}"), format_link(operation.summary, target))
                )
        blocks += [
            f"### {format_link(tag, _get_file_name(tag))}",
            format_table(("Operation", ""), rows),
        ]
    return "\n\n".join(blocks)


def _get_file_name(tag: str) -> str:
    return tag.lower().replace(" ", "-") + ".md"
