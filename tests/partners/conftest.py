"""A second process of the gateway, on the same database."""

from collections.abc import AsyncIterator

import httpx2
import pytest

from tapgate.edge.services import Services
from tapgate.gateway import create_app, wired


@pytest.fixture
async def other_client(services: Services, database_url: str) -> AsyncIterator[httpx2.AsyncClient]:
    """A client of another process of the same gateway."""
    async with wired(services.settings, database_url) as other:
        transport = httpx2.ASGITransport(create_app(other))
        async with httpx2.AsyncClient(transport=transport, base_url="http://gateway") as client:
            yield client
