from collections.abc import AsyncIterator

import pytest

from ledger.books import Books
from tapgate.ledger.verify import verify
from tapgate.store.database import Database


@pytest.fixture
async def books(database_url: str, database: Database) -> AsyncIterator[Books]:
    """An empty economy; whatever a test does in it, the books must hold afterwards."""
    books = await Books.open(database_url, database)
    try:
        yield books
        async with database.connection() as connection:
            proof = await verify(connection)
        assert proof.holds, [finding for finding in proof.findings if finding.broken]
    finally:
        await books.close()
