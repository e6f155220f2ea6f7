from collections.abc import AsyncIterator

import pytest

from messenger.journeys import canary
from messenger.journeys.town import Messenger, Town
from world import PIN, WRONG_PIN, World


@pytest.fixture
async def town(
    world: World, database_url: str, capfd: pytest.CaptureFixture[str]
) -> AsyncIterator[Town]:
    """In the end no PIN is in any table, any reply or any log line."""
    yield Town(world, database_url)
    services = world.services
    out, err = capfd.readouterr()
    places = {
        "tables": await canary.rows(services.database),
        "replies": await canary.replies(services.database, services.vault),
        "logs": out + err,
    }
    found = {place: canary.seen((PIN, WRONG_PIN), text) for place, text in places.items()}
    assert found == {"tables": [], "replies": [], "logs": []}


@pytest.fixture
async def messenger(town: Town) -> AsyncIterator[Messenger]:
    async with town.messenger() as messenger:
        yield messenger
