"""A fuzzing run over both services."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Iterable
from random import Random
from time import monotonic

from fuzz.connection_pool import ConnectionPool, open_pool
from fuzz.executor import Executor
from fuzz.fixtures import FuzzFixtures
from fuzz.installation import APP_SECRET, BRIDGE_TOKEN, Installation
from fuzz.openapi import Document, list_operations
from fuzz.plan import PlannedRequest, plan_rounds
from fuzz.results import Results
from journeys.api_caller import require_success

PrintLine = Callable[[str], None]
_CONCURRENCY = 8


async def fetch_openapi_documents(installation: Installation) -> dict[str, Document]:
    clients = {"gateway": installation.deployment.client, "messenger": installation.messenger}
    return {
        name: require_success(await client.get("/openapi.json")) for name, client in clients.items()
    }


async def run_fuzzing(
    stock: FuzzFixtures, count: int, seed: int, say: PrintLine, *, of_operations: int | None = None
) -> Results:
    """Run `count` requests; `of_operations` limits the run to a random sample of operations."""
    started, installation = monotonic(), stock.installation
    documents = await fetch_openapi_documents(installation)
    found = [
        operation
        for name, document in documents.items()
        for operation in list_operations(name, document)
    ]
    if of_operations is not None:
        found = Random(seed).sample(found, of_operations)
    tally = Results(one.label for one in found)
    async with open_connections(installation) as ways:
        asker = Executor(stock, ways, tally, _list_secrets(installation))
        for plan in plan_rounds(found, count, seed):
            say(f"{monotonic() - started:4.0f} s  {len(plan)} requests generated")
            await _execute_all(asker, plan)
            say(
                f"{monotonic() - started:4.0f} s  {tally.request_count} sent,"
                f" {tally.finding_count} findings"
            )
    return tally


@contextlib.asynccontextmanager
async def open_connections(installation: Installation) -> AsyncIterator[dict[str, ConnectionPool]]:
    running = installation.running
    async with open_pool(running.gateway) as gateway, open_pool(running.messenger) as messenger:
        yield {"gateway": gateway, "messenger": messenger}


async def _execute_all(asker: Executor, plan: Iterable[PlannedRequest]) -> None:
    waiting = iter(plan)

    async def work() -> None:
        for item in waiting:
            await asker.execute(item)

    async with asyncio.TaskGroup() as group:
        for _ in range(_CONCURRENCY):
            group.create_task(work())


def _list_secrets(installation: Installation) -> list[str]:
    settings = installation.settings
    return [
        settings.jwt_secret,
        settings.secret_key,
        *settings.service_secrets.values(),
        APP_SECRET,
        BRIDGE_TOKEN,
    ]
