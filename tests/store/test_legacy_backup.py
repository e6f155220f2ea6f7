"""Legacy backups can be restored, and their contents are never executed."""

import asyncio
import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from cases import each
from store.test_backup import fetch_rows, ignore_progress, is_empty
from tapgate.store import StoreError, legacy_backup, restore
from tapgate.store.legacy_backup import LegacyBackupReader
from tapgate.store.migrate import migrate

#: Created by Tapgate 1.0 with the secret key "the-secret-key-of-the-backup-fixture".
LEGACY_BACKUP = Path(__file__).parent / "backups" / "unauthenticated.backup"
#: Closes the quoted block of a `psql` script and runs a program.
META_COMMAND = "x $check$\n\\! touch {}\n"


async def restore_backup(url: str, path: Path) -> list[str]:
    with path.open("rb") as file:
        return await restore.restore_backup(
            url, LegacyBackupReader(file, ignore_progress), ignore_progress
        )


def alter_manifest(path: Path, alter: Callable[[dict[str, Any]], object]) -> Path:
    """Write the legacy backup with an altered manifest and a matching checksum."""
    archive, manifest, _, _ = LEGACY_BACKUP.read_bytes().rsplit(b"\n", 3)
    content = msgspec.json.decode(manifest)
    alter(content)
    data = archive + b"\n" + msgspec.json.encode(content) + b"\n"
    digest = hashlib.sha256(data).hexdigest()
    path.write_bytes(data + f"tapgate-backup sha256={digest}\n".encode())
    return path


async def test_legacy_backup_is_restored(empty_database_url: str) -> None:
    assert await restore_backup(empty_database_url, LEGACY_BACKUP) == []
    balances = "SELECT balance FROM accounts WHERE kind = 'wallet' ORDER BY balance"
    assert await fetch_rows(empty_database_url, balances) == [(1234,), (10000,)]
    assert await fetch_rows(empty_database_url, "SELECT email FROM login_failures") == [
        ("a\tb\\c\n\\.\nd",)
    ]
    assert await fetch_rows(empty_database_url, "SELECT FROM sessions WHERE ended_at IS NULL") == []
    assert await fetch_rows(
        empty_database_url, "SELECT last_value FROM audit_entries_sequence_seq"
    ) == [(2,)]
    await migrate(empty_database_url)


@each(
    "alter",
    [
        lambda content, command: content["tables"].update({command: 0}),
        lambda content, command: content.update(tables={command: 0}),
        lambda content, command: content["migrations"].update({command: "x"}),
    ],
)
async def test_manifest_cannot_run_a_program(
    alter: Callable[[dict[str, Any], str], object], empty_database_url: str, tmp_path: Path
) -> None:
    marker = tmp_path / "executed"
    command = META_COMMAND.format(marker)
    path = alter_manifest(tmp_path / "backup", lambda content: alter(content, command))
    with pytest.raises(StoreError, match="its contents cannot be read"):
        await restore_backup(empty_database_url, path)
    assert not marker.exists()
    assert await is_empty(empty_database_url)


@each("field", ["figures", "currency", "secret_fingerprint"])
async def test_manifest_text_is_compared_and_never_executed(
    field: str, empty_database_url: str, tmp_path: Path
) -> None:
    marker = tmp_path / "executed"
    command = META_COMMAND.format(marker)
    altered: object = {"audit log: head": command, command: "1"} if field == "figures" else command
    path = alter_manifest(tmp_path / "backup", lambda content: content.update({field: altered}))
    with path.open("rb") as file, pytest.raises(StoreError) as raised:
        source = LegacyBackupReader(file, ignore_progress)
        restore.require_restorable(source.manifest, key_ids=["53e0ef9b"], currency="SLE")
        await restore.restore_backup(empty_database_url, source, ignore_progress)
    assert "\n" not in str(raised.value)
    assert not marker.exists()
    assert await is_empty(empty_database_url)


