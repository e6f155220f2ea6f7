"""Base backups and streaming standbys for an embedded PostgreSQL server."""

import shutil
import signal
import subprocess
from pathlib import Path

from tapgate.runtime.store.embedded import SUPERUSER, EmbeddedPostgres, prepare_programs
from tapgate.runtime.store.server_user import resolve_server_user

_STOP_SIGNAL_TIMEOUT_SECONDS = 30


def take_base_backup(
    primary: EmbeddedPostgres, folder: Path, *options: str, name: str = "backup"
) -> None:
    """Copy the server's files into a new folder that its user owns, while it runs."""
    user = resolve_server_user(primary.data_dir / "pgdata")
    # The server's user connects to the primary's socket, in the current user's folder.
    for parent in (folder.parent, primary.data_dir):
        parent.chmod(0o711)
    folder.mkdir(mode=0o700)
    user.chown(folder)
    source = f"host={primary.data_dir / 'pgdata'} user={SUPERUSER} application_name={name}"
    subprocess.run(
        [
            prepare_programs(user) / "pg_basebackup",
            f"--dbname={source}",
            f"--pgdata={folder}",
            "--checkpoint=fast",
            "--no-sync",
            *options,
        ],
        check=True,
        cwd="/",
        **user.popen_arguments(),
    )
    for leftover in folder.glob(".s.PGSQL*"):
        leftover.unlink()


class Standby:
    """Standby with its own data folder, connected to the primary's socket under its name."""

    def __init__(self, primary: EmbeddedPostgres, folder: Path, name: str = "standby") -> None:
        self._pgdata = folder
        self._user = resolve_server_user(primary.data_dir / "pgdata")
        self._programs = prepare_programs(self._user)
        self._process: subprocess.Popen[bytes] | None = None
        take_base_backup(primary, folder, "--write-recovery-conf", name=name)

    def start(self) -> None:
        self._process = subprocess.Popen(
            [
                *(self._programs / "postgres", "-D", self._pgdata, "-k", self._pgdata),
                *("-c", "listen_addresses=", "-c", "fsync=off", "-c", "max_connections=200"),
            ],
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            **self._user.popen_arguments(),
        )

    def stop(self) -> None:
        if self._process is not None:
            self._process.send_signal(signal.SIGINT)  # fast shutdown
            self._process.wait(_STOP_SIGNAL_TIMEOUT_SECONDS)
            self._process = None

    def remove(self) -> None:
        self.stop()
        shutil.rmtree(self._pgdata, ignore_errors=True)
