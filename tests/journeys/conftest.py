"""Each file of journeys has a gateway and a database of its own; each journey ends with the books
proven."""

import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from conftest import Copies, url_of
from gateway.running import gateway
from journeys.lines import connected
from journeys.platform import Platform
from journeys.staff import Admin


@pytest.fixture(scope="module")
async def running(postgres: str, copies: Copies) -> AsyncIterator[Platform]:
    """On a fresh database."""
    name = await copies.make()
    with tempfile.TemporaryDirectory(prefix="tapgate-test-") as place:
        folder, database_url = Path(place), url_of(name, postgres)
        async with (
            gateway(folder, database_url, workers=2) as address,
            connected(address) as client,
        ):
            yield Platform(client, folder, database_url)
        assert '"level":"error"' not in (folder / "log").read_text()
    await copies.done_with(name)


@pytest.fixture
async def platform(running: Platform) -> AsyncIterator[Platform]:
    """The only way to a gateway here, so that no journey goes unproven."""
    yield running
    await running.require_sound_books()


@pytest.fixture
async def ada(platform: Platform) -> Admin:
    return await platform.ada()
