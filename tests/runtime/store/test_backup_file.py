"""Backup file stream: memory is bounded, and unreadable input is rejected."""

import io
import os
import tracemalloc
import zlib
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest

from cases import each
from drivers.backups import VAULT, ignore_progress
from tapgate.runtime.store import StoreError
from tapgate.runtime.store.backup_file import BackupReader, BackupWriter, Manifest, TableHeader
from tapgate.runtime.store.sealed_file import BACKUP, SealedWriter

MANIFEST = Manifest(
    tapgate="1",
    postgres="18",
    moment=datetime(2026, 1, 1, tzinfo=UTC),
    migrations={},
    currency=None,
    secret_fingerprint=None,
    tables={"one": 1, "two": 0},
    figures={},
)


def encode_record(content: bytes) -> bytes:
    return len(content).to_bytes(4, "big") + content


def encode_table_header(name: str) -> bytes:
    return encode_record(msgspec.json.encode(TableHeader(name, ["a"])))


TABLE_RECORDS = (
    encode_table_header("one")
    + encode_record(b"1\n")
    + encode_record(b"")
    + encode_table_header("two")
    + encode_record(b"")
)
COMPLETE_STREAM = encode_record(msgspec.json.encode(MANIFEST)) + TABLE_RECORDS


async def read_contents(stream: bytes) -> list[tuple[str, bytes]]:
    file = io.BytesIO()
    writer = SealedWriter(file, VAULT, BACKUP)
    writer.write(stream)
    writer.finish()
    reader = BackupReader(file, VAULT, ignore_progress)
    return [
        (name, b"".join([data async for data in rows]))
        async for name, _, rows in reader.iter_tables()
    ]


async def test_complete_stream_is_read() -> None:
    assert await read_contents(zlib.compress(COMPLETE_STREAM)) == [("one", b"1\n"), ("two", b"")]


@each(
    "stream, error",
    [
        (b"", "cannot be read"),
        (b"not compressed", "cannot be read"),
        (zlib.compress(COMPLETE_STREAM)[:-10], "cannot be read"),
        (zlib.compress(COMPLETE_STREAM)[:-1], "cannot be read"),
        (zlib.compress(COMPLETE_STREAM) + b"x", "cannot be read"),
        (zlib.compress(COMPLETE_STREAM + b"x"), "cannot be read"),
        (zlib.compress(COMPLETE_STREAM[:-1]), "cannot be read"),
        (zlib.compress(b"\xff\xff\xff\xff"), "cannot be read"),
        (zlib.compress(encode_record(b"{}") + TABLE_RECORDS), "cannot be read"),
        (
            zlib.compress(encode_record(b'{"format": 3}') + TABLE_RECORDS),
            "created by a newer version of",
        ),
        (zlib.compress(encode_record(b'{"format": 2}') + TABLE_RECORDS), "cannot be read"),
        (
            zlib.compress(encode_record(msgspec.json.encode(MANIFEST)) + encode_record(b"{}")),
            "cannot be read",
        ),
    ],
)
async def test_unreadable_stream_is_rejected(stream: bytes, error: str) -> None:
    with pytest.raises(StoreError, match=error):
        await read_contents(stream)


def test_oversized_manifest_is_not_written() -> None:
    long = msgspec.structs.replace(MANIFEST, tables={"x" * 2_000_000: 1})
    with pytest.raises(StoreError, match="too long for a backup"):
        BackupWriter(io.BytesIO(), VAULT).write_manifest(long)


@pytest.mark.parametrize("chunk", [lambda: os.urandom(1 << 20), lambda: bytes(1 << 20)])
async def test_memory_stays_bounded_while_a_long_stream_is_written_and_read(
    chunk: Callable[[], bytes], tmp_path: Path
) -> None:
    """Covers content that does not compress, and a short file that expands to a long stream."""
    chunk_count = 40
    tracemalloc.start()
    try:
        with (tmp_path / "backup").open("wb") as file:
            writer = BackupWriter(file, VAULT)
            writer.write_manifest(MANIFEST)
            writer.begin_table("one", ["a"])
            for _ in range(chunk_count):
                writer.write_rows(chunk())
            writer.end_table()
            writer.begin_table("two", ["a"])
            writer.end_table()
            writer.finish()
        bytes_read = 0
        with (tmp_path / "backup").open("rb") as file:
            async for _, _, rows in BackupReader(file, VAULT, ignore_progress).iter_tables():
                async for data in rows:
                    bytes_read += len(data)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert bytes_read == chunk_count << 20
    assert peak < 16 << 20
