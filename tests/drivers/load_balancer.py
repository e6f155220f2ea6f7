"""A load balancer for tests: TCP round robin over the nodes whose `/ready` returns 200."""

import asyncio
import contextlib
import itertools
from collections.abc import AsyncIterator
from urllib.parse import urlsplit

import httpx2

_CHECK_SECONDS = 0.2
_CHUNK_BYTES = 64 * 1024


class LoadBalancer:
    """Forwards each connection to a ready node, without retries."""

    def __init__(self) -> None:
        self._addresses: set[str] = set()
        self._ready: list[str] = []
        self._counter = itertools.count()

    @classmethod
    @contextlib.asynccontextmanager
    async def run(cls) -> AsyncIterator[tuple["LoadBalancer", str]]:
        """Yield a balancer without nodes, and its address."""
        balancer = cls()
        checks = asyncio.create_task(balancer.check_nodes())
        server = await asyncio.start_server(balancer.forward, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        try:
            yield balancer, f"http://127.0.0.1:{port}"
        finally:
            server.close()
            checks.cancel()

    async def add(self, address: str) -> None:
        """Add a node and wait until it is ready."""
        self._addresses.add(address)
        while address not in self._ready:
            await asyncio.sleep(_CHECK_SECONDS)

    def remove(self, address: str) -> None:
        """Remove a node that has stopped."""
        self._addresses.discard(address)

    async def check_nodes(self) -> None:
        async with httpx2.AsyncClient(trust_env=False, timeout=60) as client:
            while True:
                addresses = sorted(self._addresses)
                checks = [_is_ready(client, address) for address in addresses]
                results = await asyncio.gather(*checks)
                self._ready = [
                    address
                    for address, is_ready in zip(addresses, results, strict=True)
                    if is_ready
                ]
                await asyncio.sleep(_CHECK_SECONDS)

    async def forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        address = urlsplit(self._ready[next(self._counter) % len(self._ready)])
        node_reader, node_writer = await asyncio.open_connection(address.hostname, address.port)
        await asyncio.gather(_copy(reader, node_writer), _copy(node_reader, writer))


async def _is_ready(client: httpx2.AsyncClient, address: str) -> bool:
    try:
        return (await client.get(f"{address}/ready")).status_code == 200
    except httpx2.TransportError:
        return False


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while data := await reader.read(_CHUNK_BYTES):
            writer.write(data)
            await writer.drain()
    writer.close()
