from collections.abc import AsyncIterator

import pytest

from builders.auth import FakeClock
from builders.messenger import OutboxDriver, SenderDriver, SmsDriver
from drivers.webhooks import ACCESS_TOKEN, PHONE_NUMBER_ID
from tapgate.messenger.channel.graph import GraphClient
from tapgate.messenger.channel.sms import SmsClient
from tapgate.runtime.store.database import Database
from tapgate_sandbox.fake_provider.provider import Provider
from tapgate_sandbox.fake_provider.rules import ProviderRules
from tapgate_sandbox.fake_provider.server import serve
from tapgate_sandbox.fake_provider.sms import SmsProvider


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def outbox(database: Database, clock: FakeClock) -> OutboxDriver:
    return OutboxDriver(database, clock)


@pytest.fixture
async def provider(clock: FakeClock) -> Provider:
    rules = ProviderRules(max_per_second=1000, pair_burst=1000)
    return Provider(
        access_token=ACCESS_TOKEN, phone_number_id=PHONE_NUMBER_ID, clock=clock, rules=rules
    )


@pytest.fixture
async def graph(provider: Provider) -> AsyncIterator[GraphClient]:
    async with serve(provider) as url, GraphClient(url, ACCESS_TOKEN, PHONE_NUMBER_ID) as graph:
        yield graph


@pytest.fixture
def sender_driver(
    database: Database, clock: FakeClock, provider: Provider, graph: GraphClient
) -> SenderDriver:
    return SenderDriver(database, clock, provider, graph)


@pytest.fixture
async def sms_driver(sender_driver: SenderDriver) -> AsyncIterator[SmsDriver]:
    sender_driver.provider.sms = SmsProvider(reports=False, clock=sender_driver.clock)
    async with serve(sender_driver.provider) as url:
        sms = SmsClient(f"{url}/sms", sender_driver.provider.sms.token, timeout_seconds=0.5)
        yield SmsDriver(sender_driver, sms)
        sms.close()
