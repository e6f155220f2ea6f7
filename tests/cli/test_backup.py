"""`tapgate backup` and `tapgate restore` of running and stopped installations."""

import asyncio
import os
import re
import shutil
import signal
import stat
import subprocess
from pathlib import Path

import asyncpg
import pytest

from drivers.actors import Admin, require_success
from drivers.backups import fetch_rows, is_empty, list_files, wait_until_idle
from drivers.commands import run_tapgate
from drivers.forked import ForkedProcess, require_installation_for
from drivers.processes import (
    ADMIN,
    open_client,
    run_gateway,
)
from harness import Harness
from tapgate.http.api.services import Services
from tapgate.ledger.verification.invariants import INVARIANTS
from tapgate.runtime.store.server_user import ServerUser

_NOBODY = ServerUser(65534, 65534)


@pytest.fixture
def unprivileged_user(public_tmp_path: Path, data_dir: Path) -> ServerUser | None:
    """Give the folder to an unprivileged user and return that user.

    Returns None and changes nothing if the tests already run unprivileged.
    """
    if os.geteuid() != 0:
        return None
    require_installation_for(_NOBODY)
    subprocess.run(["chown", "-R", f"{_NOBODY.uid}:{_NOBODY.gid}", public_tmp_path], check=True)
    return _NOBODY


async def test_unprivileged_user_backs_up_and_restores_a_stopped_installation(
    unprivileged_user: ServerUser | None, data_dir: Path, public_tmp_path: Path
) -> None:
    user = unprivileged_user
    path, new = public_tmp_path / "file.backup", public_tmp_path / "new"
    status, output, error = await run_tapgate(data_dir, "backup", path, user=user)
    assert (status, error) == (0, "")
    pattern = rb"Saved /\S+: 0\.\d MB, 0 transactions and 0 entries as of 20\S+ \S+ UTC\."
    assert re.match(pattern, output)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert path.stat().st_uid == (os.geteuid() if user is None else user.uid)
    status, _, error = await run_tapgate(new, "restore", path, user=user)
    assert status == 1
    assert f"tapgate: {path} cannot be restored: it was created with secret key" in error
    assert error.count("\n") == 1
    secrets = data_dir / "secrets.json"
    await asyncio.to_thread(shutil.copy, secrets, new / "secrets.json")
    if user is not None:
        os.chown(new / "secrets.json", user.uid, user.gid)
    status, output, error = await run_tapgate(new, "restore", path, user=user)
    assert (status, error) == (0, "")
    assert b"FAILED" not in output


