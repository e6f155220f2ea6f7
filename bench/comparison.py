"""Compares installations with different settings.

The installations run side by side and their phases alternate, so other load on the machine affects
all of them. Ratios within a round are more reliable than the values.
"""

import argparse
import asyncio
import contextlib
import statistics
import tempfile
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import NamedTuple

import asyncpg

from bench.payments import dataset
from bench.payments.installation import run_installation
from bench.payments.phase_runner import PhaseRunner, RequestBuilder, create_payment_builder
from bench.payments.results import Phase
from tapgate.core.settings import load_settings
from tapgate.server.gateway_services import open_services

_ROOT = Path(__file__).parents[1]


class Variant(NamedTuple):
    workers: int
    settings: Mapping[str, str] = {}


@contextlib.asynccontextmanager
async def _run_variant(
    folder: Path, cards: int, variant: Variant
) -> AsyncIterator[tuple[PhaseRunner, RequestBuilder]]:
    async with run_installation(
        folder, workers=variant.workers, settings=variant.settings
    ) as installation:
        connection = await asyncpg.connect(installation.database_url)
        try:
            async with open_services(
                load_settings(installation.environ), installation.database_url
            ) as services:
                bench_data = await dataset.build(services, cards=cards, processors=10)
            yield (
                PhaseRunner(installation, bench_data, connection),
                create_payment_builder(bench_data),
            )
        finally:
            await connection.close()


def compare(variants: Mapping[str, Variant], options: argparse.Namespace) -> None:
    """Print the phases of all variants, and the ratios to the first variant."""
    with tempfile.TemporaryDirectory(prefix=".bench-", dir=_ROOT) as name:
        folder = Path(name)
        for number in range(len(variants)):
            (folder / str(number)).mkdir()
        phases = asyncio.run(_run_phases(folder, variants, options))
    first, *others = phases
    for name in others:
        _print_ratios(first, name, phases)


async def _run_phases(
    folder: Path, variants: Mapping[str, Variant], options: argparse.Namespace
) -> dict[str, list[Phase]]:
    phases: dict[str, list[Phase]] = {name: [] for name in variants}
    async with contextlib.AsyncExitStack() as stack:
        runners = {
            name: await stack.enter_async_context(
                _run_variant(folder / str(number), options.cards, variant)
            )
            for number, (name, variant) in enumerate(variants.items())
        }
        for runner, _ in runners.values():
            runner.phases_left = options.rounds + 1
        # The first round is the warm-up. The order changes from round to round.
        for round_ in range(options.rounds + 1):
            for name in sorted(runners, reverse=bool(round_ % 2)):
                runner, build = runners[name]
                phase = await runner.run(
                    name,
                    build,
                    round_=round_,
                    connections=options.connections,
                    seconds=options.seconds,
                )
                _print_phase(phase)
                if round_:
                    phases[name].append(phase)
    return phases


def _print_phase(phase: Phase) -> None:
    batch = phase.batches.mean if phase.batches is not None else 0.0
    print(
        f"  {phase.kind:12} {phase.per_second:7,.0f}/s  p50 {phase.p50_ms:6.1f}"
        f"  p99 {phase.p99_ms:6.1f} ms  batch {batch:5.1f}  CPU per payment: workers"
        f" {phase.cpu.workers:4.0f} µs, PostgreSQL {phase.cpu.postgres:4.0f} µs",
        flush=True,
    )


def _print_ratios(first: str, name: str, phases: Mapping[str, list[Phase]]) -> None:
    pairs = list(zip(phases[first], phases[name], strict=True))
    ratios = {
        "payments per second": [b.per_second / a.per_second for a, b in pairs],
        "p50": [b.p50_ms / a.p50_ms for a, b in pairs],
        "CPU time of the workers": [b.cpu.workers / a.cpu.workers for a, b in pairs],
        "CPU time of PostgreSQL": [b.cpu.postgres / a.cpu.postgres for a, b in pairs],
    }
    text = ", ".join(f"{kind} {statistics.median(values):.3f}" for kind, values in ratios.items())
    print(f"{name} over {first}, median of {len(pairs)} rounds: {text}")


def build_parser(program: str, description: str | None) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog=program, description=description)
    parser.add_argument("--seconds", type=float, default=3.0, help="duration of a phase")
    parser.add_argument("--rounds", type=int, default=5, help="rounds of one phase per variant")
    parser.add_argument("--cards", type=int, default=10_000, help="number of cards")
    parser.add_argument("--connections", type=int, default=64, help="concurrent connections")
    return parser
