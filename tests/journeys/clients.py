"""HTTP clients of the gateway, optionally one per worker process.

Any worker process may accept the connections of a client that is not bound to one process.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterable, Iterator

import httpx2
import psutil

from gateway.processes import list_workers

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
