"""A run over both services: plan, ask, add up."""

import asyncio
from collections.abc import Callable, Iterable
from time import monotonic

from fuzz.asking import Asker
from fuzz.description import Document, operations
from fuzz.installation import APP_SECRET, BRIDGE_TOKEN, Installation
from fuzz.line_pool import lines
from fuzz.plan import Planned, planned
from fuzz.stock import stocked
from fuzz.tally import Tally
from journeys.caller import done

Say = Callable[[str], None]
_AT_ONCE = 8


async def descriptions(installation: Installation) -> dict[str, Document]:
    clients = {"gateway": installation.platform.client, "messenger": installation.messenger}
    return {name: done(await one.get("/openapi.json")) for name, one in clients.items()}


async def fuzzed(installation: Installation, count: int, seed: int, say: Say) -> Tally:
    started = monotonic()
    documents = await descriptions(installation)
    found = [one for name, document in documents.items() for one in operations(name, document)]
    stock = await stocked(installation)
    tally = Tally(one.name for one in found)
    async with (
        lines(installation.running.gateway) as gateway,
        lines(installation.running.messenger) as messenger,
    ):
        ways = {"gateway": gateway, "messenger": messenger}
        asker = Asker(stock, ways, tally, _secrets(installation))
        for plan in planned(found, count, seed):
            await _asked(asker, plan)
            say(
                f"{monotonic() - started:4.0f} s  {tally.requests} requests, "
                f"{tally.found} findings"
            )
    return tally


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
