"""Connections to the gateway; if need be to one of its processes and to the other, since which of
them takes up a new connection is up to chance."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterable, Iterator

import httpx2
import psutil

from gateway.running import workers_of

_LINES = 25
#: Less than the five seconds after which the gateway hangs up.
_IDLE_SECONDS = 4


def connected(address: httpx2.URL | str, *, at_most: int = 100) -> httpx2.AsyncClient:
    """A client to whom the gateway never fails."""
    return httpx2.AsyncClient(
        base_url=address,
        trust_env=False,
        timeout=60,
        limits=httpx2.Limits(max_connections=at_most, keepalive_expiry=_IDLE_SECONDS),
        event_hooks={"response": [_require_no_failure]},
    )


async def _require_no_failure(answer: httpx2.Response) -> None:
    assert answer.status_code < 500, await answer.aread()


@contextlib.asynccontextmanager
async def to_each_process(address: httpx2.URL) -> AsyncIterator[list[httpx2.AsyncClient]]:
    """A client for each process. While it opens its connections, the others stand still."""
    processes = workers_of(address)
    async with contextlib.AsyncExitStack() as stack:
        clients = []
        for process in processes:
            client = await stack.enter_async_context(connected(address, at_most=_LINES))
            clients.append(client)
            with _standing_still(other for other in processes if other != process):
                await asyncio.gather(*(client.get("/health") for _ in range(_LINES)))
        yield clients


@contextlib.contextmanager
def _standing_still(processes: Iterable[psutil.Process]) -> Iterator[None]:
    with contextlib.ExitStack() as stack:
        for process in processes:
            process.suspend()
            stack.callback(process.resume)
        yield
