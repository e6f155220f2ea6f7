"""Payment benchmark with and without a subscribed webhook endpoint.

    python -m bench.webhooks

Phases alternate, so other load on the machine affects both. The receiver is a server on 127.0.0.1
that answers every request immediately. Workers deliver events during the phase.
"""

import argparse
import asyncio
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import asyncpg

from bench.payments import dataset, receiver
from bench.payments.installation import run_installation
from bench.payments.phase_runner import PhaseRunner, RequestBuilder, create_payment_builder
from bench.payments.results import Phase
from tapgate.core.settings import load_settings
from tapgate.http.api.services import Services
from tapgate.server.gateway_services import open_services

_ROOT = Path(__file__).parents[1]
_CONNECTIONS = 64
_WARM_UP_SECONDS = 2.0
_MAX_DRAIN_SECONDS = 60.0
_MAX_CARDS = 20_000


class Backlog(NamedTuple):
    """Deliveries in a phase: sent during it, pending at its end, and the time to send the rest."""

    delivered: int
    pending: int
    drain_seconds: float


class WebhookBenchmark:
    def __init__(
        self, runner: PhaseRunner, services: Services, connection: asyncpg.Connection
    ) -> None:
        self._runner = runner
        self._services = services
        self._connection = connection

    async def run(self, pay: RequestBuilder, *, rounds: int, seconds: float) -> list[float]:
        """Run alternating phases; return the rate ratio in each round."""
        self._runner.phases_left = 2 * rounds + 2
        await self._run_phase("warm-up", pay, _WARM_UP_SECONDS)
        async with receiver.receive_webhooks(self._services):
            await self._run_phase("warm-up", pay, _WARM_UP_SECONDS)
            await self._drain()
        ratios = []
        for _ in range(rounds):
            without = await self._run_phase("without", pay, seconds)
            async with receiver.receive_webhooks(self._services):
                subscribed = await self._run_phase("webhook", pay, seconds)
                backlog = await self._drain()
            ratios.append(subscribed.per_second / without.per_second)
            cost = _get_cost(without) / _get_cost(subscribed)
            print_line(
                f"  ratio {ratios[-1]:.2f}, by CPU time {cost:.2f};"
                f" {backlog.delivered:,} delivered during the phase,"
                f" {backlog.pending:,} pending at its end, sent after {backlog.drain_seconds:.1f} s"
            )
        return ratios

    async def _run_phase(self, kind: str, pay: RequestBuilder, seconds: float) -> Phase:
        phase = await self._runner.run(
            kind, pay, round_=1, connections=_CONNECTIONS, seconds=seconds
        )
        print_line(
            f"  {kind:8} {phase.per_second:7,.0f}/s  p50 {phase.p50_ms:6.1f} ms"
            f"  p99 {phase.p99_ms:6.1f} ms  CPU per payment: workers {phase.cpu.workers:4.0f} µs,"
            f" PostgreSQL {phase.cpu.postgres:4.0f} µs"
        )
        return phase

    async def _drain(self) -> Backlog:
        """Wait until all deliveries have ended."""
        ended, pending = await self._count_deliveries()
        started_at = time.monotonic()
        while (await self._count_deliveries())[1]:
            if time.monotonic() - started_at > _MAX_DRAIN_SECONDS:
                raise TimeoutError("deliveries are still pending")
            await asyncio.sleep(0.1)
        return Backlog(ended, pending, time.monotonic() - started_at)

    async def _count_deliveries(self) -> tuple[int, int]:
        """Return the numbers of ended and pending deliveries to the current endpoint."""
        row = await self._connection.fetchrow(
            """SELECT count(*) FILTER (WHERE status <> 'pending'),
                      count(*) FILTER (WHERE status = 'pending')
               FROM deliveries WHERE endpoint_id = (SELECT max(id) FROM webhook_endpoints)"""
        )
        return row[0], row[1]


def _get_cost(phase: Phase) -> float:
    """Return the CPU time of all processes but the receiver, in microseconds per payment."""
    return phase.cpu.workers + phase.cpu.postgres + phase.cpu.load_client


def print_line(line: str) -> None:
    print(line, flush=True)


async def run_benchmark(folder: Path, *, rounds: int, seconds: float, cards: int) -> list[float]:
    async with run_installation(folder, workers=2) as installation:
        connection = await asyncpg.connect(installation.database_url)
        settings = load_settings(installation.environ)
        try:
            async with open_services(settings, installation.database_url) as services:
                print_line(f"Creating {cards:,} cards ...")
                bench_data = await dataset.build(services, cards=cards, processors=10)
                runner = PhaseRunner(installation, bench_data, connection)
                benchmark = WebhookBenchmark(runner, services, connection)
                return await benchmark.run(
                    create_payment_builder(bench_data), rounds=rounds, seconds=seconds
                )
        finally:
            await connection.close()


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.webhooks", description=__doc__)
    parser.add_argument("--seconds", type=float, default=3.0, help="duration of a phase")
    parser.add_argument("--rounds", type=int, default=3, help="rounds of two phases")
    parser.add_argument("--cards", type=int, default=10_000, help="number of cards")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix=".bench-", dir=_ROOT) as name:
        ratios = asyncio.run(
            run_benchmark(
                Path(name),
                rounds=min(20, max(1, options.rounds)),
                seconds=min(60.0, max(0.1, options.seconds)),
                cards=min(_MAX_CARDS, max(100, options.cards)),
            )
        )
    ratio = statistics.median(ratios)
    print_line(f"Payments with a webhook run at {ratio:.2f} of the rate without.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
