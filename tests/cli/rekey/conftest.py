"""Gateway processes with different lists of secret keys, on one database."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import httpx2
import pytest

from drivers.in_process import AppTransport
from harness import Harness
from tapgate.core.settings import Settings
from tapgate.ledger.rules.loaded_rules import insert_defaults
from tapgate.server.gateway import open_gateway_services
from tapgate.server.gateway_installation import require_same_installation
from tapgate_sandbox.gateway import create_app

OLD = "k" * 32
NEW = "new:" + "j" * 32
#: Rotation stages.
BEFORE, INTRODUCED, SWITCHED, AFTER = OLD, f"{OLD},{NEW}", f"{NEW},{OLD}", NEW

OpenGateway = Callable[[str], AbstractAsyncContextManager[Harness]]


@pytest.fixture
def open_gateway(settings: Settings, database_url: str) -> OpenGateway:
    """Return a function that starts a gateway with a list of secret keys."""

    @asynccontextmanager
    async def open_with(secret_key: str) -> AsyncIterator[Harness]:
        changed = settings.replace(secret_key=secret_key)
        async with open_gateway_services(changed, database_url) as services:
            await require_same_installation(services)
            async with services.transaction() as tx:
                await insert_defaults(tx, settings.currency, services.new_id)
            transport = AppTransport(create_app(services))
            async with httpx2.AsyncClient(transport=transport, base_url="http://gateway") as client:
                yield Harness(services, client)

    return open_with
