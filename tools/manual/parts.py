"""Generates docs/pictures/parts.svg: the parts of the source, and which part imports which.

Parts, reasons and arrows come from the packages: the reason is the first line of a package's
docstring. An arrow that follows from two others is left out.
"""

import ast
import textwrap
from collections import defaultdict
from functools import cache
from html import escape
from pathlib import Path
from typing import Final

import grimp

from tools.manual.markdown import write_if_changed

_PACKAGES: Final = {
    "tapgate": Path("src/tapgate"),
    "tapgate_sandbox": Path("src/tapgate_sandbox"),
    "tapgate_client": Path("clients/python/src/tapgate_client"),
}
_BOX_HEIGHT, _GAP, _MARGIN = 58, 26, 12
_LEFT_WIDTH, _RIGHT_WIDTH = 640, 250
_LINE_LENGTH: Final = {_LEFT_WIDTH: 94, _RIGHT_WIDTH: 34}


def render_parts() -> str:
    imports = _find_direct_imports()
    rows = {part: _count_rows_below(part, imports) for part in list_parts()}
    chain = _find_longest_chain(imports, rows)
    boxes = {part: _place_on_chain(part, chain) for part in chain}
    for part in sorted(rows.keys() - set(chain)):
        boxes[part] = _place_beside_chain(part, imports, boxes)
    height = max(top + size for _, top, _, size in boxes.values()) + _MARGIN
    width = _LEFT_WIDTH + _RIGHT_WIDTH + _GAP + 2 * _MARGIN
    arrows = [
        _render_arrow(boxes[part], boxes[lower])
        for part in sorted(boxes)
        for lower in sorted(_reduce(part, imports))
    ]
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}"'
            ' font-family="sans-serif" role="img" aria-label="Parts and their imports">',
            '<marker id="arrow" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8"'
            ' markerHeight="8" orient="auto"><path d="M0 0L8 4L0 8z" fill="#555"/></marker>',
            f'<rect width="{width}" height="{height}" fill="#fff"/>',
            *(_render_box(part, *boxes[part]) for part in sorted(boxes)),
            *arrows,
            "</svg>",
            "",
        ]
    )


def write_parts(file: Path) -> list[Path]:
    return write_if_changed(file, render_parts())


def list_parts() -> dict[str, Path]:
    """Return the folders of all parts by name."""
    inner = {path.name: path for path in _PACKAGES["tapgate"].iterdir() if _is_package(path)}
    return inner | {name: path for name, path in _PACKAGES.items() if name != "tapgate"}


def _is_package(path: Path) -> bool:
    return (path / "__init__.py").exists()


@cache
def _find_direct_imports() -> dict[str, set[str]]:
    graph, parts = grimp.build_graph(*_PACKAGES), list_parts()
    imports = defaultdict(set)
    for module in graph.modules:
        for imported in graph.find_modules_directly_imported_by(module):
            part, lower = _get_part(module), _get_part(imported)
            if part != lower and {part, lower} <= parts.keys():
                imports[part].add(lower)
    return imports


def _get_part(module: str) -> str:
    package, _, rest = module.partition(".")
    return rest.partition(".")[0] if package == "tapgate" else package


def _find_reachable(part: str, imports: dict[str, set[str]]) -> set[str]:
    lower = imports[part]
    return lower.union(*(_find_reachable(name, imports) for name in lower))


def _reduce(part: str, imports: dict[str, set[str]]) -> set[str]:
    """Return the imported parts that are not also imported through another part."""
    lower = imports[part]
    return lower.difference(*(_find_reachable(name, imports) for name in lower))


def _count_rows_below(part: str, imports: dict[str, set[str]]) -> int:
    return max((1 + _count_rows_below(name, imports) for name in imports[part]), default=0)


def _find_longest_chain(imports: dict[str, set[str]], rows: dict[str, int]) -> list[str]:
    chain = [max(rows, key=lambda part: rows[part])]
    while lower := imports[chain[-1]]:
        chain.append(max(sorted(lower), key=lambda part: rows[part]))
    return chain


def _place_on_chain(part: str, chain: list[str]) -> tuple[int, int, int, int]:
    top = _MARGIN + chain.index(part) * (_BOX_HEIGHT + _GAP)
    return _MARGIN, top, _LEFT_WIDTH, _BOX_HEIGHT


def _place_beside_chain(
    part: str, imports: dict[str, set[str]], boxes: dict[str, tuple[int, int, int, int]]
) -> tuple[int, int, int, int]:
    """Return a box beside the chain, from its lowest importer to the highest part it imports."""
    above = max(boxes[name][1] for name, lower in imports.items() if part in lower)
    below = min(boxes[name][1] for name in imports[part])
    top = above + _BOX_HEIGHT + _GAP
    return _MARGIN + _LEFT_WIDTH + _GAP, top, _RIGHT_WIDTH, below - _GAP - top


def _render_box(part: str, left: int, top: int, width: int, height: int) -> str:
    lines = textwrap.wrap(_read_reason(list_parts()[part]), _LINE_LENGTH[width])
    texts = "".join(
        f'<text x="{left + 12}" y="{top + 42 + 16 * index}" font-size="12.5" fill="#333">'
        f"{escape(line)}</text>"
        for index, line in enumerate(lines)
    )
    return (
        f'<rect x="{left}" y="{top}" width="{width}" height="{height}" rx="6" fill="#f4f7fb"'
        f' stroke="#8aa"/><text x="{left + 12}" y="{top + 23}" font-size="15"'
        f' font-weight="bold">{part}</text>{texts}'
    )


def _read_reason(folder: Path) -> str:
    text = ast.get_docstring(ast.parse((folder / "__init__.py").read_text())) or ""
    return text.partition("\n")[0]


def _render_arrow(box: tuple[int, int, int, int], lower: tuple[int, int, int, int]) -> str:
    """Return a line from one box down to another, or sideways if the boxes are side by side."""
    left, top, width, height = box
    lower_left, lower_top, lower_width, _ = lower
    start = left + width // 2, top + height
    end = lower_left + lower_width // 2, lower_top
    if lower_left > left:
        start = left + width, top + height // 2
        end = lower_left + lower_width // 2, lower_top
        path = f"M{start[0]} {start[1]}H{end[0]}V{end[1]}"
    elif lower_left < left:
        end = lower_left + lower_width, lower_top + _BOX_HEIGHT // 2
        path = f"M{start[0]} {start[1]}V{end[1]}H{end[0]}"
    else:
        path = f"M{start[0]} {start[1]}V{end[1]}"
    return f'<path d="{path}" fill="none" stroke="#555" marker-end="url(#arrow)"/>'
