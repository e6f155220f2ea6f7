"""API reference: one page per tag and an index, generated from the OpenAPI document."""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from tapgate.http.openapi_components import inline_shared_parts
from tapgate.server.gateway import build_openapi_document
from tapgate.sites.guide.anchors import AnchorRegistry
from tools.manual.markdown import (
    GENERATED_NOTICE,
    format_code,
    format_link,
    format_table,
    write_if_changed,
)
from tools.manual.operations import Operation, render_response_fields
from tools.manual.schemas import Schemas

INDEX_FILE = "README.md"

#: The index page is maintained by hand up to this heading.
OPERATIONS_HEADING = "## Operations"

#: Operations on a page with their section anchors.
Sections = list[tuple[Operation, str]]


def write_pages(folder: Path) -> list[Path]:
    """Write changed pages and delete obsolete pages; return both."""
    folder.mkdir(parents=True, exist_ok=True)
    index = folder / INDEX_FILE
    pages = render_pages(
        build_openapi_document(), index.read_text() if index.exists() else "# API reference\n"
    )
    changed = [file for name in pages for file in write_if_changed(folder / name, pages[name])]
    obsolete = [file for file in sorted(folder.glob("*.md")) if file.name not in pages]
    for file in obsolete:
        file.unlink()
    return changed + obsolete


def render_pages(document: dict[str, Any], index: str) -> dict[str, str]:
    """Return all pages by file name. `index` is the index page's current text."""
    document = _inline_enums(inline_shared_parts(document))
    by_tag: dict[str, Sections] = {item["name"]: [] for item in document["tags"]}
    anchors = {tag: AnchorRegistry(tag) for tag in by_tag}
    for operation in _list_operations(document):
        tag = operation.spec["tags"][0]
        by_tag[tag].append((operation, anchors[tag].add(operation.summary)))
    schemas = document["components"]["schemas"]
    pages = {
        _get_file_name(tag): _render_page(tag, sections, Schemas(schemas), anchors[tag])
        for tag, sections in by_tag.items()
    }
    introduction = index.partition(f"\n{OPERATIONS_HEADING}\n")[0].rstrip()
    return pages | {INDEX_FILE: _join([introduction, *_list_index_blocks(by_tag)])}


def _inline_enums(document: dict[str, Any]) -> dict[str, Any]:
    """Return the document with enums inlined, so that pages list the values of each field."""
    schemas = document["components"]["schemas"]
    enums = {
        f"#/components/schemas/{name}": item for name, item in schemas.items() if "enum" in item
    }

    def inline(part: Any) -> Any:
        if isinstance(part, list):
            return [inline(entry) for entry in part]
        if not isinstance(part, dict):
            return part
        found = enums.get(part["$ref"]) if isinstance(part.get("$ref"), str) else None
        rest = {name: inline(value) for name, value in part.items() if not found or name != "$ref"}
        return {"type": "string", "enum": found["enum"], **rest} if found else rest

    inlined: dict[str, Any] = inline(document)
    return inlined


def _list_operations(document: dict[str, Any]) -> Iterator[Operation]:
    groups: dict[str, tuple[dict[str, Any], list[tuple[str, str]]]] = {}
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            comparable = {name: value for name, value in operation.items() if name != "operationId"}
            _, names = groups.setdefault(f"{method} {json.dumps(comparable)}", (operation, []))
            names.append((method.upper(), path))
    for operation, names in groups.values():
        yield Operation(tuple(names), operation)


def _render_page(tag: str, sections: Sections, schemas: Schemas, anchors: AnchorRegistry) -> str:
    roots = [
        item
        for operation, _ in sections
        for item in (operation.body, operation.response)
        if item is not None
    ]
    objects = schemas.find_shared(roots)
    for name in objects:
        title = schemas.get_title(name)
        schemas.links[name] = format_link(title, f"#{anchors.add(title)}")
    blocks = [GENERATED_NOTICE, f"# {tag}", _render_contents(sections, "")]
    for operation, _ in sections:
        blocks += [f"## {operation.summary}", *operation.render_section(schemas)]
    for name in objects:
        blocks += [f"## {schemas.get_title(name)}", schemas.get_description(name)]
        blocks.append(render_response_fields(schemas.list_fields(name)))
    return _join(filter(None, blocks))


def _list_index_blocks(by_tag: dict[str, Sections]) -> Iterator[str]:
    yield OPERATIONS_HEADING
    yield GENERATED_NOTICE
    for tag, sections in by_tag.items():
        yield f"### {format_link(tag, _get_file_name(tag))}"
        yield _render_contents(sections, _get_file_name(tag))


def _render_contents(sections: Sections, file: str) -> str:
    return format_table(
        ("Operation", ""),
        [
            (format_code(f"{method} {path}"), format_link(operation.summary, f"{file}#{anchor}"))
            for operation, anchor in sections
            for method, path in operation.routes
        ],
    )


def _join(blocks: Iterable[str]) -> str:
    return "\n\n".join(blocks) + "\n"


def _get_file_name(tag: str) -> str:
    return tag.lower().replace(" ", "-") + ".md"
