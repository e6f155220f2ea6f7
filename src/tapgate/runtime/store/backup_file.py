"""Backup file format: the manifest, followed by each table's rows in COPY format.

A sealed file contains a compressed record stream. A record is a four-byte length followed by
that many bytes. The first record is the manifest. Each table is a record with its name and columns,
then records of COPY data, then an empty record.
"""

import contextlib
import os
import tempfile
import zlib
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import BinaryIO, NamedTuple

import msgspec

from tapgate.core.vault import Vault
from tapgate.runtime.store import StoreError
from tapgate.runtime.store.sealed_file import BACKUP, CHUNK_BYTES, SealedWriter, read_sealed

FORMAT_VERSION = 2
_LENGTH_BYTES = 4
_MAX_RECORD_BYTES = 1 << 20
_ROWS_RECORD_BYTES = 1 << 18
#: Higher levels take CPU time from payments and barely shrink the file.
_COMPRESSION_LEVEL = 1

#: Receives the percentage read so far.
ProgressCallback = Callable[[int], None]


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """Backup description, used to verify a restore.

    Tables in the gateway's schema have their plain name, because that schema may have a
    different name in the target database. Messenger tables are named `messenger.name`.
    """

    tapgate: str
    postgres: str
    #: Everything acknowledged before this time is in the backup.
    moment: datetime
    #: Migration name to checksum.
    migrations: dict[str, str]
    #: Currency and key fingerprint are None if Tapgate has never started on this database.
    currency: str | None
    secret_fingerprint: str | None
    #: Table to number of rows.
    tables: dict[str, int]
    #: Control total label, such as the sum of all balances, to its value.
    figures: dict[str, str]
    #: Sequence to its last value and whether that value has been used (`is_called`).
    sequences: dict[str, tuple[int, bool]] = {}
    #: ID with which the ledger's first month begins. Older IDs are in the first partition. None if
    #: the ledger has no months yet, and in backups from Tapgate 1.x.
    first_month_id: int | None = None
    format: int = FORMAT_VERSION


class _ManifestFormat(msgspec.Struct):
    format: int


class TableHeader(msgspec.Struct, frozen=True):
    table: str
    columns: list[str]


class TableRows(NamedTuple):
    table: str
    columns: Sequence[str]
    rows: AsyncIterator[bytes]


class BackupWriter:
    def __init__(self, file: BinaryIO, vault: Vault) -> None:
        self._sealed = SealedWriter(file, vault, BACKUP)
        self._compressor = zlib.compressobj(_COMPRESSION_LEVEL)
        self._rows = bytearray()

    @property
    def bytes_written(self) -> int:
        return self._sealed.bytes_written

    def write_manifest(self, manifest: Manifest) -> None:
        self._write_record(msgspec.json.encode(manifest))

    def begin_table(self, table: str, columns: list[str]) -> None:
        self._write_record(msgspec.json.encode(TableHeader(table, columns)))

    def write_rows(self, data: bytes) -> None:
        """Append COPY data, which may end in mid-row."""
        self._rows += data
        while len(self._rows) >= _ROWS_RECORD_BYTES:
            self._write_record(bytes(self._rows[:_ROWS_RECORD_BYTES]))
            del self._rows[:_ROWS_RECORD_BYTES]

    def end_table(self) -> None:
        if self._rows:
            self._write_record(bytes(self._rows))
            self._rows.clear()
        self._write_record(b"")

    def finish(self) -> None:
        self._sealed.write(self._compressor.flush())
        self._sealed.finish()

    def _write_record(self, content: bytes) -> None:
        if len(content) > _MAX_RECORD_BYTES:
            raise StoreError("the manifest or a table header is too long for a backup")
        header = len(content).to_bytes(_LENGTH_BYTES, "big")
        self._sealed.write(self._compressor.compress(header + content))


