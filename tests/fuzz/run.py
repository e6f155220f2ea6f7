"""A run over both services: plan, ask, add up."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Iterable
from random import Random
from time import monotonic

from fuzz.asking import Asker
from fuzz.description import Document, operations
from fuzz.installation import APP_SECRET, BRIDGE_TOKEN, Installation
from fuzz.line_pool import Lines, lines
from fuzz.plan import Planned, planned
from fuzz.stock import Stock
from fuzz.tally import Tally
from journeys.caller import done

Say = Callable[[str], None]
_AT_ONCE = 8


async def descriptions(installation: Installation) -> dict[str, Document]:
    clients = {"gateway": installation.platform.client, "messenger": installation.messenger}
    return {name: done(await one.get("/openapi.json")) for name, one in clients.items()}


async def fuzzed(
    stock: Stock, count: int, seed: int, say: Say, *, of_operations: int | None = None
) -> Tally:
    """With a number, only that many operations are asked for, which ones the seed decides."""
    started, installation = monotonic(), stock.installation
    documents = await descriptions(installation)
    found = [one for name, document in documents.items() for one in operations(name, document)]
    if of_operations is not None:
        found = Random(seed).sample(found, of_operations)
    tally = Tally(one.label for one in found)
    async with ways_to(installation) as ways:
        asker = Asker(stock, ways, tally, _secrets(installation))
        for plan in planned(found, count, seed):
            say(f"{monotonic() - started:4.0f} s  {len(plan)} requests generated")
            await _asked(asker, plan)
            say(f"{monotonic() - started:4.0f} s  {tally.requests} sent, {tally.found} findings")
    return tally


@contextlib.asynccontextmanager
async def ways_to(installation: Installation) -> AsyncIterator[dict[str, Lines]]:
    running = installation.running
    async with lines(running.gateway) as gateway, lines(running.messenger) as messenger:
        yield {"gateway": gateway, "messenger": messenger}


async def _asked(asker: Asker, plan: Iterable[Planned]) -> None:
    waiting = iter(plan)

    async def work() -> None:
        for one in waiting:
            await asker.ask(one)

    async with asyncio.TaskGroup() as group:
        for _ in range(_AT_ONCE):
            group.create_task(work())


def _secrets(installation: Installation) -> list[str]:
    settings = installation.settings
    return [
        settings.jwt_secret,
        settings.secret_key,
        *settings.service_secrets.values(),
        APP_SECRET,
        BRIDGE_TOKEN,
    ]
