"""Fixtures: one installation shared by all tests in a module."""

import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from databases import ScratchDatabases, build_database_url
from fuzz.connection_pool import ConnectionPool
from fuzz.fixtures import FuzzFixtures, create_fixtures
from fuzz.installation import Installation, run_installation
from fuzz.run import open_connections


@pytest.fixture(scope="module")
async def installation(
    postgres: str, scratch_databases: ScratchDatabases
) -> AsyncIterator[Installation]:
    name = await scratch_databases.acquire()
    with tempfile.TemporaryDirectory(prefix="tapgate-test-") as folder:
        async with run_installation(Path(folder), build_database_url(name, postgres)) as created:
            yield created
            await created.require_no_failures()
    await scratch_databases.release(name)


@pytest.fixture(scope="module")
async def fuzz_fixtures(installation: Installation) -> FuzzFixtures:
    return await create_fixtures(installation)


@pytest.fixture(scope="module")
async def connections(installation: Installation) -> AsyncIterator[dict[str, ConnectionPool]]:
    async with open_connections(installation) as pools:
        yield pools
