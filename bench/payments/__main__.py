"""Payment benchmark over HTTP, compared with TPC-B on the same PostgreSQL server.

    python -m bench.payments

Payment and TPC-B phases alternate, so other load on the machine affects both equally. All servers
listen only on 127.0.0.1, and the data is removed at the end.
"""

import argparse
import asyncio
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import asyncpg

from bench.payments import books, dataset, machine, receiver, report, requests, results
from bench.payments.dataset import Dataset
from bench.payments.installation import Installation, run_installation
from bench.payments.phase_runner import (
    PhaseRunner,
    RequestBuilder,
    create_payment_builder,
    create_transfer_builder,
)
from bench.payments.results import Memory, Overload, Phase, Results, RoundMemory, Sizes, TpcB
from bench.payments.tpcb import PgBench
from tapgate import VERSION
from tapgate.core.settings import load_settings
from tapgate.http.api.services import Services
from tapgate.server.gateway_services import open_services
from tapgate_client.clock import system_clock

#: Connections in a payments phase, and clients in the TPC-B phase after it. With one, latencies are
#: compared.
PHASE_PAIRS = ((1, 1), (16, 8), (64, 16), (256, 32))
DEFAULT_CONNECTIONS = 64
OVERLOAD_BASELINE_CONNECTIONS = 256
#: Parts of a phase with proofs. Each follows or precedes a part without, because the speed of a
#: machine with other load may change within seconds.
PROOF_PARTS = 6
WARM_UP_SECONDS = 1.0

_ROOT = Path(__file__).parents[2]


class PaymentsBenchmark:
    def __init__(self, sizes: Sizes, installation: Installation, services: Services) -> None:
        self._sizes = sizes
        self._installation = installation
        self._services = services
        self._payments: list[Phase] = []
        self._others: list[Phase] = []
        self._tpcb: list[TpcB] = []
        self._overload: Overload | None = None
        self._memory: Memory | None = None

    async def run(self, connection: asyncpg.Connection, folder: Path) -> Results:
        sizes = self._sizes
        await books.require_durable(connection)
        version = await connection.fetchval("SELECT current_setting('server_version')")
        machine_info = machine.describe_machine(folder, version)
        print_line(f"Creating {sizes.cards:,} cards and {sizes.processors} processors ...")
        bench_data = await dataset.build(
            self._services, cards=sizes.cards, processors=sizes.processors
        )
        pgbench = PgBench(self._installation)
        await pgbench.prepare(sizes.scale)
        runner = PhaseRunner(self._installation, bench_data, connection)
        pair_runners = {
            kind: PhaseRunner(self._installation, bench_data._replace(cards=cards), connection)
            for kind, cards in (
                ("few_cards", bench_data.few_cards),
                ("proofs", bench_data.signing_cards),
            )
        }
        await self._measure(runner, pair_runners, bench_data, pgbench)
        print_line("Verifying the ledger ...")
        proof = await books.verify_books(
            connection,
            approved=sum(each.approved for each in (runner, *pair_runners.values())),
        )
        assert self._overload is not None
        assert self._memory is not None
        return Results(
            taken_on=system_clock().date().isoformat(),
            version=VERSION,
            machine=machine_info,
            sizes=sizes,
            ratio=results.compute_ratio(self._payments, self._tpcb),
            payments=self._payments,
            tpcb=self._tpcb,
            others=self._others,
            overload=self._overload,
            memory=self._memory,
            books=proof,
        )

    async def _measure(
        self,
        runner: PhaseRunner,
        pair_runners: dict[str, PhaseRunner],
        bench_data: Dataset,
        pgbench: PgBench,
    ) -> None:
        rounds, pay = self._sizes.rounds, create_payment_builder(bench_data)
        transfer = create_transfer_builder(bench_data)
        runner.phases_left = 4 + rounds * (len(PHASE_PAIRS) + 3)
        for pair_runner in pair_runners.values():
            pair_runner.phases_left = rounds * PROOF_PARTS
        for build in (transfer, pay):
            await runner.run(
                "warm-up",
                build,
                round_=0,
                connections=DEFAULT_CONNECTIONS,
                seconds=min(WARM_UP_SECONDS, self._sizes.seconds),
            )
        workers_before, answered_before = self._installation.get_workers_mb(), runner.answered
        rounds_mb: list[RoundMemory] = []
        for number in range(1, rounds + 1):
            for connections, clients in PHASE_PAIRS:
                phase = await self._run_phase(runner, "payments", pay, number, connections)
                self._payments.append(phase)
                self._tpcb.append(await pgbench.measure(number, clients, self._sizes.seconds))
                print_tpcb_run(self._tpcb[-1])
                if connections == DEFAULT_CONNECTIONS:
                    await self._measure_proofs(pair_runners, bench_data, number)
                    await self._measure_deliveries(runner, pay, transfer, number)
            hot = create_payment_builder(bench_data._replace(terminals=bench_data.terminals[:1]))
            self._others.append(await self._run_phase(runner, "hot", hot, number))
            rounds_mb.append(
                RoundMemory(
                    requests=runner.answered - answered_before,
                    workers_mb=self._installation.get_workers_mb(),
                )
            )
        await self._measure_overload(runner, pay)
        await self._measure_reads(runner, bench_data)
        self._memory = Memory(
            workers_before_mb=workers_before,
            rounds=rounds_mb,
            workers_mb=self._installation.get_workers_mb(),
            requests=runner.answered - answered_before,
            postgres_mb=self._installation.get_postgres_mb(),
        )

    async def _measure_proofs(
        self, runners: dict[str, PhaseRunner], bench_data: Dataset, number: int
    ) -> None:
        """Measure payments without and with proofs, by cards that the workers have seen before.

        Both use the same number of cards, because a card's payments of the last day are read with
        each payment. The order changes from part to part.
        """
        await runners["proofs"].run_repeated(
            "lookups",
            requests.build_lookups(bench_data),
            round_=number,
            connections=DEFAULT_CONNECTIONS,
            seconds=self._sizes.seconds,
        )
        pay = create_payment_builder(bench_data)
        for part in range(PROOF_PARTS):
            for kind in sorted(runners, reverse=part % 2 == 1):
                phase = await runners[kind].run(
                    kind,
                    pay,
                    round_=number,
                    connections=DEFAULT_CONNECTIONS,
                    seconds=self._sizes.seconds / PROOF_PARTS,
                )
                print_phase(phase)
                self._others.append(phase)

    async def _measure_deliveries(
        self, runner: PhaseRunner, pay: RequestBuilder, transfer: RequestBuilder, number: int
    ) -> None:
        """Measure the phases that leave background work, and wait until it is done."""
        self._others.append(await self._run_phase(runner, "transfers", transfer, number))
        await runner.wait_for_deliveries()
        async with receiver.receive_webhooks(self._services):
            self._others.append(await self._run_phase(runner, "webhooks", pay, number))
            await runner.wait_for_deliveries()

    async def _measure_overload(self, runner: PhaseRunner, pay: RequestBuilder) -> None:
        self._overload = await runner.run_overload(
            pay,
            round_=self._sizes.rounds,
            connections=self._sizes.overload,
            seconds=self._sizes.seconds,
            baseline=results.get_best_phase(self._payments, OVERLOAD_BASELINE_CONNECTIONS),
        )
        print_phase(self._overload.phase)

    async def _measure_reads(self, runner: PhaseRunner, bench_data: Dataset) -> None:
        reads = [requests.build_balance_read(card, bench_data.api_key) for card in bench_data.cards]
        self._others += [
            await self._run_repeated(runner, "balances", reads),
            await self._run_repeated(runner, "replays", runner.last_requests),
            await self._run_repeated(runner, "lists", [requests.build_list_read(bench_data)], 1),
            await self._run_repeated(
                runner, "statements", [requests.build_statement_read(bench_data)], 1
            ),
        ]

    async def _run_phase(
        self,
        runner: PhaseRunner,
        kind: str,
        build: RequestBuilder,
        number: int,
        connections: int = DEFAULT_CONNECTIONS,
    ) -> Phase:
        phase = await runner.run(
            kind,
            build,
            round_=number,
            connections=connections,
            seconds=self._sizes.seconds,
        )
        print_phase(phase)
        return phase

    async def _run_repeated(
        self,
        runner: PhaseRunner,
        kind: str,
        repeated_requests: list[bytes],
        connections: int = DEFAULT_CONNECTIONS,
    ) -> Phase:
        phase = await runner.run_repeated(
            kind,
            repeated_requests,
            round_=self._sizes.rounds,
            connections=connections,
            seconds=self._sizes.seconds,
        )
        print_phase(phase)
        return phase


