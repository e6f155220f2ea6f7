"""Downloads from a page."""

import csv
from pathlib import Path
from typing import NamedTuple

from playwright.async_api import Page


class CsvFile(NamedTuple):
    name: str
    headers: list[str]
    rows: list[list[str]]


async def download_csv(page: Page, link: str) -> CsvFile:
    """Click a link and return the CSV file that it downloads."""
    async with page.expect_download() as waiting:
        await page.get_by_role("link", name=link).click()
    file = await waiting.value
    heads, *rows = _read_csv(await file.path())
    return CsvFile(file.suggested_filename, heads, rows)


def _read_csv(path: Path) -> list[list[str]]:
    with path.open(newline="") as text:
        return list(csv.reader(text))
