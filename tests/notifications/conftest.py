import dataclasses
from collections.abc import AsyncIterator

import pytest

from notifications.receiver import Receiver
from notifications.stage import SetClock
from tapgate.edge.services import Services


@pytest.fixture
def set_clock() -> SetClock:
    return SetClock()


@pytest.fixture
def timed(services: Services, set_clock: SetClock) -> Services:
    """A gateway that goes by the test's clock."""
    return dataclasses.replace(services, clock=set_clock)


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    receiver = Receiver()
    async with receiver.listening():
        yield receiver
