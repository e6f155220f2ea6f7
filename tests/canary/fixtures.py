"""For tests within one process: no secret is left anywhere in the end."""

from collections.abc import AsyncIterator

import pytest

from canary.watch import Watch, watched
from tapgate.settings import Settings


@pytest.fixture
async def watch(database_url: str) -> AsyncIterator[Watch]:
    async with watched(database_url) as watch:
        yield watch


@pytest.fixture
def settings(watch: Watch, settings: Settings) -> Settings:
    """Nobody connects before the watch has begun."""
    watch.knows_those_of(settings)
    return settings
