"""Bytes that a payment takes in the database, by table.

    python -m bench.storage

Payments with a webhook, a receipt to the payer and a logged request run in phases. After each,
everything is delivered and the tables are vacuumed, as autovacuum does. *grown* is by how much a
table has grown, with the space that replaced rows leave behind and later rows take again.
*compact* is the same without that space and without half-filled pages.
"""

import argparse
import asyncio
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

import asyncpg

from bench.payments import dataset, receiver
from bench.payments.installation import run_installation
from bench.payments.phase_runner import PhaseRunner, create_payment_builder
from tapgate.core.settings import load_settings
from tapgate.server.gateway_services import open_services

_ROOT: Final = Path(__file__).parents[1]
_CONNECTIONS: Final = 64
_PROCESSORS: Final = 10
#: Tables with their indexes, TOAST tables and partitions, except those without growth.
_SIZES: Final = """
    SELECT coalesce(parent.relname, class.relname) AS name,
           sum(pg_total_relation_size(class.oid))::bigint AS bytes
    FROM pg_class class
    LEFT JOIN pg_inherits ON inhrelid = class.oid
    LEFT JOIN pg_class parent ON parent.oid = inhparent
    WHERE class.relkind = 'r' AND class.oid >= 16384
    GROUP BY 1"""
#: Below this, a table's growth is the page that it happened to need.
_MIN_BYTES: Final = 1.0


class Growth(NamedTuple):
    """Bytes per payment."""

    grown: float
    compact: float


async def measure(
    folder: Path, *, phases: int, seconds: float, cards: int
) -> tuple[int, dict[str, Growth]]:
    """Return the number of payments, and the growth by table, the largest first."""
    async with (
        receiver.run_receiver() as messenger_url,
        run_installation(
            folder,
            workers=2,
            settings={
                "TAPGATE_MESSENGER_URL": messenger_url,
                "TAPGATE_RECEIPTS": "all",
                "TAPGATE_REQUEST_LOG_BODIES": "off",
            },
        ) as installation,
    ):
        connection = await asyncpg.connect(installation.database_url)
        try:
            settings = load_settings(installation.environ)
            async with open_services(settings, installation.database_url) as services:
                bench_data = await dataset.build(services, cards=cards, processors=_PROCESSORS)
                runner = PhaseRunner(installation, bench_data, connection)
                runner.phases_left = phases
                pay = create_payment_builder(bench_data)
                first_count, first = await _read_sizes(connection, "VACUUM FULL")
                async with receiver.receive_webhooks(services):
                    for _ in range(phases):
                        await runner.run(
                            "payments", pay, round_=1, connections=_CONNECTIONS, seconds=seconds
                        )
                        await runner.wait_for_deliveries()
                        count, grown = await _read_sizes(connection, "VACUUM")
                _, compact = await _read_sizes(connection, "VACUUM FULL")
        finally:
            await connection.close()
    payments = count - first_count
    growth = {
        name: Growth(*((sizes[name] - first.get(name, 0)) / payments for sizes in (grown, compact)))
        for name in compact
    }
    return payments, dict(sorted(growth.items(), key=lambda item: -item[1].compact))


async def _read_sizes(connection: asyncpg.Connection, vacuum: str) -> tuple[int, dict[str, int]]:
    """Return the number of transactions, and each table's size."""
    await connection.execute(vacuum)
    count = await connection.fetchval("SELECT count(*) FROM transactions")
    return count, {row["name"]: row["bytes"] for row in await connection.fetch(_SIZES)}


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.storage", description=__doc__)
    parser.add_argument("--seconds", type=float, default=5.0, help="duration of a phase")
    parser.add_argument("--phases", type=int, default=3, help="number of phases")
    parser.add_argument("--cards", type=int, default=10_000, help="number of cards")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix=".bench-", dir=_ROOT) as name:
        payments, growth = asyncio.run(
            measure(
                Path(name),
                phases=max(1, options.phases),
                seconds=options.seconds,
                cards=options.cards,
            )
        )
    total = Growth(*map(sum, zip(*growth.values(), strict=True)))
    print(f"{payments:,} payments, bytes for each{'grown':>16}{'compact':>10}")
    for table, size in {**growth, "total": total}.items():
        if size.compact >= _MIN_BYTES:
            print(f"{table:<32}{size.grown:>16,.0f}{size.compact:>10,.0f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