def print_line(line: str) -> None:
    print(line, flush=True)


def print_phase(phase: Phase) -> None:
    print_line(
        f"  {phase.kind:10} {phase.connections:4} connections {phase.per_second:8,.0f}/s"
        f"  p50 {phase.p50_ms:7.1f} ms  p99 {phase.p99_ms:7.1f} ms"
    )


def print_tpcb_run(run: TpcB) -> None:
    print_line(f"  {'TPC-B':10} {run.clients:4} clients     {run.per_second:8,.0f}/s")


async def run_benchmark(sizes: Sizes, folder: Path) -> Results:
    async with (
        receiver.run_receiver() as messenger_url,
        run_installation(
            folder, workers=sizes.workers, settings={"TAPGATE_MESSENGER_URL": messenger_url}
        ) as installation,
    ):
        settings = load_settings(installation.environ)
        connection = await asyncpg.connect(installation.database_url)
        try:
            async with open_services(settings, installation.database_url) as services:
                return await PaymentsBenchmark(sizes, installation, services).run(
                    connection, folder
                )
        finally:
            await connection.close()


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.payments", description=__doc__)
    parser.add_argument("--seconds", type=float, default=3.0, help="duration of a phase")
    parser.add_argument("--rounds", type=int, default=2, help="rounds of phases to measure")
    parser.add_argument("--cards", type=int, default=30_000, help="number of cards")
    parser.add_argument("--overload", type=int, default=4_000, help="connections at overload")
    parser.add_argument("--scale", type=int, default=10, help="scale factor of TPC-B")
    parser.add_argument("--folder", type=Path, default=_ROOT, help="folder on the disk to measure")
    parser.add_argument("--root", type=Path, default=_ROOT, help="folder for the results")
    options = parser.parse_args(arguments)
    sizes = Sizes(
        seconds=min(60.0, max(0.1, options.seconds)),
        rounds=min(20, max(1, options.rounds)),
        cards=min(100_000, max(100, options.cards)),
        processors=10,
        workers=2,
        scale=min(100, max(1, options.scale)),
        overload=min(20_000, max(1, options.overload)),
    )
    with tempfile.TemporaryDirectory(prefix=".bench-", dir=options.folder) as name:
        run_results = asyncio.run(run_benchmark(sizes, Path(name)))
    print_line("")
    print_line(report.render_text(run_results))
    if not run_results.books.hold:
        print_line("Verification of the ledger failed. No results were written.")
        return 1
    for path in report.write_report(run_results, options.root):
        print_line(f"Wrote {path}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