@pytest.fixture
def set_archive_script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Return a function that sets the script to which `pg_restore` expands any archive."""

    def write(text: str) -> None:
        (tmp_path / "script").write_text(text)
        program = tmp_path / "pg_restore"
        program.write_text(f"#!/bin/sh\nexec cat {tmp_path}/script\n")
        program.chmod(0o700)
        monkeypatch.setattr(legacy_backup, "find_client_program", lambda name: tmp_path / name)

    return write


@each(
    "text, error",
    [
        ("\\! touch {marker}\n", "rows: restored '0', but"),
        ("COPY public.accounts FROM PROGRAM 'touch {marker}';\n", "rows: restored '0', but"),
        ("CREATE TABLE public.made (x text);\n", "rows: restored '0', but"),
        ("COPY public.accounts (id) FROM stdin;\n\\.\n", "columns of accounts do not match"),
        (
            "COPY public.accounts (id, nothing) FROM stdin;\n\\.\n",
            "columns of accounts do not match",
        ),
        ("COPY public.login_failures (email, address, failed_at) FROM stdin;\n" * 2, "cannot be"),
        (
            "COPY public.login_failures (email, address, failed_at) FROM stdin;\n\\.\n" * 2,
            "columns of login_failures do not match",
        ),
        ("COPY public.login_failures (email, address, failed_at) FROM stdin;\na", "cannot be read"),
        ("COPY pg_catalog.pg_authid (rolname) FROM stdin;\nx\n\\.\n", "rows: restored '0', but"),
        ("x" * 3_000_000, "cannot be read"),
    ],
)
async def test_archive_script_is_parsed_and_never_executed(
    text: str,
    error: str,
    set_archive_script: Callable[[str], None],
    empty_database_url: str,
    tmp_path: Path,
) -> None:
    marker = tmp_path / "executed"
    set_archive_script(text.format(marker=marker))
    with pytest.raises(StoreError, match=error):
        await restore_backup(empty_database_url, LEGACY_BACKUP)
    assert not marker.exists()
    assert await is_empty(empty_database_url)


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 7, 1000])
async def test_rows_are_read_correctly_at_any_chunk_size(
    size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(legacy_backup, "_CHUNK_BYTES", size)
    for data in (b"", b"a\n", b"a\\.\nb\n\\\\.\n", b"\n\n", b"\\\\.\n.\n"):
        stream = asyncio.StreamReader()
        stream.feed_data(data + b"\\.\n\nSELECT 1;\n")
        stream.feed_eof()
        lines = legacy_backup._ScriptReader(stream)
        assert b"".join([chunk async for chunk in lines.iter_rows()]) == data
        monkeypatch.setattr(legacy_backup, "_CHUNK_BYTES", max(size, 20))
        assert [await lines.read_line() for _ in range(3)] == [b"", b"SELECT 1;", None]
        monkeypatch.setattr(legacy_backup, "_CHUNK_BYTES", size)


@pytest.mark.parametrize(
    ("damage", "error"),
    [
        (lambda data: data[:-1], "not a Tapgate backup, or it is truncated"),
        (lambda data: data[: len(data) // 2], "not a Tapgate backup, or it is truncated"),
        (lambda data: data[:3000] + bytes([data[3000] ^ 1]) + data[3001:], "damaged: the checksum"),
        (lambda data: data.replace(b'"postgres":', b'"postgrez":'), "damaged: the checksum"),
    ],
)
def test_damaged_file_is_rejected(
    damage: Callable[[bytes], bytes], error: str, tmp_path: Path
) -> None:
    path = tmp_path / "backup"
    path.write_bytes(damage(LEGACY_BACKUP.read_bytes()))
    with path.open("rb") as file, pytest.raises(StoreError, match=error):
        LegacyBackupReader(file, ignore_progress)


def test_newer_backup_format_is_rejected(tmp_path: Path) -> None:
    path = alter_manifest(tmp_path / "backup", lambda content: content.update(format=2))
    with (
        path.open("rb") as file,
        pytest.raises(StoreError, match="created by a newer version of Tapgate"),
    ):
        LegacyBackupReader(file, ignore_progress)
