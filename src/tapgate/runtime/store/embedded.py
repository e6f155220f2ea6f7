"""Embedded PostgreSQL: a regular server in the data folder, owned by this process.

The server has no TCP port. Its socket is in a folder that is accessible only to the folder's owner,
so only the server's user and root can connect.
"""

import contextlib
import hashlib
import os
import shutil
import signal
import stat
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psutil

from tapgate.runtime.store import FolderInUseError, StoreError
from tapgate.runtime.store.file_lock import FileLock
from tapgate.runtime.store.postgres_programs import POSTGRES_PACKAGE, find_programs_dir
from tapgate.runtime.store.server_user import ServerUser, resolve_server_user

DATABASE_NAME = "tapgate"
SUPERUSER = "postgres"

_SOCKET_NAME = ".s.PGSQL.5432"
_SOCKET_PATH_LIMIT = 100  # Linux allows 107 bytes, macOS 103
_START_TIMEOUT_SECONDS = 300.0  # crash recovery may take minutes
_STOP_TIMEOUT_SECONDS = 60.0
_ENVIRONMENT = {"PATH": os.defpath, "LC_ALL": "C"}
CONTAINER_MEMORY_FILE = Path("/sys/fs/cgroup/memory.max")
_CREATE_DATABASE = f"""
    SELECT 'CREATE DATABASE {DATABASE_NAME}'
    WHERE NOT EXISTS (SELECT FROM pg_database WHERE datname = '{DATABASE_NAME}') \\gexec
"""


#: Folder for copies of the programs, used if the server's user cannot read the package. Not in the
#: data folder, which other users cannot access.
PROGRAM_COPIES_DIR = Path("/var/lib/tapgate-programs")


