"""One gateway with every kind of caller and owner, shared by all route matrix tests."""

from collections.abc import AsyncIterator

import pytest

from databases import ScratchDatabases
from server.gateway.fixtures import AccessFixtures, OwnershipFixtures, run_access_fixtures


@pytest.fixture(scope="session")
async def access_fixtures(
    tmp_path_factory: pytest.TempPathFactory, postgres: str, scratch_databases: ScratchDatabases
) -> AsyncIterator[AccessFixtures]:
    folder = tmp_path_factory.mktemp("gateway")
    async with run_access_fixtures(folder, postgres, scratch_databases) as access_fixtures:
        yield access_fixtures


@pytest.fixture(scope="session")
async def ownership_fixtures(access_fixtures: AccessFixtures) -> OwnershipFixtures:
    ownership_fixtures = OwnershipFixtures(access_fixtures)
    await ownership_fixtures.create_all()
    return ownership_fixtures
