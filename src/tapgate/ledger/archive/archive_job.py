"""The steps of `tapgate archive`, which continue where an earlier run ended."""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

from tapgate.core.id_generator import IdGenerator
from tapgate.core.vault import Vault
from tapgate.ledger.archive import archive_steps as steps
from tapgate.ledger.archive.archive_checks import require_divided
from tapgate.ledger.archive.archive_steps import ARCHIVE_SCHEMA
from tapgate.ledger.archive.archived import Archive, ArchivedMonth, is_authentic, load_archive
from tapgate.runtime.store import StoreError
from tapgate.runtime.store.archive_files import (
    ArchiveManifest,
    ProgressCallback,
    export_tables,
    find_file_name,
    has_table,
    load_table,
    read_manifest,
)
from tapgate.runtime.store.partitions import TABLES, PartitionedTable, create_detached
from tapgate.runtime.store.transaction import Transaction
from tapgate_client.clock import Clock

#: Adds an audit entry with an action and the month's name.
AuditCallback = Callable[[Transaction, str, str], Awaitable[None]]

_ORDERS = {"transactions": "id", "entries": "transaction_id, position"}


class ArchiveJob:
    """Archives, exports, drops and restores months on one connection."""

    def __init__(
        self,
        connection: Any,
        vault: Vault,
        *,
        clock: Clock,
        new_id: IdGenerator,
        actor_id: str,
        audit: AuditCallback,
        report: ProgressCallback,
    ) -> None:
        self._connection = connection
        self._vault = vault
        self._clock = clock
        self._new_id = new_id
        self._actor_id = actor_id
        self._audit = audit
        self._report = report

    @asynccontextmanager
    async def _open_transaction(self) -> AsyncIterator[Transaction]:
        async with self._connection.transaction():
            yield Transaction(self._connection, self._clock, self._new_id)

    async def run(self, before: datetime, folder: Path, *, drop: bool) -> AsyncIterator[str]:
        """Archive the months before a time, and yield what was done."""
        for month in (await self._load_archive()).months:
            async for line in self._complete(month, folder, drop=drop):
                yield line
        for new in await steps.list_months(self._connection, before):
            await steps.archive_month(
                self._connection,
                self._vault,
                new,
                self._open_transaction,
                lambda tx, label: self._audit(tx, "archived", label),
                self._actor_id,
            )
            month = (await self._load_archive()).months[-1]
            yield f"{month.name}: {month.transactions:,} transactions archived"
            async for line in self._complete(month, folder, drop=drop):
                yield line

    async def _load_archive(self) -> Archive:
        archive = await load_archive(self._connection)
        if not is_authentic(self._vault, archive):
            raise StoreError(
                "the records of archived months were changed. Run `tapgate verify --all`"
            )
        return archive

    async def _complete(
        self, month: ArchivedMonth, folder: Path, *, drop: bool
    ) -> AsyncIterator[str]:
        """Run the remaining steps after a month's entries were detached."""
        if not month.is_detached:
            await steps.finish_month(self._connection, month, self._open_transaction)
            # Files from an interrupted restore are out of date: refunds may have followed.
            month = month._replace(is_detached=True, files=None)
        if month.files is None:
            orders = {f"{table}_{month.name}": order for table, order in _ORDERS.items()}
            manifest = await export_tables(
                self._connection,
                self._vault,
                folder,
                ArchiveManifest(month.name, month.first_id, month.end_id, {}),
                orders,
                self._report,
            )
            files = {name: record.sha256 for name, record in manifest.files.items()}
            await self._connection.execute(
                "UPDATE archived_months SET files = $2 WHERE end_id = $1", month.end_id, files
            )
            month = month._replace(files=files)
            yield f"{month.name}: exported to {folder}"
        if drop and month.dropped_at is None:
            await self._drop(month, folder)
            yield f"{month.name}: tables dropped"

    async def _drop(self, month: ArchivedMonth, folder: Path) -> None:
        read_manifest(folder, month.name, _require_files(month))
        async with self._open_transaction() as tx:
            for table in TABLES:
                # An installation that was restored from a backup does not have the tables.
                await tx.execute(f"DROP TABLE IF EXISTS {ARCHIVE_SCHEMA}.{table.name}_{month.name}")
            is_exported = await tx.fetchval(
                """UPDATE archived_months SET dropped_at = $2
                   WHERE end_id = $1 AND is_detached AND files IS NOT NULL RETURNING true""",
                month.end_id,
                tx.now(),
            )
            if not is_exported:
                raise StoreError(f"{month.name} is not exported. Run the command again")
            await self._audit(tx, "archive_dropped", month.name)

    async def restore(self, folder: Path) -> str:
        """Move the last archived month back to the ledger, and return its name."""
        archive = await self._load_archive()
        if not archive.months:
            raise StoreError("no month is archived")
        month = archive.months[-1]
        await require_divided(self._connection, month.end_id)
        # An interrupted restore has attached the transactions already.
        tables = TABLES if month.is_detached else (steps.ENTRIES,)
        missing = [
            table
            for table in tables
            if not await has_table(self._connection, table, f"{table.name}_{month.name}")
        ]
        if missing:
            await self._load_files(month, folder, missing)
        await steps.restore_month(
            self._connection,
            self._vault,
            archive,
            self._open_transaction,
            lambda tx, label: self._audit(tx, "archive_restored", label),
        )
        return month.name

    async def _load_files(
        self, month: ArchivedMonth, folder: Path, tables: Sequence[PartitionedTable]
    ) -> None:
        """Create a month's tables from its files, all or nothing."""
        manifest = read_manifest(folder, month.name, _require_files(month))
        async with self._open_transaction() as tx:
            await tx.execute(f"CREATE SCHEMA IF NOT EXISTS {ARCHIVE_SCHEMA}")
            for table in tables:
                name = f"{table.name}_{month.name}"
                await tx.execute(f"DROP TABLE IF EXISTS {ARCHIVE_SCHEMA}.{name}")
                await create_detached(tx, table, name)
                await tx.execute(f"ALTER TABLE {name} SET SCHEMA {ARCHIVE_SCHEMA}")
                file_name = find_file_name(manifest, name)
                await load_table(
                    tx, self._vault, folder / file_name, name, manifest.files[file_name]
                )
            await tx.execute(
                "UPDATE archived_months SET dropped_at = NULL WHERE end_id = $1", month.end_id
            )


def _require_files(month: ArchivedMonth) -> dict[str, str]:
    if month.files is None:
        raise StoreError(f"{month.name} is not exported. Run `tapgate archive --to <folder>` first")
    return month.files
