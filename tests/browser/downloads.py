"""Files that a page gives."""

import csv
from pathlib import Path
from typing import NamedTuple

from playwright.async_api import Page


class Table(NamedTuple):
    name: str
    heads: list[str]
    rows: list[list[str]]


async def downloaded(page: Page, link: str) -> Table:
    """The CSV file behind a link."""
    async with page.expect_download() as waiting:
        await page.get_by_role("link", name=link).click()
    file = await waiting.value
    heads, *rows = _read(await file.path())
    return Table(file.suggested_filename, heads, rows)


def _read(path: Path) -> list[list[str]]:
    with path.open(newline="") as text:
        return list(csv.reader(text))
