from collections.abc import AsyncIterator

import httpx2
import pytest

from field.market import Market
from field.two_ledgers import TwoLedgers
from ledger.books import require_sound
from tapgate.store.database import Database
from world import World


@pytest.fixture
async def market(
    world: World, client: httpx2.AsyncClient, other_client: httpx2.AsyncClient
) -> AsyncIterator[Market]:
    """Two processes on one database; whatever happens there, the books hold afterwards."""
    yield await Market.open(world, client, other_client)
    await require_sound(world.services.database)


@pytest.fixture
async def two_ledgers(database_url: str, database: Database) -> AsyncIterator[TwoLedgers]:
    """Two processes with a clock each; whatever happens, the books hold afterwards."""
    async with TwoLedgers.open(database_url, database) as two_ledgers:
        yield two_ledgers
    await require_sound(database)
