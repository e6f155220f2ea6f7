from collections.abc import AsyncIterator

import httpx2
import pytest

from builders.ledger import require_balanced_books
from drivers.deployments import TwoGateways, TwoLedgers
from harness import Harness
from tapgate.runtime.store.database import Database


@pytest.fixture
async def two_gateways(
    harness: Harness, client: httpx2.AsyncClient, other_process_client: httpx2.AsyncClient
) -> AsyncIterator[TwoGateways]:
    """Two gateway processes on one database; the books must balance after each test."""
    yield await TwoGateways.open(harness, client, other_process_client)
    await require_balanced_books(harness.database)


@pytest.fixture
async def two_ledgers(database_url: str, database: Database) -> AsyncIterator[TwoLedgers]:
    """Two ledgers with separate slots and clocks; the books must balance after each test."""
    async with TwoLedgers.open(database_url, database) as two_ledgers:
        yield two_ledgers
    await require_balanced_books(database)
