"""What is saved comes back, all of it or nothing; what does not fit is refused in one line."""

import asyncio
import contextlib
import io
import stat
import subprocess
from collections.abc import AsyncIterator, Callable
from datetime import timedelta
from pathlib import Path
from urllib.parse import quote

import asyncpg
import msgspec
import pytest

from gateway.running import free_port
from tapgate.clock import system_clock
from tapgate.ids import first_id_at
from tapgate.store import StoreError, restore
from tapgate.store.backup import save
from tapgate.store.backup_file import BackupWriter, Manifest, new_file, read_manifest
from tapgate.store.embedded import PROGRAMS, EmbeddedPostgres
from tapgate.store.migrate import LOCK_KEY, migrate
from tapgate.store.server_user import server_user
from world import World

PASSWORD = "p@ss:w/rd %&'\\"


def nothing(*_: object) -> None:
    """Nobody wants to know how far it is."""


async def saved(url: str, path: Path) -> Manifest:
    with new_file(path, replace=True) as file:
        return await save(url, file, nothing)


async def load(url: str, path: Path) -> None:
    with path.open("rb") as file:
        await restore.load(url, file, read_manifest(file), nothing)


async def rows(url: str, sql: str) -> list[tuple[object, ...]]:
    connection = await asyncpg.connect(url)
    try:
        return [tuple(row) for row in await connection.fetch(sql)]
    finally:
        await connection.close()


