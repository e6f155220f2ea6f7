"""docs/architecture.md shows the parts of the source."""

import re
from pathlib import Path

from tools.manual.parts import list_parts, render_parts

DOCS = Path(__file__).parents[2] / "docs"


def test_picture_is_generated_from_the_packages() -> None:
    assert (DOCS / "pictures" / "parts.svg").read_text() == render_parts(), "run make docs"


def test_every_part_is_described() -> None:
    text = (DOCS / "architecture.md").read_text()
    described = set(re.findall(r"^(?:src/|  )(\w+)/", text, flags=re.MULTILINE))
    assert list_parts().keys() - described <= {"tapgate_client"}
    assert "`tapgate_client`" in text
