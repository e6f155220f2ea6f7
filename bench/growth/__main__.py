"""Payment benchmark on a small and a large database, in one run.

    python -m bench.growth

One installation is almost empty; the second has many more subscribers and a year of payments.
Their phases alternate, so other load on the machine affects both equally. All servers listen only
on 127.0.0.1, and the data is removed at the end.
"""

import argparse
import asyncio
import sys
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from time import monotonic

import asyncpg

from bench.growth import reads, report, results
from bench.growth.fill import DatabaseFiller
from bench.growth.people import MAX_PEOPLE_PER_CARD
from bench.growth.results import FillSummary, Measurement, PaymentsPhase, Results, Sizes
from bench.payments import books, dataset, machine
from bench.payments.dataset import Dataset
from bench.payments.installation import Installation, run_installation
from bench.payments.phase_runner import PAYMENTS_PER_CARD, PhaseRunner, create_payment_builder
from bench.payments.results import Phase
from tapgate import VERSION
from tapgate.core.id_generator import first_id_at
from tapgate.core.settings import load_settings
from tapgate.http.api.services import Services
from tapgate.ledger import chart, commands
from tapgate.ledger.commands import Command
from tapgate.server.gateway_services import open_services
from tapgate_client import ids
from tapgate_client.clock import system_clock

CONNECTIONS = (64, 256)
#: Fits the two slots and eight queue entries per caller for expensive reads, so none is rejected.
_READ_CONNECTIONS = 8
#: Three pages of history, so that both installations have a full first page and a middle page.
_TOP_UP_COUNT = 3 * reads.PAGE_SIZE
_MIN_INITIAL_PAYMENTS = 100
_MAX_SETUP_PHASE_SECONDS = 60.0

#: Writes to 98% of the pages.
_KEYS_PER_PAGE = 4
_WARM_UP_AGE = timedelta(minutes=10)
#: Terminal keys that have paid since the ID $1.
_INSERT_KEYS = """
    INSERT INTO idempotency_keys
    SELECT scope, gen_random_uuid()::text, 0
    FROM (SELECT array_agg(DISTINCT scope) AS scopes FROM transactions
          WHERE id >= $1 AND scope IS NOT NULL) AS active
    CROSS JOIN LATERAL unnest(scopes) AS scope
    CROSS JOIN LATERAL generate_series(1, 1 + $2::int * pg_relation_size('idempotency_keys_pkey')
        / current_setting('block_size')::int / cardinality(scopes))"""

_ROOT = Path(__file__).parents[2]


