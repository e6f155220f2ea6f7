from collections.abc import AsyncIterator

import httpx2
import pytest

from field.market import TwoGateways
from field.two_ledgers import TwoLedgers
from harness import Harness
from ledger.builders import require_balanced_books
from tapgate.store.database import Database


@pytest.fixture
async def market(
    world: Harness, client: httpx2.AsyncClient, other_client: httpx2.AsyncClient
) -> AsyncIterator[TwoGateways]:
    """Two processes on one database; whatever happens there, the books hold afterwards."""
    yield await TwoGateways.open(world, client, other_client)
    await require_balanced_books(world.services.database)


@pytest.fixture
async def two_ledgers(database_url: str, database: Database) -> AsyncIterator[TwoLedgers]:
    """Two processes with a clock each; whatever happens, the books hold afterwards."""
    async with TwoLedgers.open(database_url, database) as two_ledgers:
        yield two_ledgers
    await require_balanced_books(database)
