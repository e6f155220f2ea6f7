"""Documented settings."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

DOCUMENT = Path(__file__).parents[2] / "docs" / "settings.md"


class Row(NamedTuple):
    name: str
    default: str
    description: str
    production: str
    example: str


def parse_rows() -> Iterator[Row]:
    for line in DOCUMENT.read_text().splitlines():
        if line.startswith("| `TAPGATE_"):
            row = Row(*(cell.strip() for cell in line[1:-1].split("|")))
            unquoted = {
                name: getattr(row, name).strip("`") for name in ("name", "default", "example")
            }
            yield row._replace(**unquoted)


ROWS = {row.name: row for row in parse_rows()}
