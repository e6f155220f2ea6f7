"""HTTP clients of one or several gateway processes, and concurrent requests."""

import asyncio
import contextlib
import itertools
from collections import Counter
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Iterator, Sequence
from typing import Any

import httpx2
import psutil

from drivers.api_caller import require_error
from drivers.processes import list_workers

_CONNECTIONS_PER_PROCESS = 25
#: Less than the gateway's keep-alive timeout of five seconds.
_KEEPALIVE_SECONDS = 4


def open_client(address: httpx2.URL | str, *, max_connections: int = 100) -> httpx2.AsyncClient:
    """Open a client that fails the test on any 5xx response."""
    return httpx2.AsyncClient(
        base_url=address,
        trust_env=False,
        timeout=60,
        limits=httpx2.Limits(max_connections=max_connections, keepalive_expiry=_KEEPALIVE_SECONDS),
        event_hooks={"response": [_require_no_failure]},
    )


async def _require_no_failure(response: httpx2.Response) -> None:
    assert response.status_code < 500, await response.aread()


@contextlib.asynccontextmanager
async def open_client_per_process(address: httpx2.URL) -> AsyncIterator[list[httpx2.AsyncClient]]:
    """Open one client per worker; while a client connects, the other workers are suspended."""
    processes = list_workers(address)
    async with contextlib.AsyncExitStack() as stack:
        clients = []
        for process in processes:
            client = await stack.enter_async_context(
                open_client(address, max_connections=_CONNECTIONS_PER_PROCESS)
            )
            clients.append(client)
            with _suspend(other for other in processes if other != process):
                await asyncio.gather(
                    *(client.get("/health") for _ in range(_CONNECTIONS_PER_PROCESS))
                )
        yield clients


@contextlib.contextmanager
def _suspend(processes: Iterable[psutil.Process]) -> Iterator[None]:
    with contextlib.ExitStack() as stack:
        for process in processes:
            process.suspend()
            stack.callback(process.resume)
        yield


Client = httpx2.AsyncClient
PendingResponse = Coroutine[Any, Any, httpx2.Response]
SendRequest = Callable[[Client], PendingResponse]


async def send_round_robin(
    clients: Sequence[Client], *requests: SendRequest
) -> list[httpx2.Response]:
    """Send all requests concurrently, alternating between the clients."""
    assignments = zip(requests, itertools.cycle(clients), strict=False)
    return await asyncio.gather(*(request(client) for request, client in assignments))


def count_outcomes(responses: Sequence[httpx2.Response]) -> Counter[Any]:
    """Count the responses by outcome: 200 for any success, else status and error code."""
    return Counter(
        200 if response.is_success else require_error(response) for response in responses
    )
