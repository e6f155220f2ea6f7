from collections.abc import AsyncIterator

import pytest

from messenger.fake_graph.business import NUMBER, TOKEN
from messenger.outbox.stage import Outbox, Stage
from messenger.set_clock import SetClock
from tapgate.messenger.channel.graph import GraphClient
from tapgate.messenger.fake_graph.provider import Provider
from tapgate.messenger.fake_graph.rules import Rules
from tapgate.messenger.fake_graph.server import serve
from tapgate.store.database import Database


@pytest.fixture
def clock() -> SetClock:
    return SetClock()


@pytest.fixture
def outbox(database: Database, clock: SetClock) -> Outbox:
    return Outbox(database, clock)


@pytest.fixture
async def provider(clock: SetClock) -> Provider:
    rules = Rules(max_per_second=1000, pair_burst=1000)
    return Provider(access_token=TOKEN, phone_number_id=NUMBER, clock=clock, rules=rules)


@pytest.fixture
async def graph(provider: Provider) -> AsyncIterator[GraphClient]:
    async with serve(provider) as url, GraphClient(url, TOKEN, NUMBER) as graph:
        yield graph


@pytest.fixture
def stage(database: Database, clock: SetClock, provider: Provider, graph: GraphClient) -> Stage:
    return Stage(database, clock, provider, graph)
