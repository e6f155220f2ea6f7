"""`tapgate archive`: move old months of the ledger to files."""

import asyncio
import codecs
import sys
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from tapgate.cli import operator
from tapgate.cli.backup import discard_stdout
from tapgate.core.settings import Settings
from tapgate.core.vault import Vault
from tapgate.events.audit.trail import AuditTrail
from tapgate.ledger.archive.archive_job import ArchiveJob
from tapgate.ledger.archive.archived import ArchivedMonth, load_archive
from tapgate.ledger.maintenance import partition_job
from tapgate.runtime.exclusive_job import AlreadyRunningError
from tapgate.runtime.progress import LineProgress
from tapgate.runtime.store import StoreError
from tapgate.runtime.store.archive_files import has_tables, read_rows
from tapgate.runtime.store.database import Database
from tapgate.runtime.store.partitions import get_month_start
from tapgate.runtime.store.transaction import Transaction
from tapgate.server import supervisor
from tapgate.server.gateway_services import open_services

_trail = AuditTrail("ledger")


def archive_months(settings: Settings, folder: Path, *, keep: int, drop: bool) -> None:
    """Archive all months except the current one and the `keep` months before it."""

    async def run(url: str) -> None:
        console, count = Console(highlight=False, soft_wrap=True), 0
        async with _open_job(settings, url) as (job, now):
            before = get_month_start(now, -keep)
            async for line in job.run(before, folder, drop=drop):
                console.print(line, markup=False)
                count += 1
            if not count:
                console.print(f"Nothing to do: no month before {before:%Y-%m} is in the ledger.")

    _run(settings, run)


def restore_month(settings: Settings, folder: Path) -> None:
    """Move the last archived month back to the ledger."""

    async def run(url: str) -> None:
        async with _open_job(settings, url) as (job, _):
            print(f"{await job.restore(folder)}: restored")

    _run(settings, run)


def print_rows(settings: Settings, path: Path) -> None:
    """Write a file's CSV to standard output."""
    try:
        for text in codecs.iterdecode(read_rows(path, Vault(settings.secret_key)), "utf-8"):
            sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:  # the reader, such as `head`, has seen enough
        discard_stdout()


def print_archive(settings: Settings) -> None:
    async def run(url: str) -> None:
        database = await Database.connect(url)
        try:
            async with database.dedicated_connection() as connection:
                archive = await load_archive(connection)
                states = [await _describe_state(connection, month) for month in archive.months]
        finally:
            await database.close()
        if not archive.months:
            print("No month is archived.")
            return
        table = Table("Month", "Transactions", "Entries", "Archived", "By", "State", box=None)
        for month, state in zip(archive.months, states, strict=True):
            table.add_row(
                month.name,
                f"{month.transactions:,}",
                f"{month.entries:,}",
                f"{month.archived_at:%Y-%m-%d}",
                month.archived_by,
                state,
            )
        Console(highlight=False, soft_wrap=True).print(table)

    _run(settings, run)


async def _describe_state(connection: Any, month: ArchivedMonth) -> str:
    if month.files is None:
        return "incomplete: run `tapgate archive` again"
    if month.dropped_at is not None:
        return "exported, tables dropped"
    # A backup has the records of archived months, but not their tables.
    if await has_tables(connection, month.name):
        return "exported, tables kept"
    return "exported, tables not in this database"


@asynccontextmanager
async def _open_job(settings: Settings, url: str) -> AsyncIterator[tuple[ArchiveJob, datetime]]:
    actor = operator.build_actor()
    progress = LineProgress("Exporting", sys.stderr)

    async def audit(tx: Transaction, action: str, month: str) -> None:
        await _trail.record(tx, actor, None, action, reason=month)

    async with open_services(settings, url) as services:
        try:
            async with partition_job.acquire_connection(services.database) as connection:
                job = ArchiveJob(
                    connection,
                    Vault(settings.secret_key),
                    clock=services.clock,
                    new_id=services.new_id,
                    actor_id=str(actor.record["id"]),
                    audit=audit,
                    report=lambda name, size: progress.report(f"{name}, {size / 1e6:,.0f} MB"),
                )
                yield job, services.clock()
        except AlreadyRunningError:
            raise StoreError(
                "another process is changing partitions. Run the command again later"
            ) from None


def _run(settings: Settings, run: Callable[[str], Coroutine[Any, Any, None]]) -> None:
    with supervisor.provide_database_url(settings) as url:
        asyncio.run(run(url))
