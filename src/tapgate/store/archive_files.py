"""Files of archived months: CSV as written by PostgreSQL, compressed, with a manifest.

The files of March 2026 are `transactions_2026_03.csv.gz`, `entries_2026_03.csv.gz` and the manifest
`2026_03.json`. It is written last and has the rows, columns and SHA-256 digests of both files.
"""

import gzip
import hashlib
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from tapgate.store import StoreError
from tapgate.store.backup import COPY_SETTINGS
from tapgate.store.backup_file import open_new_file
from tapgate.store.partitions import TABLES, PartitionedTable

_CHUNK_BYTES: Final = 1 << 20
_COMPRESSION_LEVEL: Final = 6
_SELECT_COLUMNS: Final = """
    SELECT attname, atttypid, atttypmod, attnotnull, row_number() OVER (ORDER BY attnum)
    FROM pg_attribute WHERE attrelid = {} AND attnum > 0 AND NOT attisdropped"""
_SELECT_CHECKS: Final = """
    SELECT conname, pg_get_constraintdef(oid) FROM pg_constraint
    WHERE conrelid = {} AND contype = 'c'"""
#: A month may be hundreds of gigabytes. Replaces the timeout of the connection.
_COPY_TIMEOUT_SECONDS: Final = 7 * 86_400.0
_NO_SERVER_LIMIT: Final = "SET LOCAL statement_timeout = 0"

#: Receives the name of a file and the number of bytes written before compression.
ProgressCallback = Callable[[str, int], None]


class FileRecord(msgspec.Struct, frozen=True):
    rows: int
    columns: list[str]
    bytes: int
    sha256: str


class ArchiveManifest(msgspec.Struct, frozen=True):
    month: str
    first_id: int
    end_id: int
    files: dict[str, FileRecord]
    format: int = 1


def get_file_name(table: str) -> str:
    return f"{table}.csv.gz"


async def export_tables(
    connection: Any,
    folder: Path,
    manifest: ArchiveManifest,
    tables: Mapping[str, str],
    report: ProgressCallback,
) -> ArchiveManifest:
    """Write the tables (name to order) of a month and its manifest, and return the manifest."""
    _create_folder(folder)
    await connection.execute(COPY_SETTINGS)
    files = {}
    for name, order in tables.items():
        files[get_file_name(name)] = await _export_table(connection, folder, name, order, report)
    manifest = msgspec.structs.replace(manifest, files=files)
    with open_new_file(folder / f"{manifest.month}.json", replace=True) as file:
        file.write(msgspec.json.format(msgspec.json.encode(manifest), indent=2) + b"\n")
    return manifest


def _create_folder(folder: Path) -> None:
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(f"{folder} cannot be created: {error.strerror}") from error


async def _export_table(
    connection: Any, folder: Path, name: str, order: str, report: ProgressCallback
) -> FileRecord:
    path = folder / get_file_name(name)
    written = 0
    query = f"SELECT * FROM archive.{name} ORDER BY {order}"
    with (
        open_new_file(path, replace=True) as file,
        gzip.GzipFile("", "wb", _COMPRESSION_LEVEL, file, mtime=0) as compressed,
    ):

        async def write(data: bytes) -> None:
            nonlocal written
            compressed.write(data)
            written += len(data)
            report(path.name, written)

        async with connection.transaction(readonly=True):
            await connection.execute(_NO_SERVER_LIMIT)
            status = await connection.copy_from_query(
                query, output=write, format="csv", header=True, timeout=_COPY_TIMEOUT_SECONDS
            )
    statement = await connection.prepare(query)
    columns = [attribute.name for attribute in statement.get_attributes()]
    rows = int(status.rpartition(" ")[2])
    return FileRecord(rows, columns, path.stat().st_size, compute_sha256(path))


def compute_sha256(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise StoreError(f"{path} cannot be read: {error.strerror}") from error


def read_manifest(folder: Path, month: str, digests: Mapping[str, str]) -> ArchiveManifest:
    """Return the manifest of a month after comparing its files with their recorded digests."""
    path = folder / f"{month}.json"
    try:
        manifest = msgspec.json.decode(path.read_bytes(), type=ArchiveManifest)
    except OSError as error:
        raise StoreError(f"{path} cannot be read: {error.strerror}") from error
    except msgspec.MsgspecError as error:
        raise StoreError(f"{path} is not the manifest of a month: {error}") from None
    for name, digest in digests.items():
        if compute_sha256(folder / name) != digest:
            raise StoreError(f"{folder / name} was changed: its SHA-256 digest is not {digest}")
    return manifest


async def has_tables(connection: Any, month: str) -> bool:
    """Return whether the archive still has all tables of a month."""
    names = [f"archive.{table.name}_{month}" for table in TABLES]
    return bool(
        await connection.fetchval(
            "SELECT bool_and(to_regclass(name) IS NOT NULL) FROM unnest($1::text[]) AS name", names
        )
    )


async def has_table(connection: Any, table: PartitionedTable, name: str) -> bool:
    """Return whether the archive has a table that can be a partition of `table`.

    Migrations do not change the tables of the archive.
    """
    columns, checks = [
        await connection.fetch(
            sql.format(f"to_regclass('{table.name}')")
            + " EXCEPT ALL "
            + sql.format(f"to_regclass('archive.{name}')")
        )
        for sql in (_SELECT_COLUMNS, _SELECT_CHECKS)
    ]
    extra = await connection.fetch(
        _SELECT_COLUMNS.format(f"to_regclass('archive.{name}')")
        + " EXCEPT ALL "
        + _SELECT_COLUMNS.format(f"to_regclass('{table.name}')")
    )
    return not (columns or checks or extra)


async def load_table(connection: Any, path: Path, name: str, record: FileRecord) -> None:
    """Load a file into an empty table of the archive, in the caller's database transaction."""

    async def read() -> AsyncIterator[bytes]:
        with gzip.open(path) as file:
            while data := file.read(_CHUNK_BYTES):
                yield data

    await connection.execute(_NO_SERVER_LIMIT)
    status = await connection.copy_to_table(
        name,
        schema_name="archive",
        columns=record.columns,
        source=read(),
        format="csv",
        header=True,
        timeout=_COPY_TIMEOUT_SECONDS,
    )
    if status != f"COPY {record.rows}":
        raise StoreError(f"{path} has {status.rpartition(' ')[2]} rows instead of {record.rows}")
