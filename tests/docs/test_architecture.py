"""docs/architecture.md shows the parts of the source, and imports have one direction."""

import ast
import re
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

from tools.manual.parts import list_parts, render_parts

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"


def test_picture_is_generated_from_the_packages() -> None:
    assert (DOCS / "pictures" / "parts.svg").read_text() == render_parts(), "run make docs"


def test_every_part_is_described() -> None:
    text = (DOCS / "architecture.md").read_text()
    described = set(re.findall(r"^(?:src/|  )(\w+)/", text, flags=re.MULTILINE))
    assert list_parts().keys() - described <= {"tapgate_client"}
    assert "`tapgate_client`" in text


def test_every_subject_is_named() -> None:
    """A subject without a line on the page is found only by search."""
    text = (DOCS / "architecture.md").read_text()
    names = {
        folder.name
        for part in ("business", "sites")
        for folder in _list_folders(ROOT / "src" / "tapgate" / part)
    }
    assert {"disputes", "portal", "payouts"} <= names
    assert {name for name in names if f"{name}/" not in text} == set()


def test_no_modules_import_each_other() -> None:
    """Imports within functions count too: they only hide that two modules are one."""
    source = ROOT / "src"
    files = {
        ".".join(file.relative_to(source).with_suffix("").parts): file
        for file in source.rglob("*.py")
        if file.name != "__init__.py"
    }
    assert len(files) > 500
    imports = {name: set(_list_imports(file)) & files.keys() for name, file in files.items()}
    TopologicalSorter(imports).prepare()  # raises CycleError, which names the modules


def _list_imports(file: Path) -> Iterator[str]:
    """Yield the names of modules that a module may import."""
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _list_folders(parent: Path) -> Iterator[Path]:
    """Yield a part's subject folders. A folder without modules is a group of subjects."""
    for package in sorted(parent.glob("*/__init__.py")):
        if len(list(package.parent.glob("*.py"))) > 1:
            yield package.parent
        else:
            yield from _list_folders(package.parent)
