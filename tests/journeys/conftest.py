"""Each file of journeys has a gateway and a database of its own; each journey ends with the books
proven, each file with a search for every secret that was used."""

import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from canary.watch import watched
from conftest import Copies, url_of
from gateway.running import gateway
from journeys.lines import connected
from journeys.platform import Platform
from journeys.staff import Admin

#: PostgreSQL here lets everybody in, also with one.
_DATABASE_PASSWORD = "canary-of-the-database-4c1f"


@pytest.fixture(scope="module")
async def running(postgres: str, copies: Copies) -> AsyncIterator[Platform]:
    """On a fresh database."""
    name = await copies.make()
    database_url = url_of(name, postgres).replace("@/", f":{_DATABASE_PASSWORD}@/")
    with tempfile.TemporaryDirectory(prefix="tapgate-test-") as place:
        folder = Path(place)
        async with watched(database_url) as watch:
            async with (
                gateway(folder, database_url, workers=2) as address,
                connected(address) as client,
            ):
                platform = Platform(client, folder, database_url)
                watch.knows_those_of(platform.settings)
                watch.knows("the database's password", _DATABASE_PASSWORD)
                yield platform
                watch.look_into("metrics", (await client.get("/metrics")).content)
                watch.look_at_processes()
            log = (folder / "log").read_text()
            watch.look_into("logs", log)
            watch.look_through(folder / "gateway")
        assert '"level":"error"' not in log
    await copies.done_with(name)


@pytest.fixture
async def platform(running: Platform) -> AsyncIterator[Platform]:
    """The only way to a gateway here, so that no journey goes unproven."""
    yield running
    await running.require_sound_books()


@pytest.fixture
async def ada(platform: Platform) -> Admin:
    return await platform.ada()
