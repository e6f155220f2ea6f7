"""A gateway whose clock the tests set."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import httpx2
import pytest

from builders.auth import FakeClock
from drivers.in_process import AppTransport
from harness import Harness, ServiceAuth
from tapgate.core.id_generator import IdGenerator
from tapgate.core.settings import Settings
from tapgate.http.api.services import Services
from tapgate.ledger.rules.loaded_rules import insert_defaults
from tapgate.server.gateway import open_gateway_services
from tapgate_sandbox.gateway import create_app

#: Its days start at 18:15 UTC.
ZONE = ZoneInfo("Asia/Kathmandu")
START = datetime(2026, 3, 10, 12, tzinfo=UTC)


class DatedHarness(Harness):
    """Signs service requests with the gateway's time."""

    def get_service_auth(self, name: str = "messenger") -> ServiceAuth:
        secret = self.services.settings.service_secrets[name]
        return ServiceAuth(name, secret, lambda: self.services.clock().timestamp())


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock(START)


@pytest.fixture
async def dated_services(
    settings: Settings, database_url: str, clock: FakeClock
) -> AsyncIterator[Services]:
    settings = settings.replace(timezone=ZONE)
    async with open_gateway_services(settings, database_url, clock=clock) as services:
        async with services.transaction() as tx:
            await insert_defaults(tx, settings.currency, IdGenerator(1023))
        yield services


@pytest.fixture
async def dated(dated_services: Services) -> AsyncIterator[Harness]:
    """Yield a harness whose time is the fixture `clock`."""
    transport = AppTransport(create_app(dated_services))
    async with httpx2.AsyncClient(transport=transport, base_url="http://gateway") as client:
        yield DatedHarness(dated_services, client)
