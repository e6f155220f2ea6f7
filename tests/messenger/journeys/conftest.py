from collections.abc import AsyncIterator

import pytest

from canary.fixtures import settings, watch
from canary.watch import Watch
from messenger.journeys.town import Messenger, Town, flow_key
from world import World

__all__ = ["settings", "watch"]


@pytest.fixture
async def town(
    watch: Watch, world: World, database_url: str, capfd: pytest.CaptureFixture[str]
) -> AsyncIterator[Town]:
    """In the end no secret is in any table, statement, answer or log line, and no PIN in any
    reply."""
    watch.knows("the key of forms", flow_key()[0])
    town = Town(world, database_url)
    yield town
    out, err = capfd.readouterr()
    watch.look_into("logs", out + err)
    told, codes = await town.told()
    watch.look_for_pins("replies", told)
    for code in codes:
        watch.knows("a one-time code", code)


@pytest.fixture
async def messenger(town: Town) -> AsyncIterator[Messenger]:
    async with town.messenger() as messenger:
        yield messenger
