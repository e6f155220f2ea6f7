"""Benchmark of ledger batches in which every payment is to the same merchant.

    python -m bench.batches

Prints for each batch size how long each batch phase takes, how long the row of the merchant's
account is locked at most, and the CPU time of PostgreSQL, WAL and network traffic per
payment. The ledger runs in this process, without HTTP. Phases are averaged over the fastest quarter
of batches, so other load on the machine has little effect.
"""

import argparse
import asyncio
import contextlib
import statistics
import tempfile
from collections.abc import AsyncIterator, Sequence
from itertools import count
from pathlib import Path
from typing import Final, NamedTuple

from bench.payments import dataset
from bench.payments.installation import Installation, run_installation
from tapgate.core.settings import load_settings
from tapgate.http.api.services import Services
from tapgate.ledger import chart, commands
from tapgate.ledger.commands import Command, ScopedIdempotencyKey
from tapgate.ledger.engine.metrics import BatchReport
from tapgate.server.gateway_services import open_services

_ROOT = Path(__file__).parents[1]
_SIZES: Final = (1, 8, 32, 64, 125, 250, 500)
_AMOUNT: Final = 1_00


class Traffic:
    """TCP relay in front of PostgreSQL's socket that counts bytes and round trips."""

    def __init__(self, socket_path: Path) -> None:
        self._socket_path = socket_path
        self._is_waiting = False
        self.sent = self.received = self.round_trips = 0

    @contextlib.asynccontextmanager
    async def listen(self) -> AsyncIterator[int]:
        server = await asyncio.start_server(self._relay, "127.0.0.1", 0)
        async with server:
            yield server.sockets[0].getsockname()[1]

    async def _relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        server_reader, server_writer = await asyncio.open_unix_connection(self._socket_path)
        await asyncio.gather(
            self._copy(reader, server_writer, is_sent=True),
            self._copy(server_reader, writer, is_sent=False),
        )

    async def _copy(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, is_sent: bool
    ) -> None:
        while data := await reader.read(1 << 16):
            if is_sent:
                self.sent += len(data)
                self.round_trips += not self._is_waiting
            else:
                self.received += len(data)
            self._is_waiting = is_sent
            writer.write(data)
        writer.close()


class Batch(NamedTuple):
    """Durations of one batch in milliseconds. The merchant's row is locked during the last two.

    `write` is one statement, which writes all other rows before it locks the merchant's.
    """

    load: float
    decide: float
    write: float
    commit: float

    @property
    def locked(self) -> float:
        return self.write + self.commit


class PaymentSource:
    """Builds payments by all cards in turn to one merchant."""

    def __init__(self, data: dataset.Dataset, processor_id: int) -> None:
        self._cards = data.cards
        self._payee = commands.processor_party(processor_id)
        self._numbers = count()

    def build(self, size: int) -> list[Command]:
        return [self._build(next(self._numbers)) for _ in range(size)]

    def _build(self, number: int) -> Command:
        card = self._cards[number % len(self._cards)]
        return Command(
            type=chart.POS_PAYMENT,
            channel="pos",
            payer=commands.card_party(card.serial),
            payee=self._payee,
            amount=_AMOUNT,
            payer_pin=card.pin,
            pin_policy=commands.PIN_POLICIES[chart.POS_PAYMENT],
            idempotency_key=ScopedIdempotencyKey("bench", f"payment-{number}", b"\0" * 32),
        )


class Bench(NamedTuple):
    services: Services
    relayed_services: Services  # whose database connections the relay counts
    installation: Installation
    source: PaymentSource
    traffic: Traffic

    async def measure(self, size: int, payments: int) -> str:
        """Return a row of the table, for batches of one size."""
        batches = [self.source.build(size) for _ in range(max(8, payments // size))]
        total = size * len(batches)
        reports: list[BatchReport] = []
        await _submit(self.services, self.source.build(size))  # warm-up
        before = self.installation.get_postgres_seconds(), await self._get_wal_position()
        self.services.ledger.on_batch = reports.append
        for batch in batches:
            await _submit(self.services, batch)
        cpu = (self.installation.get_postgres_seconds() - before[0]) / total * 1e6
        wal = (await self._get_wal_position() - before[1]) / total
        timings = sorted((report.timing for report in reports if report.timing), key=sum)
        fastest = timings[: max(1, len(timings) // 4)]
        phases = Batch(*(statistics.median(phase) * 1000 for phase in zip(*fastest, strict=True)))
        cells = [f"{size:,}", *(f"{value:.2f}" for value in (*phases, phases.locked))]
        cells.append(f"{size / phases.locked * 1000:,.0f}")
        cells += [f"{value:,.0f}" for value in (cpu, wal, *await self._measure_traffic(size))]
        return f"| {' | '.join(cells)} |"

    async def _measure_traffic(self, size: int) -> tuple[float, float, int]:
        """Return the bytes sent and received per payment, and the round trips per batch."""
        await _submit(self.relayed_services, self.source.build(size))  # prepares the statements
        traffic = self.traffic
        before = traffic.sent, traffic.received, traffic.round_trips
        await _submit(self.relayed_services, self.source.build(size))
        return (
            (traffic.sent - before[0]) / size,
            (traffic.received - before[1]) / size,
            traffic.round_trips - before[2],
        )

    async def _get_wal_position(self) -> int:
        position = "SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::bigint"
        return int(await self.services.database.fetchval(position))


async def _submit(services: Services, batch: Sequence[Command]) -> None:
    outcomes = await asyncio.gather(*(services.ledger.enqueue(command) for command in batch))
    for outcome in outcomes:
        outcome.require_accepted()


async def run_benchmark(folder: Path, options: argparse.Namespace) -> None:
    async with contextlib.AsyncExitStack() as stack:
        installation = await stack.enter_async_context(run_installation(folder, workers=1))
        settings, url = load_settings(installation.environ), installation.database_url
        traffic = Traffic(Path(url.partition("host=")[2], ".s.PGSQL.5432"))
        port = await stack.enter_async_context(traffic.listen())
        relayed_url = f"postgresql://postgres@127.0.0.1:{port}/tapgate"
        services = await stack.enter_async_context(open_services(settings, url))
        relayed_services = await stack.enter_async_context(open_services(settings, relayed_url))
        data = await dataset.build(services, cards=options.cards, processors=1)
        processor_id = await services.database.fetchval("SELECT id FROM processors")
        source = PaymentSource(data, processor_id)
        bench = Bench(services, relayed_services, installation, source, traffic)
        print(
            "| Batch | load | decide | write | commit | locked at most"
            " | Payments/s | CPU µs | WAL bytes | sent | received | round trips |"
        )
        print(f"|{' --: |' * 12}")
        for size in options.sizes:
            print(await bench.measure(size, options.payments), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.batches", description=__doc__)
    parser.add_argument("--cards", type=int, default=4_000, help="number of cards")
    parser.add_argument("--payments", type=int, default=4_000, help="payments per batch size")
    parser.add_argument("--sizes", type=int, nargs="+", default=_SIZES, help="batch sizes")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix=".bench-", dir=_ROOT) as name:
        asyncio.run(run_benchmark(Path(name), options))


if __name__ == "__main__":
    main()
