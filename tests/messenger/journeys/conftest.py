from collections.abc import AsyncIterator

import pytest

from messenger.journeys.town import Messenger, Town
from world import World


@pytest.fixture
def town(world: World, database_url: str) -> Town:
    return Town(world, database_url)


@pytest.fixture
async def messenger(town: Town) -> AsyncIterator[Messenger]:
    async with town.messenger() as messenger:
        yield messenger
