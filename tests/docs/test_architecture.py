"""docs/architecture.md shows the parts of the source."""

import re
from collections.abc import Iterator
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


def _list_folders(parent: Path) -> Iterator[Path]:
    """Yield a part's subject folders. A folder without modules is a group of subjects."""
    for package in sorted(parent.glob("*/__init__.py")):
        if len(list(package.parent.glob("*.py"))) > 1:
            yield package.parent
        else:
            yield from _list_folders(package.parent)