class EmbeddedPostgres:
    """Server on one data folder, owned by the process that holds the folder's lock."""

    def __init__(self, data_dir: Path) -> None:
        self.data_dir = data_dir.resolve()
        self._pgdata = self.data_dir / "pgdata"
        self._owner_lock = FileLock(self.data_dir / "lock")
        # All server processes inherit this lock, so it is held until the last of them exits.
        self._server_lock = FileLock(self.data_dir / "pgdata.lock")
        self.server: subprocess.Popen[bytes] | None = None
        self._socket_dir = self._choose_socket_dir()

    @property
    def url(self) -> str:
        host = quote(str(self._socket_dir), safe="/")
        return f"postgresql://{SUPERUSER}@/{DATABASE_NAME}?host={host}"

    @property
    def is_alive(self) -> bool:
        return self.server is not None and self.server.poll() is None

    def start(self) -> str:
        """Start the server, create the database if necessary, and return its URL.

        Can be called again after the server has died. Raise FolderInUseError if another process
        holds the data folder, or StoreError if the server is not installed or does not start.
        """
        if self.is_alive:
            return self.url
        find_programs_dir()
        try:
            self.data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
            if not self._owner_lock.acquire():
                raise FolderInUseError(
                    f"another Tapgate instance is already using {self.data_dir}. "
                    "Stop it, or set TAPGATE_DATA_DIR to another folder"
                )
            self._start_server()
        except OSError as error:
            self.stop()
            raise StoreError(f"PostgreSQL cannot be started: {error}") from error
        except BaseException:
            self.stop()
            raise
        return self.url

    def stop(self) -> None:
        """Shut down the server, by force after a timeout, and release the data folder."""
        if self.server is not None:
            if self.server.poll() is None:
                self.server.send_signal(signal.SIGINT)  # fast shutdown
            try:
                self.server.wait(_STOP_TIMEOUT_SECONDS)
            except subprocess.TimeoutExpired:
                self.server.kill()  # no data loss: the next start recovers from the WAL
                self.server.wait()
            self.server = None
            if self._socket_dir != self._pgdata:
                shutil.rmtree(self._socket_dir, ignore_errors=True)
        self._server_lock.release()
        self._owner_lock.release()

    def _start_server(self) -> None:
        user = resolve_server_user(self._pgdata)
        programs = prepare_programs(user)
        self._stop_previous_server()
        if not self._pgdata.exists():
            self._create_cluster(user, programs)
        if self._socket_dir != self._pgdata:
            _ensure_private_folder(self._socket_dir, user)
        (self._socket_dir / f"{_SOCKET_NAME}.lock").unlink(missing_ok=True)  # stale
        self.server = self._launch(user, programs)
        self._wait_until_ready(self.server)
        psql = find_programs_dir() / "psql"
        _run_program(
            [psql, f"--host={self._socket_dir}", f"--username={SUPERUSER}", "-qX"],
            stdin=_CREATE_DATABASE,
        )

    def _stop_previous_server(self) -> None:
        """Stop a killed Tapgate process's server and remove its stale PID file."""
        self._server_lock.release()
        deadline = time.monotonic() + _STOP_TIMEOUT_SECONDS
        is_signaled = False
        while not self._server_lock.acquire():
            postmaster = self._find_previous_postmaster()
            if postmaster is not None and not is_signaled:
                postmaster.send_signal(signal.SIGINT)
                is_signaled = True
            if time.monotonic() > deadline:
                raise StoreError(f"a previous PostgreSQL is still running on {self._pgdata}")
            time.sleep(0.02)
        # No server runs on this folder. PostgreSQL cannot determine that from its PID file, because
        # the PID may have been reused by another program.
        (self._pgdata / "postmaster.pid").unlink(missing_ok=True)

    def _find_previous_postmaster(self) -> psutil.Process | None:
        try:
            process = psutil.Process(int(self._read_postmaster_file()[0]))
            return process if process.cwd() == str(self._pgdata) else None
        except (ValueError, psutil.Error):
            return None

    def _create_cluster(self, user: ServerUser, programs: Path) -> None:
        """Create the cluster atomically: it gets its final name only when complete."""
        unfinished = self.data_dir / "pgdata.unfinished"
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir(mode=0o700)
        user.chown(unfinished)
        with _open_reachable_path(unfinished, user) as (path, descriptors):
            command: list[str | Path] = [
                programs / "initdb",
                f"--pgdata={path}",
                f"--username={SUPERUSER}",
                "--auth-local=trust",
                "--auth-host=reject",
                "--encoding=UTF8",
                "--locale-provider=builtin",
                "--builtin-locale=C.UTF-8",
                "--locale=C",
                "--no-instructions",
            ]
            _run_program(command, pass_fds=descriptors, **user.popen_arguments())
        unfinished.rename(self._pgdata)

    def _choose_socket_dir(self) -> Path:
        """Return the cluster's folder, or a temporary one if the path is too long or has commas."""
        path = str(self._pgdata)
        if "," not in path and len(os.fsencode(path)) + len(_SOCKET_NAME) < _SOCKET_PATH_LIMIT:
            return self._pgdata
        name = hashlib.sha256(os.fsencode(path)).hexdigest()[:16]
        return Path(tempfile.gettempdir()) / f"tapgate-{name}"

    def _launch(self, user: ServerUser, programs: Path) -> subprocess.Popen[bytes]:
        flags = [
            flag
            for item in build_server_settings(self.data_dir).items()
            for flag in ("-c", "=".join(item))
        ]
        with (
            open(self._log_path, "ab", opener=_open_private) as log,
            _open_reachable_path(self._pgdata, user) as (pgdata, descriptors),
        ):
            sockets = pgdata if self._socket_dir == self._pgdata else self._socket_dir
            return subprocess.Popen(  # noqa: S603
                [programs / "postgres", "-D", pgdata, "-k", sockets, *flags],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd="/",
                env=_ENVIRONMENT,
                # Ctrl-C in the terminal must reach only Tapgate, which stops the server last.
                start_new_session=True,
                pass_fds=(self._server_lock.fileno(), *descriptors),
                **user.popen_arguments(),
            )

    def _wait_until_ready(self, server: subprocess.Popen[bytes]) -> None:
        deadline = time.monotonic() + _START_TIMEOUT_SECONDS
        while self._read_postmaster_file()[0::7] != [str(server.pid), "ready"]:
            if server.poll() is not None:
                raise StoreError(f"PostgreSQL did not start: {self._read_startup_error()}")
            if time.monotonic() > deadline:
                raise StoreError(f"PostgreSQL did not start in time. See {self._log_path}")
            time.sleep(0.01)

    def _read_postmaster_file(self) -> list[str]:
        """Return the first eight lines of postmaster.pid: line 1 is the PID, line 8 the state."""
        try:
            lines = (self._pgdata / "postmaster.pid").read_text().split("\n")
        except FileNotFoundError:
            return [""]
        return [line.strip() for line in lines[:8]]

    @property
    def _log_path(self) -> Path:
        return self.data_dir / "postgres.log"

    def _read_startup_error(self) -> str:
        lines = self._log_path.read_text(errors="replace").splitlines()
        fatal = [line for line in lines if "FATAL:" in line]
        return fatal[-1].partition("FATAL:")[2].strip() if fatal else f"see {self._log_path}"


def _ensure_private_folder(folder: Path, user: ServerUser) -> None:
    if not folder.exists():
        folder.mkdir(mode=0o700)
        user.chown(folder)
    status = folder.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != user.uid or status.st_mode & 0o077:
        raise StoreError(f"{folder} is not private to the PostgreSQL user. Remove it")


def _open_private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


@contextlib.contextmanager
def _open_reachable_path(folder: Path, user: ServerUser) -> Iterator[tuple[Path, tuple[int, ...]]]:
    """Yield a path to `folder` that `user` can access, and the descriptors to pass with it.

    Other users often cannot access root's folders (`/root` has mode 0700). Changing such a folder's
    mode would expose its other contents, so the server inherits an open descriptor for `folder`
    instead. Linux resolves `/proc/self/fd/N` without searching the parent folders.
    """
    if user.can_search(folder):
        yield folder, ()
        return
    if not Path("/proc/self/fd").is_dir():
        raise StoreError(
            f"PostgreSQL cannot run as root, and its system user cannot access {folder}. Start"
            " Tapgate as a regular user, or set TAPGATE_DATA_DIR to a folder such as"
            " /var/lib/tapgate"
        )
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield Path(f"/proc/self/fd/{descriptor}"), (descriptor,)
    finally:
        os.close(descriptor)