async def test_running_installation_is_backed_up_and_works_after_a_restore_elsewhere(
    public_tmp_path: Path, cluster: Path
) -> None:
    """After the restore, a subscriber from the source installation can send money."""
    source_folder, target_folder = public_tmp_path / "source", public_tmp_path / "target"
    source_folder.mkdir()
    target_folder.mkdir()
    copy = ["cp", "-a", cluster, source_folder / "gateway"]
    await asyncio.to_thread(subprocess.run, copy, check=True)
    async with (
        run_gateway(source_folder, "", workers=1) as address,
        open_client(address) as client,
    ):
        ada = await Admin.log_in(client, **ADMIN)
        app = await ada.create_app()
        aminata = await ada.create_funded_customer("100.00", app)
        friend = await ada.create_funded_customer("1.00", app)
        status, output, error = await run_tapgate(
            source_folder / "gateway", "backup", cwd=public_tmp_path
        )
        assert (status, error) == (0, "")
        [path] = [
            public_tmp_path / name
            for name in list_files(public_tmp_path)
            if name.endswith(".backup")
        ]
        assert f"Saved {path.name}: ".encode() in output
        secrets = source_folder / "gateway" / "secrets.json"
        assert b"The backup does not include the secret key" in output
        assert f"Store a copy of {secrets} separately.".encode() in output
        secret_values = re.findall(r'"(\w{40,})"', secrets.read_text())
        assert not any(secret.encode() in path.read_bytes() for secret in secret_values)
        # A restore into a folder in use or without the secret key, and a backup to an existing
        # file, are rejected.
        result = await run_tapgate(source_folder / "gateway", "restore", path)
        assert result[2].startswith("tapgate: another Tapgate instance is already using ")
        result = await run_tapgate(source_folder / "gateway", "backup", path)
        assert result[2] == f"tapgate: {path} already exists. Use --force to replace it\n"
        result = await run_tapgate(target_folder / "gateway", "restore", path)
        assert result[0] == 1
        assert "copy the original secrets.json to the data folder" in result[2]
    shutil.copy(secrets, target_folder / "gateway" / "secrets.json")
    status, output, error = await run_tapgate(target_folder / "gateway", "restore", path)
    assert (status, error) == (0, "")
    assert output.count(b"\npassed ") == len(INVARIANTS) + 3
    assert b"delete API keys and signing keys" in output
    async with run_gateway(target_folder, "", workers=1) as address, open_client(address) as client:
        require_success(await aminata.with_client(client).send_money("5.00", friend))
        tokens = await client.post("/api/v1/admin/login", json=ADMIN)
        headers = {"Authorization": f"Bearer {tokens.json()['token']}"}
        log = await client.get("/api/v1/audit/logs?event=installation.restored", headers=headers)
        [entry] = log.json()["data"]
        assert entry["reason"].startswith("from a backup as of 20")


async def test_backup_to_standard_output_can_be_restored(
    services: Services, empty_database_url: str, public_tmp_path: Path
) -> None:
    data, url = services.settings.data_dir, str(services.settings.database_url)
    status, output, error = await run_tapgate(data, "backup", "-", url=url)
    assert status == 0
    assert error.startswith("Saved the backup: ")
    assert f"Saved the backup: {len(output) / 1_000_000:.1f} MB" in error
    assert output.startswith(b"tapgate-backup 2\n")
    (public_tmp_path / "backup").write_bytes(output)
    status, _, error = await run_tapgate(
        data, "restore", public_tmp_path / "backup", url=empty_database_url
    )
    assert (status, error) == (0, "")


@pytest.mark.parametrize("signal_number", [signal.SIGTERM, signal.SIGKILL])
async def test_interrupted_backup_leaves_no_backup_file(
    signal_number: signal.Signals, services: Services, public_tmp_path: Path
) -> None:
    data, url = services.settings.data_dir, str(services.settings.database_url)

    async def interrupt(process: ForkedProcess) -> None:
        """Send the signal while the backup waits for a table, with the file partly written."""
        while not await fetch_rows(
            url,
            """SELECT FROM pg_locks JOIN pg_database ON pg_database.oid = database
               WHERE NOT granted AND locktype = 'relation' AND datname = current_database()""",
        ):
            assert process.returncode is None
            await asyncio.sleep(0.01)
        process.send_signal(signal_number)

    async with services.transaction() as tx:
        await tx.execute("LOCK TABLE accounts IN ACCESS EXCLUSIVE MODE")
        status, _, error = await run_tapgate(
            data, "backup", public_tmp_path / "backup", url=url, while_running=interrupt
        )
    assert not (public_tmp_path / "backup").exists()
    if signal_number != signal.SIGKILL:
        assert (status, error) == (130, "Interrupted: no backup was saved.\n")
        assert list_files(public_tmp_path) == []


#: Takes an advisory lock, and makes CREATE INDEX wait for it once `entries` has rows.
_PAUSE_BEFORE_INDEXES_SQL = """
    CREATE SCHEMA held;
    CREATE FUNCTION held.wait() RETURNS event_trigger LANGUAGE plpgsql
        AS $$ BEGIN
            IF to_regclass('entries') IS NOT NULL THEN
                IF EXISTS (SELECT FROM entries) THEN
                    PERFORM pg_advisory_xact_lock(4711);
                END IF;
            END IF;
        END $$;
    CREATE EVENT TRIGGER held ON ddl_command_start WHEN TAG IN ('CREATE INDEX')
        EXECUTE FUNCTION held.wait();
    SELECT pg_advisory_lock(4711)"""


