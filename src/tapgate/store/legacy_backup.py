"""Reader for backups in format 1: a `pg_dump` archive, a manifest, and a checksum.

These files are not authenticated, so their content is untrusted. `pg_restore` converts the archive
to a script without connecting to a database. Only table and column names, rows, and sequence values
are taken from that script, as data. None of its statements is executed.
"""

import asyncio
import contextlib
import hashlib
import os
import re
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from typing import BinaryIO

import msgspec

from tapgate.store import StoreError
from tapgate.store.backup_file import (
    Manifest,
    ProgressCallback,
    TableRows,
    build_unreadable_error,
    decode_manifest,
)
from tapgate.store.postgres_programs import find_client_program

_MAGIC = b"PGDMP"
_FORMAT_VERSION = 1
_CHECKSUM_PREFIX = b"tapgate-backup sha256="
_LAST_LINE_BYTES = len(_CHECKSUM_PREFIX) + 64 + 1
_MAX_MANIFEST_BYTES = 1 << 20
_CHUNK_BYTES = 1 << 20
_MAIN_SCHEMA_PREFIX = "public."

_NAME_PATTERN = re.compile(r"[\w.]{1,200}", re.ASCII)
_COPY_PATTERN = re.compile(rb'COPY (\w+)\.(\w+|"\w+") \(([\w", ]*)\) FROM stdin;')
_SETVAL_PATTERN = re.compile(
    rb"SELECT pg_catalog\.setval\('(\w+\.\w+)', (-?\d{1,19}), (true|false)\);"
)
_END_OF_ROWS = b"\n\\.\n"


def is_archive(file: BinaryIO) -> bool:
    file.seek(0)
    return file.read(len(_MAGIC)) == _MAGIC


class LegacyBackupReader:
    def __init__(self, file: BinaryIO, report: ProgressCallback) -> None:
        manifest = _read_manifest(file, report)
        if not all(
            _NAME_PATTERN.fullmatch(name) for name in (*manifest.tables, *manifest.migrations)
        ):
            raise build_unreadable_error()
        tables = {_strip_main_schema(name): rows for name, rows in manifest.tables.items()}
        self.manifest = msgspec.structs.replace(manifest, tables=tables)
        #: Complete once all tables have been read.
        self.sequences: Mapping[str, tuple[int, bool]] = {}
        self._file = file

    @property
    def percent(self) -> int:
        """Percentage read by the pg_restore process, which shares the file's position."""
        descriptor = self._file.fileno()
        return 100 * os.lseek(descriptor, 0, os.SEEK_CUR) // os.fstat(descriptor).st_size

    async def iter_tables(self) -> AsyncGenerator[TableRows, None]:
        self._file.seek(0)
        process = await _start_pg_restore(self._file)
        assert process.stdout is not None
        script = _ScriptReader(process.stdout)
        sequences = {}
        try:
            while (line := await script.read_line()) is not None:
                if match := _COPY_PATTERN.fullmatch(line):
                    columns = match[3].decode().replace('"', "").split(", ")
                    table = f"{match[1].decode()}.{match[2].decode()}".replace('"', "")
                    yield TableRows(_strip_main_schema(table), columns, script.iter_rows())
                elif match := _SETVAL_PATTERN.fullmatch(line):
                    sequences[_strip_main_schema(match[1].decode())] = (
                        int(match[2]),
                        match[3] == b"true",
                    )
            if await process.wait() != 0:
                raise build_unreadable_error()
        finally:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.communicate()  # reads what is left in the pipe, to close it
        self.sequences = sequences


def _strip_main_schema(name: str) -> str:
    return name.removeprefix(_MAIN_SCHEMA_PREFIX)


def _read_manifest(file: BinaryIO, report: ProgressCallback) -> Manifest:
    """Verify the checksum of the whole file and return the manifest."""
    size = file.seek(0, os.SEEK_END)
    file.seek(max(0, size - _LAST_LINE_BYTES - _MAX_MANIFEST_BYTES))
    end = file.read()
    last_line = end[-_LAST_LINE_BYTES:]
    if not last_line.startswith(_CHECKSUM_PREFIX):
        raise StoreError("it is not a Tapgate backup, or it is truncated")
    if (
        _compute_sha256(file, size - _LAST_LINE_BYTES, report)
        != last_line[len(_CHECKSUM_PREFIX) : -1]
    ):
        raise StoreError("it is damaged: the checksum does not match")
    return decode_manifest(end[: -_LAST_LINE_BYTES - 1].rpartition(b"\n")[2], _FORMAT_VERSION)


def _compute_sha256(file: BinaryIO, size: int, report: ProgressCallback) -> bytes:
    file.seek(0)
    digest, remaining = hashlib.sha256(), size
    while remaining > 0 and (data := file.read(min(remaining, _CHUNK_BYTES))):
        digest.update(data)
        remaining -= len(data)
        report(100 * (size - remaining) // size)
    return digest.hexdigest().encode()


async def _start_pg_restore(file: BinaryIO) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        find_client_program("pg_restore"),
        "--format=custom",
        "--data-only",
        "--file=-",
        stdin=file,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        env={"PATH": os.defpath, "LC_ALL": "C"},
        start_new_session=True,  # Ctrl-C must reach only Tapgate, which kills pg_restore
    )


class _ScriptReader:
    """Reader for the lines of a script and the rows between them, in bounded memory."""

    def __init__(self, stream: asyncio.StreamReader) -> None:
        self._stream = stream
        self._buffer = b""

    async def read_line(self) -> bytes | None:
        while b"\n" not in self._buffer:
            if len(self._buffer) > _CHUNK_BYTES or not await self._fill():
                if self._buffer:
                    raise build_unreadable_error()
                return None
        line, _, self._buffer = self._buffer.partition(b"\n")
        return line

    async def iter_rows(self) -> AsyncIterator[bytes]:
        """Yield COPY data up to the end marker, in parts that may end in the middle of a row."""
        self._buffer = b"\n" + self._buffer
        is_first = True
        while (end := self._buffer.find(_END_OF_ROWS)) < 0:
            # The buffer may end with part of the end marker.
            keep = len(self._buffer) - len(_END_OF_ROWS) + 1
            if keep > is_first:
                yield self._buffer[is_first:keep]
                self._buffer, is_first = self._buffer[keep:], False
            if not await self._fill():
                raise build_unreadable_error()
        rows = self._buffer[is_first : end + 1]
        self._buffer = self._buffer[end + len(_END_OF_ROWS) :]
        if rows:
            yield rows

    async def _fill(self) -> bool:
        data = await self._stream.read(_CHUNK_BYTES)
        self._buffer += data
        return bool(data)
