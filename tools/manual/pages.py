"""API reference: one page per tag and an index, generated from the OpenAPI document."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from tapgate.server.gateway import build_openapi_document
from tapgate.sites.guide.reference.operations import Reference, Sections, get_page_name
from tapgate.sites.guide.reference.pages import OPERATIONS_HEADING
from tapgate.sites.guide.reference.schemas import flatten_fields, format_code
from tools.manual.markdown import GENERATED_NOTICE, format_link, format_table, write_if_changed
from tools.manual.operations import render_response_fields, render_section

INDEX_FILE = "README.md"


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
    reference = Reference(document)
    pages = {f"{get_page_name(tag)}.md": _render_page(tag, reference) for tag in reference.tags}
    introduction = index.partition(f"\n{OPERATIONS_HEADING}\n")[0].rstrip()
    blocks = _list_index_blocks(reference)
    return pages | {INDEX_FILE: _join([introduction, *blocks])}


def _render_page(tag: str, reference: Reference) -> str:
    schemas, objects = reference.list_objects(tag)
    sections = reference.sections[tag]
    blocks = [GENERATED_NOTICE, f"# {tag}", _render_contents(sections, "")]
    for operation, _ in sections:
        blocks += [f"## {operation.summary}", *render_section(operation, schemas)]
    for name in objects:
        blocks += [f"## {name}", schemas.get_description(name)]
        blocks.append(render_response_fields(flatten_fields(schemas.list_fields(name))))
    return _join(filter(None, blocks))


def _list_index_blocks(reference: Reference) -> Iterator[str]:
    yield OPERATIONS_HEADING
    yield GENERATED_NOTICE
    for tag, sections in reference.sections.items():
        file = f"{get_page_name(tag)}.md"
        yield f"### {format_link(tag, file)}"
        yield _render_contents(sections, file)


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
