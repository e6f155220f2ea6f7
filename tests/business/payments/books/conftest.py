"""Two connected books."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from builders.books import Book, open_books
from databases import ScratchDatabases, build_database_url


@pytest.fixture
async def books(
    postgres: str, scratch_databases: ScratchDatabases, tmp_path: Path
) -> AsyncIterator[tuple[Book, Book]]:
    names = [await scratch_databases.acquire() for _ in range(2)]
    async with open_books(tmp_path, [build_database_url(name, postgres) for name in names]) as both:
        yield both
    for name in names:
        await scratch_databases.release(name)
