"""Archived month files: CSV as written by PostgreSQL, compressed and sealed, with a manifest.

The files for March 2026 are `transactions_2026_03.csv.gz.sealed`, `entries_2026_03.csv.gz.sealed`
and the manifest `2026_03.json`. The manifest is written last and has the rows, columns and SHA-256
digests of both files. Files in the first format are not sealed and end in `.csv.gz`.
"""

import gzip
import hashlib
import zlib
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from tapgate.core.vault import Vault
from tapgate.runtime.store import StoreError
from tapgate.runtime.store.backup import COPY_SETTINGS
from tapgate.runtime.store.backup_file import open_new_file
from tapgate.runtime.store.partitions import TABLES, PartitionedTable
from tapgate.runtime.store.sealed_file import ARCHIVE, SealedWriter, is_sealed, read_sealed

_CHUNK_BYTES: Final = 1 << 20
_COMPRESSION_LEVEL: Final = 6
_GZIP_WINDOW_BITS: Final = 31
_SELECT_COLUMNS: Final = """
    SELECT attname, atttypid, atttypmod, attnotnull, row_number() OVER (ORDER BY attnum)
    FROM pg_attribute WHERE attrelid = {} AND attnum > 0 AND NOT attisdropped"""
_SELECT_CHECKS: Final = """
    SELECT conname, pg_get_constraintdef(oid) FROM pg_constraint
    WHERE conrelid = {} AND contype = 'c'"""
#: A month may be hundreds of gigabytes. Replaces the connection timeout.
_COPY_TIMEOUT_SECONDS: Final = 7 * 86_400.0
_NO_SERVER_LIMIT: Final = "SET LOCAL statement_timeout = 0"

#: Receives a file name and the number of bytes written before compression.
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
    format: int = 2


def get_file_name(table: str) -> str:
    return f"{table}.csv.gz.sealed"


async def export_tables(
    connection: Any,
    vault: Vault,
    folder: Path,
    manifest: ArchiveManifest,
    tables: Mapping[str, str],
    report: ProgressCallback,
) -> ArchiveManifest:
    """Write a month's tables (name to order) and manifest, and return the manifest."""
    _create_folder(folder)
    await connection.execute(COPY_SETTINGS)
    files = {}
    for name, order in tables.items():
        path = folder / get_file_name(name)
        query = f"SELECT * FROM archive.{name} ORDER BY {order}"
        files[path.name] = await _export_rows(connection, vault, path, query, report)
    manifest = msgspec.structs.replace(manifest, files=files)
    with open_new_file(folder / f"{manifest.month}.json", replace=True) as file:
        file.write(msgspec.json.format(msgspec.json.encode(manifest), indent=2) + b"\n")
    return manifest


def _create_folder(folder: Path) -> None:
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(f"{folder} cannot be created: {error.strerror}") from error


async def _export_rows(
    connection: Any, vault: Vault, path: Path, query: str, report: ProgressCallback
) -> FileRecord:
    written = 0
    with open_new_file(path, replace=True) as file:
        sealed = SealedWriter(file, vault, ARCHIVE)
        compressor = zlib.compressobj(_COMPRESSION_LEVEL, wbits=_GZIP_WINDOW_BITS)

        async def write(data: bytes) -> None:
            nonlocal written
            sealed.write(compressor.compress(data))
            written += len(data)
            report(path.name, written)

        async with connection.transaction(readonly=True):
            await connection.execute(_NO_SERVER_LIMIT)
            status = await connection.copy_from_query(
                query, output=write, format="csv", header=True, timeout=_COPY_TIMEOUT_SECONDS
            )
        sealed.write(compressor.flush())
        sealed.finish()
    statement = await connection.prepare(query)
    columns = [attribute.name for attribute in statement.get_attributes()]
    rows = int(status.rpartition(" ")[2])
    return FileRecord(rows, columns, sealed.bytes_written, compute_sha256(path))


def compute_sha256(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise StoreError(f"{path} cannot be read: {error.strerror}") from error


def read_manifest(folder: Path, month: str, digests: Mapping[str, str]) -> ArchiveManifest:
    """Return a month's manifest after comparing its files with their recorded digests."""
    path = folder / f"{month}.json"
    try:
        manifest = msgspec.json.decode(path.read_bytes(), type=ArchiveManifest)
    except OSError as error:
        raise StoreError(f"{path} cannot be read: {error.strerror}") from error
    except msgspec.MsgspecError as error:
        raise StoreError(f"{path} is not a month's manifest: {error}") from None
    if manifest.files.keys() != digests.keys():
        raise StoreError(f"{path} was changed: it does not name the files of {month}")
    for name, digest in digests.items():
        if compute_sha256(folder / name) != digest:
            raise StoreError(f"{folder / name} was changed: its SHA-256 digest is not {digest}")
    return manifest


async def has_tables(connection: Any, month: str) -> bool:
    """Return whether the archive still has all of a month's tables."""
    names = [f"archive.{table.name}_{month}" for table in TABLES]
    return bool(
        await connection.fetchval(
            "SELECT bool_and(to_regclass(name) IS NOT NULL) FROM unnest($1::text[]) AS name", names
        )
    )


async def has_table(connection: Any, table: PartitionedTable, name: str) -> bool:
    """Return whether the archive has a table that can be a partition of `table`.

    Migrations do not change archive tables.
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


def find_file_name(manifest: ArchiveManifest, table: str) -> str:
    """Return a table's file name, which depends on the release that wrote it."""
    return next(name for name in manifest.files if name.partition(".")[0] == table)


def read_rows(path: Path, vault: Vault) -> Iterator[bytes]:
    """Yield a file's CSV, sealed or in the first format, in pieces of bounded size.

    A sealed file is read twice, first to authenticate all of it.
    """
    try:
        with path.open("rb") as file:
            if not is_sealed(file, ARCHIVE):
                file.seek(0)
                with gzip.open(file) as plain:
                    yield from iter(lambda: plain.read(_CHUNK_BYTES), b"")
                return
            for _ in read_sealed(file, vault, ARCHIVE):
                pass
            yield from filter(None, _decompress(read_sealed(file, vault, ARCHIVE)))
    except StoreError as error:
        raise StoreError(f"{path} cannot be read: {error}") from None
    except (OSError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or error
        raise StoreError(f"{path} cannot be read: {reason}") from error


def _decompress(chunks: Iterator[bytes]) -> Iterator[bytes]:
    decompressor = zlib.decompressobj(_GZIP_WINDOW_BITS)
    for chunk in chunks:
        rest = chunk
        while rest:
            yield decompressor.decompress(rest, _CHUNK_BYTES)
            rest = decompressor.unconsumed_tail
    yield decompressor.flush()


async def load_table(
    connection: Any, vault: Vault, path: Path, name: str, record: FileRecord
) -> None:
    """Load a file into an empty archive table, in the caller's database transaction."""

    async def read() -> AsyncIterator[bytes]:
        for data in read_rows(path, vault):
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