class BenchmarkInstallation:
    """One of the two installations, with its dataset and its measurements."""

    def __init__(
        self,
        name: str,
        installation: Installation,
        services: Services,
        connection: asyncpg.Connection,
    ) -> None:
        self.name = name
        self._installation = installation
        self._services = services
        self._connection = connection
        self._payments: list[PaymentsPhase] = []
        self._reads: list[Phase] = []
        self._history_payments = 0
        self._dataset: Dataset
        self._runner: PhaseRunner
        self._prepared_reads: reads.PreparedReads

    async def get_postgres_version(self) -> str:
        version: str = await self._connection.fetchval("SHOW server_version")
        return version

    async def build(self, sizes: Sizes) -> None:
        await books.require_durable(self._connection)
        print_line(f"Creating the {self.name} installation: {sizes.cards:,} cards ...")
        self._dataset = await dataset.build(
            self._services, cards=sizes.cards, processors=sizes.processors
        )
        self._runner = PhaseRunner(self._installation, self._dataset, self._connection)
        await self._top_up()
        total_payments = sizes.cards * PAYMENTS_PER_CARD
        initial_payments = max(_MIN_INITIAL_PAYMENTS, total_payments // 100)
        self._runner.phases_left = max(1, total_payments // initial_payments)
        await self._run_payments("first", 0, _READ_CONNECTIONS, _MAX_SETUP_PHASE_SECONDS)

    async def _top_up(self) -> None:
        """Create a short history for the subscriber whose history is read."""
        subscriber_id = ids.decode(ids.SUBSCRIBER, self._dataset.cards[0].subscriber_id)
        assert subscriber_id is not None
        for _ in range(_TOP_UP_COUNT):
            top_up = Command(
                type=chart.TRANSFER,
                channel="admin",
                payer=commands.CASH_PARTY,
                payee=commands.subscriber_party(subscriber_id),
                amount=100,
            )
            (await self._services.ledger.submit(top_up)).require_accepted()

    async def grow(self, sizes: Sizes) -> FillSummary:
        print_line(
            f"Filling the {self.name} installation: {sizes.accounts:,} accounts,"
            f" {sizes.entries:,} entries ..."
        )
        connection = await asyncpg.connect(self._installation.database_url)
        try:
            filler = DatabaseFiller(connection, self._services.settings, sizes, print_line)
            fill_summary = await filler.run(self._dataset.cards[0])
        finally:
            await connection.close()
        self._history_payments = fill_summary.payments
        return fill_summary

    async def warm_up(self, phases: int) -> None:
        """Run a phase in which every card can pay once, and write to all pages of the key index.

        The first change to a page after a checkpoint costs more, which would distort the results.
        """
        self._runner.phases_left = PAYMENTS_PER_CARD
        phase = await self._run_payments("warm-up", 0, CONNECTIONS[-1], _MAX_SETUP_PHASE_SECONDS)
        print_phase(self.name, phase.phase)
        self._runner.phases_left = phases
        await self._write_to_key_pages()
        await self._connection.execute("ANALYZE")

    async def _write_to_key_pages(self) -> None:
        """Write to the pages of the index of idempotency keys, and roll back.

        Keys are random, so each of the first payments after a checkpoint writes to another page.
        Several times as many payments as there are pages, which is minutes of load, reach them all,
        but cards may not pay that often in one run.
        """
        transaction = self._connection.transaction()
        await transaction.start()
        await self._connection.execute(
            _INSERT_KEYS, first_id_at(system_clock() - _WARM_UP_AGE), _KEYS_PER_PAGE
        )
        await transaction.rollback()
        await self._connection.execute("VACUUM idempotency_keys")

    async def measure_payments(self, round_: int, connections: int, seconds: float) -> None:
        phase = await self._run_payments("payments", round_, connections, seconds)
        print_phase(self.name, phase.phase)
        self._payments.append(phase)

    async def _run_payments(
        self, kind: str, round_: int, connections: int, seconds: float
    ) -> PaymentsPhase:
        before = await self._get_wal_position()
        phase = await self._runner.run(
            kind,
            create_payment_builder(self._dataset),
            round_=round_,
            connections=connections,
            seconds=seconds,
        )
        written = await self._get_wal_position() - before
        return PaymentsPhase(phase=phase, wal_bytes=round(written / phase.answered, 1))

    async def _get_wal_position(self) -> int:
        position: int = await self._connection.fetchval(
            "SELECT (pg_current_wal_insert_lsn() - '0/0')::bigint"
        )
        return position

    async def prepare_reads(self) -> None:
        """Prepare the reads. Update planner statistics first, as autovacuum eventually would."""
        await self._connection.execute("ANALYZE")
        self._prepared_reads = await reads.prepare_reads(
            self._services, self._installation, self._dataset.cards[0]
        )

    async def measure_read(self, kind: str, round_: int, seconds: float) -> None:
        phase = await self._runner.run_repeated(
            kind,
            [self._prepared_reads.requests[kind]],
            round_=round_,
            connections=_READ_CONNECTIONS,
            seconds=seconds,
        )
        print_phase(self.name, phase)
        self._reads.append(phase)

    async def collect_results(self) -> Measurement:
        accounts = await self._connection.fetchval("SELECT count(*) FROM accounts")
        size = await self._connection.fetchval("SELECT pg_database_size(current_database())")
        print_line(f"Verifying the ledger of the {self.name} installation ...")
        started = monotonic()
        proof = await books.verify_books(
            self._connection, approved=self._history_payments + self._runner.approved
        )
        return Measurement(
            accounts=accounts,
            entries=proof.entries,
            database_mb=round(size / 1e6, 1),
            payments=self._payments,
            reads=self._reads,
            lines=self._prepared_reads.lines,
            verify_seconds=round(monotonic() - started, 2),
            books=proof,
        )


def print_line(line: str) -> None:
    print(line, flush=True)


def print_phase(name: str, phase: Phase) -> None:
    cost = phase.cpu.workers + phase.cpu.postgres
    print_line(
        f"  {name:6} {phase.kind:20} {phase.connections:4} connections {phase.per_second:8,.0f}/s"
        f"  p50 {phase.p50_ms:7.1f} ms  CPU {cost:6,.0f} µs"
    )


async def run_benchmark(sizes: Sizes, folder: Path) -> Results:
    async with (
        _open_installation("empty", sizes, folder) as empty,
        _open_installation("grown", sizes, folder) as grown,
    ):
        machine_info = machine.describe_machine(folder, await empty.get_postgres_version())
        for installation in (empty, grown):
            await installation.build(sizes)
        filled = await grown.grow(sizes)
        await _run_phases(sizes, empty, grown)
        empty_results, grown_results = await empty.collect_results(), await grown.collect_results()
    return Results(
        taken_on=system_clock().date().isoformat(),
        version=VERSION,
        machine=machine_info,
        sizes=sizes,
        filled=filled,
        ratios=results.compute_ratios(empty_results, grown_results),
        empty=empty_results,
        grown=grown_results,
    )


@asynccontextmanager
async def _open_installation(
    name: str, sizes: Sizes, folder: Path
) -> AsyncIterator[BenchmarkInstallation]:
    installation_folder = folder / name
    installation_folder.mkdir()
    async with run_installation(installation_folder, workers=sizes.workers) as installation:
        connection = await asyncpg.connect(installation.database_url)
        try:
            async with open_services(
                load_settings(installation.environ), installation.database_url
            ) as services:
                yield BenchmarkInstallation(name, installation, services, connection)
        finally:
            await connection.close()


async def _run_phases(sizes: Sizes, *installations: BenchmarkInstallation) -> None:
    for installation in installations:
        await installation.warm_up(sizes.rounds * len(CONNECTIONS))
    for round_ in range(1, sizes.rounds + 1):
        for connections in CONNECTIONS:
            for installation in _order_for_round(installations, round_):
                await installation.measure_payments(round_, connections, sizes.seconds)
    for installation in installations:
        await installation.prepare_reads()
    for round_ in range(1, sizes.rounds + 1):
        for kind in reads.KINDS:
            for installation in _order_for_round(installations, round_):
                await installation.measure_read(kind, round_, sizes.seconds)


def _order_for_round(
    installations: Sequence[BenchmarkInstallation], round_: int
) -> Sequence[BenchmarkInstallation]:
    """Return the installations in an order that is reversed in every second round."""
    return installations if round_ % 2 else installations[::-1]


def _parse_sizes(arguments: argparse.Namespace) -> Sizes:
    cards = min(100_000, max(100, arguments.cards))
    # Twice the cards is more than the dataset's cards and signing cards.
    accounts = min(10_000_000, cards * MAX_PEOPLE_PER_CARD, max(2 * cards, arguments.accounts))
    return Sizes(
        accounts=accounts,
        # At least one funding entry per account and, on average, one payment of two entries.
        entries=min(100_000_000, max(3 * accounts, arguments.entries)),
        cards=cards,
        processors=10,
        workers=min(64, max(1, arguments.workers)),
        seconds=min(60.0, max(0.1, arguments.seconds)),
        rounds=min(20, max(1, arguments.rounds)),
    )


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.growth", description=__doc__)
    parser.add_argument("--accounts", type=int, default=1_000_000, help="total after filling")
    parser.add_argument("--entries", type=int, default=10_000_000, help="total after filling")
    parser.add_argument("--seconds", type=float, default=3.0, help="duration of a phase")
    parser.add_argument("--rounds", type=int, default=5, help="rounds of phases to measure")
    parser.add_argument("--cards", type=int, default=10_000, help="paying cards of each gateway")
    parser.add_argument("--workers", type=int, default=2, help="worker processes per gateway")
    parser.add_argument("--folder", type=Path, default=_ROOT, help="folder on the disk to measure")
    parser.add_argument("--root", type=Path, default=_ROOT, help="folder for the results")
    options = parser.parse_args(arguments)
    try:
        with tempfile.TemporaryDirectory(prefix=".bench-", dir=options.folder) as name:
            run_results = asyncio.run(run_benchmark(_parse_sizes(options), Path(name)))
    except KeyboardInterrupt:
        print_line("Interrupted. No results were written.")
        return 130
    print_line("")
    print_line(report.render_text(run_results))
    if not (run_results.empty.books.hold and run_results.grown.books.hold):
        print_line("Verification of the ledger failed. No results were written.")
        return 1
    for path in report.write_report(run_results, options.root):
        print_line(f"Wrote {path}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