def prepare_programs(user: ServerUser) -> Path:
    """Return the folder with PostgreSQL programs that `user` can run, copying them if necessary.

    If the package is in a private folder, its programs are copied, once per installed version, to a
    folder that root owns and all users can read.
    """
    programs = find_programs_dir()
    site_packages = programs.parents[2]
    libraries = site_packages / f"{POSTGRES_PACKAGE}.libs"
    sources = [folder for folder in (programs.parent, libraries) if folder.exists()]
    if user.is_current_user or all(user.can_run(folder) for folder in sources):
        return programs
    status = (programs / "postgres").stat()
    key = f"{programs}:{status.st_mtime_ns}:{status.st_size}".encode()
    target = PROGRAM_COPIES_DIR / f"postgresql-{hashlib.sha256(key).hexdigest()[:16]}"
    try:
        if not target.exists():
            PROGRAM_COPIES_DIR.mkdir(parents=True, exist_ok=True)
            PROGRAM_COPIES_DIR.chmod(0o755)  # regardless of the umask
            with tempfile.TemporaryDirectory(dir=PROGRAM_COPIES_DIR) as temporary_dir:
                copy = Path(temporary_dir) / "copy"
                for folder in sources:
                    _copy_readable(folder, copy / folder.relative_to(site_packages))
                with contextlib.suppress(FileExistsError, OSError):
                    copy.rename(target)  # fails if another process was faster
        copies = [target / folder.relative_to(site_packages) for folder in sources]
        can_run = all(user.can_run(folder) for folder in copies)
    except OSError as error:
        raise StoreError(
            f"PostgreSQL's system user cannot run the programs in {programs}, and they cannot"
            f" be copied to {PROGRAM_COPIES_DIR}: {error.strerror or error}. Start Tapgate as a"
            " regular user"
        ) from error
    if not can_run:
        raise StoreError(
            f"PostgreSQL's system user cannot run the programs in {programs} or their copy in"
            f" {target}. Make {PROGRAM_COPIES_DIR} accessible to all users, or start Tapgate as"
            " a regular user"
        )
    return target / programs.relative_to(site_packages)


def _copy_readable(source: Path, target: Path) -> None:
    """Copy a folder, following symbolic links, and make the copy readable for all users."""
    shutil.copytree(source, target, ignore_dangling_symlinks=True)
    for path in (target, *target.rglob("*")):
        path.chmod(0o755 if path.stat().st_mode & stat.S_IXUSR else 0o644)
    for parent in (target.parent, target.parent.parent):
        parent.chmod(0o755)


def _run_program(command: Sequence[str | Path], *, stdin: str = "", **options: Any) -> None:
    result = subprocess.run(  # noqa: S603
        command,
        input=stdin,
        capture_output=True,
        text=True,
        check=False,
        cwd="/",
        env=_ENVIRONMENT,
        **options,
    )
    if result.returncode != 0:
        errors = result.stderr.strip().splitlines() or [f"exit status {result.returncode}"]
        raise StoreError(f"{Path(command[0]).name} failed: {errors[-1]}")


def build_server_settings(data_dir: Path) -> dict[str, str]:
    """Return settings sized to the machine. The durability settings keep their defaults (on)."""
    memory_mib = get_memory_bytes() >> 20
    disk_mib = shutil.disk_usage(data_dir).total >> 20
    return {
        "listen_addresses": "",
        "max_connections": "200",
        "shared_buffers": f"{min(8192, max(64, memory_mib // 4))}MB",
        "effective_cache_size": f"{max(128, memory_mib // 2)}MB",
        "random_page_cost": "1.1",
        # The packaged server has only pglz. On a large database, after a checkpoint, it took a
        # third of PostgreSQL's CPU time per payment, to make the WAL a quarter smaller.
        "wal_compression": "off",
        "min_wal_size": "256MB",
        # Checkpoints are made by time. After each of them, the first change to a page logs the
        # whole page: with random idempotency keys and years of data, one page per payment.
        "max_wal_size": f"{min(16384, max(1024, disk_mib // 16))}MB",
        "checkpoint_timeout": "15min",
        "jit": "off",
        "timezone": "UTC",
        "log_timezone": "UTC",
        # Do not log statement errors: they may contain personal data, and the gateway receives
        # them anyway.
        "log_min_messages": "log",
        "log_error_verbosity": "terse",
        "log_checkpoints": "off",
    }


def get_memory_bytes() -> int:
    """Return the machine's memory, or the container's if it has less."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    with contextlib.suppress(OSError, ValueError):  # no container, or no limit ("max")
        memory = min(memory, int(CONTAINER_MEMORY_FILE.read_text()))
    return memory
