"""One installation for all tests here, fuzzed by all of them."""

import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from conftest import Copies, url_of
from fuzz.installation import Installation, on_database
from fuzz.line_pool import Lines
from fuzz.run import ways_to
from fuzz.stock import Stock, stocked


@pytest.fixture(scope="module")
async def installation(postgres: str, copies: Copies) -> AsyncIterator[Installation]:
    name = await copies.make()
    with tempfile.TemporaryDirectory(prefix="tapgate-test-") as place:
        async with on_database(Path(place), url_of(name, postgres)) as made:
            yield made
            await made.require_sound()
    await copies.done_with(name)


@pytest.fixture(scope="module")
async def stock(installation: Installation) -> Stock:
    return await stocked(installation)


@pytest.fixture(scope="module")
async def ways(installation: Installation) -> AsyncIterator[dict[str, Lines]]:
    async with ways_to(installation) as ways:
        yield ways