async def test_killed_restore_leaves_nothing_and_can_be_repeated(
    harness: Harness, empty_database_url: str, public_tmp_path: Path
) -> None:
    services = harness.services
    await harness.create_subscriber(balance="100.00")
    data, url = services.settings.data_dir, str(services.settings.database_url)
    path = public_tmp_path / "backup"
    assert (await run_tapgate(data, "backup", path, url=url))[0] == 0

    async def interrupt(process: ForkedProcess) -> None:
        """Kill the process after tables were filled and before the restore is complete."""
        while not await fetch_rows(
            empty_database_url,
            """SELECT FROM pg_stat_activity
               WHERE datname = current_database()
                 AND backend_xid IS NOT NULL AND wait_event = 'advisory'""",
        ):
            assert process.returncode is None
            await asyncio.sleep(0.01)
        process.kill()

    holder = await asyncpg.connect(empty_database_url)
    try:
        await holder.execute(_PAUSE_BEFORE_INDEXES_SQL)
        status, _, error = await run_tapgate(
            data, "restore", path, url=empty_database_url, while_running=interrupt
        )
    finally:
        await holder.close()
    assert (status, error) == (-signal.SIGKILL, "")
    await wait_until_idle(empty_database_url)
    assert await is_empty(empty_database_url)
    status, output, _ = await run_tapgate(data, "restore", path, url=empty_database_url)
    assert status == 0
    assert b"Restored 1 transactions and 1 entries" in output


async def test_backup_write_error_is_reported_in_one_line(
    services: Services, public_tmp_path: Path
) -> None:
    data, url = services.settings.data_dir, str(services.settings.database_url)
    path = public_tmp_path / "backup"
    status, _, error = await run_tapgate(data, "backup", path, url=url, max_file_bytes=2_000)
    assert (status, error) == (1, f"tapgate: {path} cannot be written: File too large\n")
    assert list_files(public_tmp_path) == []
    full = os.open("/dev/full", os.O_WRONLY)
    try:
        status, _, error = await run_tapgate(data, "backup", "-", url=url, stdout=full)
    finally:
        os.close(full)
    reason = "cannot write to standard output: No space left on device"
    assert (status, error) == (1, f"tapgate: {reason}\n")


async def test_file_that_is_not_a_backup_is_reported_in_one_line(
    services: Services, public_tmp_path: Path
) -> None:
    data, path = services.settings.data_dir, public_tmp_path / "backup"
    for content in (b"", b"something else", b"PGDMP and then nothing", b"tapgate-backup 2\n"):
        path.write_bytes(content)
        status, _, error = await run_tapgate(data, "restore", path)
        assert status == 1
        assert error.startswith(f"tapgate: {path} cannot be restored: it is ")
        assert error.count("\n") == 1
    status, _, error = await run_tapgate(data, "restore", public_tmp_path / "none")
    expected = f"tapgate: {public_tmp_path / 'none'} cannot be read: No such file or directory\n"
    assert error == expected


async def test_inconsistent_ledger_is_restored_unchanged_and_reported(
    services: Services, harness: Harness, empty_database_url: str, public_tmp_path: Path
) -> None:
    await harness.create_subscriber(balance="100.00")
    await services.database.execute("UPDATE accounts SET balance = 5 WHERE kind = 'wallet'")
    data, url = services.settings.data_dir, str(services.settings.database_url)
    await run_tapgate(data, "backup", public_tmp_path / "backup", url=url)
    status, output, _ = await run_tapgate(
        data, "restore", public_tmp_path / "backup", url=empty_database_url
    )
    assert status == 1
    assert b"FAILED every balance is the sum of its entries" in output
