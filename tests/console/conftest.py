"""Fixtures for console tests: clients signed out and signed in."""

import httpx2
import pytest

from console.console_client import ConsoleClient, ConsoleClients
from harness import Harness
from tapgate.gateway import create_app


@pytest.fixture
def visitors(world: Harness) -> ConsoleClients:
    app = create_app(world.services)
    return ConsoleClients(world, httpx2.ASGITransport(app, raise_app_exceptions=False))


@pytest.fixture
def stranger(visitors: ConsoleClients) -> ConsoleClient:
    return visitors.create_signed_out()


@pytest.fixture
async def ada(visitors: ConsoleClients) -> ConsoleClient:
    """Return a client signed in as a system_admin."""
    return await visitors.create_signed_in("A")
