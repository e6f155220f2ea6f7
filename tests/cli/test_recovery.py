"""`tapgate after-recovery`, and restore drills with `tapgate restore --check`."""

import os
import time
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from drivers.backups import fetch_rows
from drivers.commands import run_tapgate
from harness import Harness
from tapgate.cli.after_recovery import prepare
from tapgate.runtime.task_runs import Task, record_run

_SCRATCH = "SELECT count(*) FROM pg_database WHERE datname LIKE 'tapgate_check_%'"


async def open_things(harness: Harness) -> None:
    """Create what a recovery would revive: sessions, a one-time code and approval requests."""
    await harness.create_admin()
    await harness.create_subscriber()
    await harness.database.execute(
        """INSERT INTO one_time_codes (purpose, subscriber_id, asker, code_hash, expires_at)
           SELECT 'reset_pin', id, 'adm', '', now() + interval '1 hour' FROM subscribers LIMIT 1"""
    )
    for status in ("pending", "approved", "executed"):
        await harness.database.execute(
            """INSERT INTO approvals (id, operation, operations, summary, changes, sealed_request,
                   maker_id, maker_person, roles, required_approvers, status, created_at,
                   expires_at, updated_at)
               SELECT $1, 'fee_rules', '{}', 'x', '{}', '', id, 'p', '{}', 1, $2, now(),
                      now() + interval '1 day', now()
               FROM admins LIMIT 1""",
            hash(status) & 0xFFFFFFFF,
            status,
        )


async def count_open(harness: Harness) -> dict[str, int]:
    queries = {
        "sessions": "SELECT count(*) FROM sessions WHERE ended_at IS NULL",
        "codes": "SELECT count(*) FROM one_time_codes",
        "approvals": "SELECT count(*) FROM approvals WHERE status IN ('pending', 'approved')",
    }
    return {name: await harness.database.fetchval(sql) for name, sql in queries.items()}


async def test_recovered_database_has_no_open_credentials_and_lists_what_to_reconcile(
    harness: Harness, capsys: pytest.CaptureFixture[str]
) -> None:
    await open_things(harness)
    assert min((await count_open(harness)).values()) > 0
    await prepare(harness.services)
    assert await count_open(harness) == {"sessions": 0, "codes": 0, "approvals": 0}
    output = capsys.readouterr().out
    assert "      2 approval requests" in output
    assert "      1 one-time codes" in output
    assert "Reconcile" in output
    statuses = await harness.database.fetch("SELECT status FROM approvals ORDER BY status")
    assert [row["status"] for row in statuses] == ["cancelled", "cancelled", "executed"]
    events = await harness.database.fetch(
        "SELECT event FROM audit_entries WHERE event LIKE 'approval.c%' OR event LIKE 'inst%'"
    )
    assert sorted(row["event"] for row in events) == [
        "approval.cancelled",
        "approval.cancelled",
        "installation.recovered",
    ]
    await prepare(harness.services)  # can be repeated
    assert "      0 approval requests" in capsys.readouterr().out


async def test_delivery_numbers_continue_above_the_lost_numbers(harness: Harness) -> None:
    sequence = "SELECT last_value FROM deliveries_id_seq"
    before = await harness.database.fetchval(sequence)
    await prepare(harness.services)
    assert await harness.database.fetchval(sequence) > before + 1_000_000


async def get_run(url: str, task: Task) -> tuple[bool, bool] | None:
    """Return whether the latest run succeeded, and whether any has."""
    rows = await fetch_rows(
        url, f"SELECT succeeded, succeeded_at IS NOT NULL FROM task_runs WHERE task = '{task}'"
    )
    (row,) = rows or (None,)
    result: Any = row
    return result


async def test_drill_restores_verifies_reports_and_leaves_nothing(
    database_url: str, public_tmp_path: Path
) -> None:
    data, file = public_tmp_path / "data", public_tmp_path / "tapgate-1.backup"
    status, _, error = await run_tapgate(data, "backup", file, url=database_url)
    assert (status, error) == (0, "")
    assert await get_run(database_url, Task.BACKUP) == (True, True)
    folder = file.parent  # its newest backup
    status, output, error = await run_tapgate(data, "restore", "--check", folder, url=database_url)
    assert (status, error) == (0, "")
    assert b"Row counts and ledger totals match the backup." in output
    assert b"passed" in output
    assert output.endswith(b"The scratch database was removed.\n")
    assert await get_run(database_url, Task.RESTORE_CHECK) == (True, True)
    assert await fetch_rows(database_url, _SCRATCH) == [(0,)]


async def test_damaged_backup_fails_the_drill(database_url: str, public_tmp_path: Path) -> None:
    data, file = public_tmp_path / "data", public_tmp_path / "one.backup"
    await run_tapgate(data, "backup", file, url=database_url)
    content = bytearray(file.read_bytes())
    content[-100] ^= 1
    file.write_bytes(content)
    await record_run(database_url, Task.RESTORE_CHECK, succeeded=True)
    status, _, error = await run_tapgate(data, "restore", "--check", file, url=database_url)
    assert status == 1
    assert "damaged, incomplete or altered" in error
    assert await get_run(database_url, Task.RESTORE_CHECK) == (False, True)
    assert await fetch_rows(database_url, _SCRATCH) == [(0,)]


async def test_drill_needs_the_right_to_create_databases(
    database_url: str, public_tmp_path: Path
) -> None:
    data, file = public_tmp_path / "data", public_tmp_path / "one.backup"
    await run_tapgate(data, "backup", file, url=database_url)
    owner = await asyncpg.connect(database_url)
    role = f"drill_{os.getpid()}"
    await owner.execute(f"CREATE ROLE {role} LOGIN")
    try:
        url = database_url.replace("postgres@", f"{role}@")
        status, _, error = await run_tapgate(data, "restore", "--check", file, url=url)
        assert status == 1
        assert "cannot create a scratch database. Grant CREATEDB" in error
    finally:
        await owner.execute(f"DROP ROLE {role}")
        await owner.close()


async def test_backups_are_kept_for_the_given_days(
    database_url: str, public_tmp_path: Path
) -> None:
    data, folder = public_tmp_path / "data", public_tmp_path / "backups"
    folder.mkdir()
    ages = {"tapgate-old.backup": 15, "tapgate-young.backup": 13, "other.backup": 400}
    for name, days in ages.items():
        (folder / name).touch()
        moment = time.time() - days * 86_400
        os.utime(folder / name, (moment, moment))
    new = folder / "tapgate-new.backup"
    arguments = ("backup", "--keep-days", "14", new)
    status, output, _ = await run_tapgate(data, *arguments, url=database_url)
    assert (status, b"Deleted tapgate-old.backup." in output) == (0, True)
    names = {"tapgate-young.backup", "other.backup", new.name}
    assert {path.name for path in folder.iterdir()} == names


async def test_failed_backup_is_recorded_and_deletes_nothing(
    database_url: str, public_tmp_path: Path
) -> None:
    data, old = public_tmp_path / "data", public_tmp_path / "tapgate-old.backup"
    old.touch()
    os.utime(old, (0, 0))
    arguments = ("backup", "--keep-days", "1", public_tmp_path / "tapgate-new.backup")
    status, _, _ = await run_tapgate(data, *arguments, url=database_url, max_file_bytes=4096)
    assert status == 1
    assert await get_run(database_url, Task.BACKUP) == (False, False)
    assert old.exists()
