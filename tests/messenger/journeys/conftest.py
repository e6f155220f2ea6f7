from collections.abc import AsyncIterator

import pytest

from canary.fixtures import settings, watch
from canary.watch import LeakDetector
from harness import Harness
from messenger.journeys.services_driver import MessengerDriver, ServicesDriver, build_flow_key

__all__ = ["settings", "watch"]


@pytest.fixture
async def town(
    watch: LeakDetector, world: Harness, database_url: str, capfd: pytest.CaptureFixture[str]
) -> AsyncIterator[ServicesDriver]:
    """Services under leak detection.

    Teardown checks that no secret is in a table, statement, response or log line, and no PIN in
    a reply.
    """
    watch.add_secret("the key of forms", build_flow_key()[0])
    town = ServicesDriver(world, database_url)
    yield town
    out, err = capfd.readouterr()
    watch.add_source("logs", out + err)
    told, codes = await town.list_sent_texts()
    watch.add_pin_source("replies", told)
    for code in codes:
        watch.add_secret("a one-time code", code)


@pytest.fixture
async def messenger(town: ServicesDriver) -> AsyncIterator[MessengerDriver]:
    async with town.run_messenger() as messenger:
        yield messenger