def files_in(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


def schema(url: str) -> str:
    """Without brackets: a condition that was saved and read again has fewer of them."""
    command = [PROGRAMS / "pg_dump", "--schema-only", "--no-owner", "--restrict-key=same"]
    done = subprocess.run([*command, url], check=True, capture_output=True, text=True)
    return done.stdout.replace("(", "").replace(")", "")


async def is_empty(url: str) -> bool:
    return (
        await rows(url, "SELECT FROM pg_tables WHERE schemaname IN ('public', 'messenger')") == []
    )


async def test_everything_comes_back(
    world: World, database_url: str, empty_url: str, tmp_path: Path
) -> None:
    await world.subscriber(balance="100.00")
    manifest = await saved(database_url, tmp_path / "backup")
    await load(empty_url, tmp_path / "backup")
    assert schema(empty_url) == schema(database_url)
    again = await saved(empty_url, tmp_path / "again")
    assert (again.tables, again.figures) == (manifest.tables, manifest.figures)
    assert manifest.tables["public.subscribers"] == 1
    assert manifest.figures["entries: sum of amounts"] == "10000"
    sequence = "SELECT last_value FROM process_slots"
    assert await rows(empty_url, sequence) == await rows(database_url, sequence)
    assert await migrate(empty_url) == []


async def test_what_was_ended_since_does_not_come_back_to_life(
    world: World, database_url: str, empty_url: str, tmp_path: Path
) -> None:
    await world.admin()
    await saved(database_url, tmp_path / "backup")
    before = first_id_at(system_clock())
    await load(empty_url, tmp_path / "backup")
    assert await rows(empty_url, "SELECT FROM sessions WHERE ended_at IS NULL") == []
    assert await rows(empty_url, "SELECT FROM refresh_tokens") == []
    # A delivery's number is known to its receiver: one given out after the backup must not be
    # given to something else.
    [(number,)] = await rows(empty_url, "SELECT nextval('deliveries_id_seq')")
    assert isinstance(number, int)
    assert number > before


async def test_postgresqls_own_program_opens_it(
    world: World, database_url: str, empty_url: str, tmp_path: Path
) -> None:
    await world.subscriber(balance="100.00")
    await saved(database_url, tmp_path / "backup")
    done = await asyncio.create_subprocess_exec(
        PROGRAMS / "pg_restore",
        "--no-owner",
        f"--dbname={empty_url}",
        tmp_path / "backup",
        stderr=asyncio.subprocess.PIPE,
    )
    _, complaint = await done.communicate()
    assert complaint.count(b"error: ") == 1
    assert b'schema "public" already exists' in complaint
    assert await rows(empty_url, "SELECT balance FROM accounts WHERE kind = 'wallet'") == [(10000,)]


async def test_a_database_that_is_not_empty_is_left_alone(
    database_url: str, empty_url: str, tmp_path: Path
) -> None:
    await saved(database_url, tmp_path / "backup")
    await rows(empty_url, "CREATE TABLE accounts (whose text)")
    await rows(empty_url, "INSERT INTO accounts VALUES ('somebody''s')")
    with pytest.raises(StoreError, match=r"not empty: it has accounts \(1 in all\)$"):
        await load(empty_url, tmp_path / "backup")
    assert await rows(empty_url, "SELECT * FROM accounts") == [("somebody's",)]
    assert await rows(empty_url, "SELECT FROM pg_tables WHERE schemaname = 'messenger'") == []


async def test_two_at_once_do_not_mix(database_url: str, empty_url: str, tmp_path: Path) -> None:
    await saved(database_url, tmp_path / "backup")
    results = await asyncio.gather(
        *(load(empty_url, tmp_path / "backup") for _ in range(3)), return_exceptions=True
    )
    refused = [result for result in results if result is not None]
    assert len(refused) == 2
    assert all("the database is not empty" in str(error) for error in refused)


async def test_a_database_without_tables_cannot_be_saved(empty_url: str, tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="nothing to save"):
        await saved(empty_url, tmp_path / "backup")
    assert files_in(tmp_path) == []


async def test_what_came_back_otherwise_is_undone(
    database_url: str, empty_url: str, tmp_path: Path
) -> None:
    await rows(database_url, "INSERT INTO login_failures VALUES ('ada', 'here', '{}')")
    manifest = await saved(database_url, tmp_path / "backup")
    for lie, complaint in [
        ({"tables": {"public.login_failures": 2}}, "login_failures: rows: '1' came back, '2' were"),
        ({"figures": {"audit log: head": "0 it's"}}, "audit log: head: '0 0000"),
    ]:
        changed = msgspec.structs.replace(manifest, **lie)
        with (tmp_path / "backup").open("rb") as file, pytest.raises(StoreError, match=complaint):
            await restore.load(empty_url, file, changed, nothing)
        assert await is_empty(empty_url)
    await load(empty_url, tmp_path / "backup")


@pytest.mark.parametrize(
    ("damage", "complaint"),
    [
        (lambda data: data[:-1], "not a backup of Tapgate, or its end is missing"),
        (lambda data: data[: len(data) // 2], "not a backup of Tapgate, or its end is missing"),
        (lambda data: b"", "not a backup of Tapgate"),
        (lambda data: data[:3000] + bytes([data[3000] ^ 1]) + data[3001:], "damaged: its checksum"),
        (lambda data: data.replace(b'"postgres":', b'"postgrez":'), "damaged: its checksum"),
        (lambda data: data[:2000] + data[4000:], "damaged: its checksum"),
    ],
)
async def test_a_damaged_file_is_refused(
    database_url: str, damage: Callable[[bytes], bytes], complaint: str
) -> None:
    whole = io.BytesIO()
    await save(database_url, whole, nothing)
    assert read_manifest(whole).archive_bytes > 4000
    with pytest.raises(StoreError, match=complaint):
        read_manifest(io.BytesIO(damage(whole.getvalue())))


def test_a_format_of_the_future_is_refused() -> None:
    file = io.BytesIO()
    writer = BackupWriter(file)
    writer.write(b"something else\n")
    writer.write(b'{"format":2}\n')
    digest = writer._hash.hexdigest()
    file.write(f"tapgate-backup sha256={digest}\n".encode())
    with pytest.raises(StoreError, match="made by a newer Tapgate"):
        read_manifest(file)


async def test_what_could_not_be_run_is_refused(database_url: str) -> None:
    manifest = await save(database_url, io.BytesIO(), nothing)
    fits = {"secret_fingerprint": "ab12", "currency": "SLE"}
    installed = msgspec.structs.replace(manifest, secret_fingerprint="ab12", currency="SLE")
    restore.refuse_unfit(manifest, **fits)
    restore.refuse_unfit(installed, **fits)
    for given, complaint in [
        (fits | {"secret_fingerprint": "cd34"}, "secret key ab12, and that of these settings"),
        (fits | {"currency": "EUR"}, "currency is SLE"),
    ]:
        with pytest.raises(StoreError, match=complaint):
            restore.refuse_unfit(installed, **given)
    newer = msgspec.structs.replace(manifest, migrations=manifest.migrations | {"9999.sql": "x"})
    with pytest.raises(StoreError, match=r"newer than this Tapgate: it has 9999\.sql"):
        restore.refuse_unfit(newer, **fits)
    with pytest.raises(StoreError, match="the clock of this machine is behind"):
        early = manifest.moment - timedelta(seconds=1)
        restore.refuse_unfit(manifest, **fits, clock=lambda: early)


async def test_cancelled_at_any_time_it_leaves_nothing_or_is_done(
    world: World, database_url: str, empty_url: str, tmp_path: Path
) -> None:
    await world.subscriber(balance="100.00")
    await saved(database_url, tmp_path / "backup")
    for milliseconds in (1, 30, 60, 120, 240):
        task = asyncio.create_task(load(empty_url, tmp_path / "backup"))
        await asyncio.sleep(milliseconds / 1000)
        task.cancel()
        try:
            await task
        except asyncio.CancelledError:
            await quiet(empty_url)
            assert await is_empty(empty_url)
        else:
            break  # the interrupt came too late
    else:
        await load(empty_url, tmp_path / "backup")
    assert await rows(empty_url, "SELECT balance FROM accounts WHERE kind = 'wallet'") == [(10000,)]


@pytest.fixture
def after_psql(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Lets something happen after `psql` has done its work and before anybody hears of it."""

    def append(command: str) -> None:
        programs = tmp_path / "programs"
        programs.mkdir()
        (programs / "pg_restore").symlink_to(PROGRAMS / "pg_restore")
        script = programs / "psql"
        script.write_text(f'#!/bin/sh\n"{PROGRAMS}/psql" "$@"\n{command}\n')
        script.chmod(0o700)
        monkeypatch.setattr(restore, "PROGRAMS", programs)

    return append


async def test_what_was_committed_is_restored_whatever_its_program_says(
    database_url: str,
    empty_url: str,
    tmp_path: Path,
    after_psql: Callable[[str], None],
) -> None:
    """The connection may be lost, or the status taken by another, behind the commit."""
    await saved(database_url, tmp_path / "backup")
    after_psql("exit 255")
    await load(empty_url, tmp_path / "backup")
    assert not await is_empty(empty_url)
    with pytest.raises(StoreError, match="nothing was restored: the database is not empty"):
        await load(empty_url, tmp_path / "backup")


async def test_behind_the_commit_it_cannot_be_cancelled(
    database_url: str,
    empty_url: str,
    tmp_path: Path,
    after_psql: Callable[[str], None],
) -> None:
    """Otherwise whoever interrupts it is told that nothing was restored."""
    await saved(database_url, tmp_path / "backup")
    after_psql("while :; do sleep 0.01; done")
    task = asyncio.create_task(load(empty_url, tmp_path / "backup"))
    while await is_empty(empty_url):
        await asyncio.sleep(0.01)
    task.cancel()
    await task


async def quiet(url: str) -> None:
    """Wait until PostgreSQL has noticed who has gone."""
    while await rows(
        url,
        """SELECT FROM pg_stat_activity
           WHERE datname = current_database() AND pid <> pg_backend_pid()""",
    ):
        await asyncio.sleep(0.01)


def test_a_file_has_its_name_when_it_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "backup"
    with pytest.raises(RuntimeError), new_file(path, replace=False) as file:
        file.write(b"half")
        raise RuntimeError
    assert list(tmp_path.iterdir()) == []
    with new_file(path, replace=False) as file:
        file.write(b"first")
        assert not path.exists()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    with pytest.raises(StoreError, match="--force replaces it"), new_file(path, replace=False):
        pass
    with new_file(path, replace=True) as file:
        file.write(b"second")
        assert path.read_bytes() == b"first"
    assert path.read_bytes() == b"second"
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_that_came_up_meanwhile_is_not_replaced(tmp_path: Path) -> None:
    path = tmp_path / "backup"
    with pytest.raises(StoreError, match="exists already"), new_file(path, replace=False):
        path.write_bytes(b"another's")
    assert path.read_bytes() == b"another's"
    assert list(tmp_path.iterdir()) == [path]


def test_a_folder_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / "nowhere" / "backup"
    with (
        pytest.raises(StoreError, match="cannot be written: No such file"),
        new_file(path, replace=False),
    ):
        pass


@pytest.fixture
async def by_password(data_dir: Path) -> AsyncIterator[str]:
    """A server that is reached by TCP, as a user who owns a database and is nobody else."""
    server = EmbeddedPostgres(data_dir)
    quoted = PASSWORD.replace("'", "''")
    try:
        url = server.start()
        await rows(url, f"CREATE ROLE shop LOGIN PASSWORD '{quoted}'")
        for name in ("one", "two"):
            await rows(url, f"CREATE DATABASE {name} OWNER shop")
    finally:
        server.stop()
    pgdata, port = data_dir / "pgdata", free_port()
    (pgdata / "pg_hba.conf").write_text("host all shop 127.0.0.1/32 scram-sha-256\n")
    process = await asyncio.create_subprocess_exec(
        PROGRAMS / "postgres",
        *("-D", pgdata, "-c", "listen_addresses=127.0.0.1", "-c", f"port={port}", "-k", ""),
        stderr=asyncio.subprocess.PIPE,
        **server_user(pgdata).popen_arguments(),
    )
    try:
        assert process.stderr is not None
        while b"ready to accept" not in (line := await process.stderr.readline()):
            assert line
        yield (
            f"postgresql://shop:{quote(PASSWORD, safe='')}@127.0.0.1:{port}/one"
            "?sslmode=disable&lock_timeout=60000"
        )
    finally:
        process.terminate()
        await process.communicate()


async def test_by_url_with_a_password(by_password: str, tmp_path: Path) -> None:
    other = by_password.replace("/one?", "/two?")
    await migrate(by_password)
    await rows(by_password, "INSERT INTO login_failures VALUES ('ada', 'here', '{}')")
    await saved(by_password, tmp_path / "backup")
    await load(other, tmp_path / "backup")
    assert await rows(other, "SELECT email FROM login_failures") == [("ada",)]
    owners = await rows(
        other, "SELECT DISTINCT tableowner FROM pg_tables WHERE schemaname='public'"
    )
    assert owners == [("shop",)]
    wrong = by_password.replace(quote(PASSWORD, safe=""), "wrong")
    with pytest.raises(StoreError, match="the database cannot be reached: password"):
        await saved(wrong, tmp_path / "other")
    assert not (tmp_path / "other").exists()


async def test_a_server_that_is_lost_on_the_way_is_one_line(
    postgres: str, database_url: str, empty_url: str, tmp_path: Path
) -> None:
    """Its sessions are ended while it is being saved, and while it is being filled: each is met
    where it waits for somebody, since it may be over sooner than it is looked for."""
    await saved(database_url, tmp_path / "backup")

    async def end_all(name: str) -> None:
        while not await rows(
            postgres,
            f"""SELECT pg_terminate_backend(pid) FROM pg_stat_activity
                WHERE datname = '{name}' AND application_name IN ('pg_dump', 'psql')
                  AND wait_event_type = 'Lock'""",
        ):
            await asyncio.sleep(0.01)

    async with in_the_way(database_url, "DROP SEQUENCE process_slots"):
        ending = asyncio.create_task(end_all(name_of(database_url)))
        with pytest.raises(StoreError, match="pg_dump failed: ") as refused:
            await saved(database_url, tmp_path / "other")
        await ending
    assert "\n" not in str(refused.value)
    assert files_in(tmp_path) == ["backup"]
    async with in_the_way(empty_url, f"SELECT pg_advisory_xact_lock({LOCK_KEY})"):
        ending = asyncio.create_task(end_all(name_of(empty_url)))
        with pytest.raises(StoreError, match="nothing was restored: "):
            await load(empty_url, tmp_path / "backup")
        await ending
    assert await is_empty(empty_url)


@contextlib.asynccontextmanager
async def in_the_way(url: str, sql: str) -> AsyncIterator[None]:
    """Of whoever wants the same, until it is taken back."""
    connection = await asyncpg.connect(url)
    try:
        await connection.execute(f"BEGIN; {sql}")
        yield
    finally:
        await connection.close()


def name_of(url: str) -> str:
    return url.partition("@/")[2].partition("?")[0]
