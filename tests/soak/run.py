"""Runs hostile clients against both services, and measures memory and another caller's latency."""

import asyncio
import contextlib
import math
import os
import sys
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Final, NamedTuple

import httpx2
import psutil

from drivers.processes import ADMIN, BRIDGE_TOKEN, GRAPH_APP_SECRET, run_gateway_and_messenger
from soak.shapes import GATEWAY, MESSENGER, Shape

#: Growth in a service's memory, in its processes and in the kernel, while a client attacks it.
MAX_GROWTH_BYTES: Final = 64 * 1024 * 1024
#: Longest 99th percentile of another caller's latency in `make soak`.
MAX_P99_SECONDS: Final = 0.25

_TESTS: Final = Path(__file__).parents[1]
_NEIGHBOR_ADDRESS: Final = "127.0.0.2"
_NEIGHBOR_PAUSE_SECONDS: Final = 0.02
_MEMORY_INTERVAL_SECONDS: Final = 0.2


class Services(NamedTuple):
    ports: dict[str, int]
    #: Clients of another address, whose requests need the database.
    neighbors: dict[str, httpx2.AsyncClient]


class Measurement(NamedTuple):
    shape: str
    service: str
    growth_bytes: int
    p99_seconds: float
    requests: int
    failures: int

    @property
    def is_flat(self) -> bool:
        return self.growth_bytes <= MAX_GROWTH_BYTES

    @property
    def is_fast(self) -> bool:
        return self.failures == 0 and self.p99_seconds <= MAX_P99_SECONDS

    def __str__(self) -> str:
        return (
            f"{self.shape:28} {self.service:10} +{self.growth_bytes / 2**20:5.1f} MiB   "
            f"p99 {self.p99_seconds * 1000:6.1f} ms   {self.requests} requests, "
            f"{self.failures} failed"
        )


@contextlib.asynccontextmanager
async def run_services(folder: Path, database_url: str) -> AsyncIterator[Services]:
    """Run the services with the default rate limits."""
    variables = {
        "TAPGATE_RATE_LIMIT": "100",
        "TAPGATE_RATE_BURST": "200",
        "TAPGATE_MESSENGER_BRIDGE_TOKEN": BRIDGE_TOKEN,
        "TAPGATE_MESSENGER_APP_SECRET": GRAPH_APP_SECRET,
    }
    async with (
        run_gateway_and_messenger(folder, database_url, **variables) as addresses,
        _open_neighbor(addresses[0]) as gateway,
        _open_neighbor(addresses[1]) as messenger,
    ):
        response = await gateway.post("/api/v1/admin/login", json=ADMIN)
        gateway.headers["Authorization"] = f"Bearer {response.json()['token']}"
        yield Services(
            {
                service: httpx2.URL(address).port or 0
                for service, address in zip((GATEWAY, MESSENGER), addresses, strict=True)
            },
            {GATEWAY: gateway, MESSENGER: messenger},
        )


def _open_neighbor(address: str) -> httpx2.AsyncClient:
    transport = httpx2.AsyncHTTPTransport(local_address=_NEIGHBOR_ADDRESS)
    return httpx2.AsyncClient(base_url=address, transport=transport, timeout=60)


async def measure(services: Services, shape: Shape, service: str, seconds: float) -> Measurement:
    """Attack a service for some time."""
    port = services.ports[service]
    processes = list(_list_processes(port))
    assert processes, f"no process listens on port {port}"
    await _call_neighbor(services, service)
    before = _measure_memory(processes, port)
    attacker = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "soak.attacker", shape.name, service, str(port),
        env=os.environ | {"PYTHONPATH": str(_TESTS)}, stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    latencies: list[float] = []
    failures = peak = 0
    try:
        assert attacker.stdout is not None
        assert await attacker.stdout.readline(), "the attacker did not start"
        end = time.monotonic() + seconds
        next_memory_at = 0.0
        while (started := time.monotonic()) < end:
            failures += not await _call_neighbor(services, service)
            latencies.append(time.monotonic() - started)
            if started >= next_memory_at:
                peak = max(peak, _measure_memory(processes, port))
                next_memory_at = started + _MEMORY_INTERVAL_SECONDS
            await asyncio.sleep(_NEIGHBOR_PAUSE_SECONDS)
        peak = max(peak, _measure_memory(processes, port))
        assert attacker.returncode is None, "the attacker ended early"
    finally:
        with contextlib.suppress(ProcessLookupError):
            attacker.kill()
        await attacker.wait()
    latencies.sort()
    p99 = latencies[math.ceil(0.99 * len(latencies)) - 1]
    return Measurement(shape.name, service, max(0, peak - before), p99, len(latencies), failures)


async def _call_neighbor(services: Services, service: str) -> bool:
    path = "/api/v1/admin/me" if service == GATEWAY else "/health"
    return (await services.neighbors[service].get(path)).status_code == 200


def _list_processes(port: int) -> Iterator[psutil.Process]:
    for process in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.Error):
            if any(
                one.status == psutil.CONN_LISTEN and one.laddr.port == port
                for one in process.net_connections("tcp")
            ):
                yield process


def _measure_memory(processes: list[psutil.Process], port: int) -> int:
    """Return the memory used by the processes, and by their connections in the kernel."""
    resident = sum(process.memory_info().rss for process in processes)
    queued = 0
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        _, local, _, _, queues, *_ = line.split()
        if int(local.rpartition(":")[2], 16) == port:
            queued += sum(int(part, 16) for part in queues.split(":"))
    return resident + queued