class BackupReader:
    """Backup file reader.

    The file is read twice: first to authenticate all of it before anything is parsed, then to parse
    it. The second pass authenticates every chunk again, because the file may have changed.
    """

    def __init__(self, file: BinaryIO, vault: Vault, report: ProgressCallback) -> None:
        self._file, self._size = file, file.seek(0, os.SEEK_END)
        for _ in read_sealed(file, vault, BACKUP):
            report(self.percent)
        self._records = _RecordReader(read_sealed(file, vault, BACKUP))
        self.manifest = _decode_manifest(self._records.read())

    @property
    def percent(self) -> int:
        """Percentage read so far."""
        return 100 * self._file.tell() // self._size

    async def iter_tables(self) -> AsyncGenerator[TableRows, None]:
        """Yield the tables. Consume each table's rows before advancing to the next."""
        for _ in self.manifest.tables:
            try:
                header = msgspec.json.decode(self._records.read(), type=TableHeader)
            except msgspec.MsgspecError:
                raise _build_unreadable_error() from None
            yield TableRows(header.table, header.columns, self._iter_rows())
        self._records.require_end()

    async def _iter_rows(self) -> AsyncIterator[bytes]:
        while data := self._records.read():
            yield data


def _decode_manifest(data: bytes) -> Manifest:
    try:
        if msgspec.json.decode(data, type=_ManifestFormat).format > FORMAT_VERSION:
            raise StoreError("it was created by a newer version of Tapgate")
        return msgspec.json.decode(data, type=Manifest)
    except msgspec.MsgspecError:
        raise _build_unreadable_error() from None


def _build_unreadable_error() -> StoreError:
    return StoreError("its contents cannot be read")


class _RecordReader:
    """Reader for the records in a compressed stream, with bounded memory."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks = chunks
        self._decompressor = zlib.decompressobj()
        self._buffer = bytearray()

    def read(self) -> bytes:
        length = int.from_bytes(self._read_bytes(_LENGTH_BYTES), "big")
        if length > _MAX_RECORD_BYTES:
            raise _build_unreadable_error()
        return self._read_bytes(length)

    def require_end(self) -> None:
        """Require that the stream is complete and that no data follows the last record."""
        while self._fill():
            pass
        if self._buffer or self._decompressor.unused_data or not self._decompressor.eof:
            raise _build_unreadable_error()

    def _read_bytes(self, size: int) -> bytes:
        while len(self._buffer) < size:
            if not self._fill():
                raise _build_unreadable_error()
        data = bytes(self._buffer[:size])
        del self._buffer[:size]
        return data

    def _fill(self) -> bool:
        compressed = self._decompressor.unconsumed_tail or next(self._chunks, b"")
        try:
            if compressed:
                self._buffer += self._decompressor.decompress(compressed, CHUNK_BYTES)
                return True
            rest = self._decompressor.flush()
        except zlib.error:
            raise _build_unreadable_error() from None
        self._buffer += rest
        return bool(rest)


@contextlib.contextmanager
def open_new_file(path: Path, *, replace: bool) -> Iterator[BinaryIO]:
    """Create a file, private to its owner, that appears at `path` only once synced to disk."""
    if not replace and path.exists():
        raise _build_file_exists_error(path)
    try:
        descriptor, temporary_name = tempfile.mkstemp(".unfinished", f".{path.name}.", path.parent)
        try:
            with os.fdopen(descriptor, "wb") as file:
                yield file
                file.flush()
                os.fsync(descriptor)
            _move_into_place(Path(temporary_name), path, replace=replace)
        finally:
            Path(temporary_name).unlink(missing_ok=True)
    except OSError as error:
        if error.errno is None or isinstance(error, ConnectionError):
            raise  # from the connection whose rows are written, not from the file
        raise StoreError(f"{path} cannot be written: {error.strerror}") from error


def _move_into_place(temporary_path: Path, path: Path, *, replace: bool) -> None:
    if replace:
        temporary_path.replace(path)
    else:
        try:
            path.hardlink_to(temporary_path)  # unlike rename, never replaces an existing file
        except FileExistsError:
            raise _build_file_exists_error(path) from None
        except OSError:  # the file system does not support hard links
            temporary_path.rename(path)
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _build_file_exists_error(path: Path) -> StoreError:
    return StoreError(f"{path} already exists. Use --force to replace it")
