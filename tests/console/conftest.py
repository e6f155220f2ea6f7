"""People who look at the console."""

import httpx2
import pytest

from console.visitor import Visitor, Visitors
from tapgate.gateway import create_app
from world import World


@pytest.fixture
def visitors(world: World) -> Visitors:
    app = create_app(world.services)
    return Visitors(world, httpx2.ASGITransport(app, raise_app_exceptions=False))


@pytest.fixture
def stranger(visitors: Visitors) -> Visitor:
    return visitors.stranger()


@pytest.fixture
async def ada(visitors: Visitors) -> Visitor:
    """A system_admin."""
    return await visitors.of("A")
