"""Cluster processes: started in their own sessions, restarted, suspended and killed."""

import asyncio
import contextlib
import os
import signal
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

import psutil

from tapgate.runtime.store.server_user import ServerUser

_INHERITED_VARIABLES: Final = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "TZ")


class NodeProcess:
    """A process with all its descendants, and the PostgreSQL server that it manages, if any."""

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        folder: Path,
        *,
        environ: Mapping[str, str],
        user: ServerUser | None = None,
        pgdata: Path | None = None,
    ) -> None:
        self.name = name
        self.start_count = 0
        #: False while the process must stay down, for example during a simulated outage.
        self.is_wanted = False
        self.is_suspended = False
        self._command = command
        self._folder = folder
        self._environ = environ
        self._user = user
        self._pgdata = pgdata
        self._process: psutil.Popen | None = None

    @property
    def log(self) -> Path:
        return self._folder / "log"

    @property
    def pid(self) -> int | None:
        return None if self._process is None else self._process.pid

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        self.is_wanted = True
        if self.is_running:
            return
        self.start_count += 1
        inherited = {name: os.environ[name] for name in _INHERITED_VARIABLES if name in os.environ}
        options = {} if self._user is None else self._user.popen_arguments()
        with self.log.open("ab") as log:
            self._process = psutil.Popen(
                self._command,
                env=inherited | dict(self._environ),
                cwd=self._folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,  # Ctrl-C reaches only the cluster, which stops in order
                **options,
            )

    def terminate(self) -> None:
        """Request a graceful shutdown; `wait` waits for it."""
        self.is_wanted = False
        self.resume()
        if self._process is not None:
            with contextlib.suppress(psutil.NoSuchProcess):
                self._process.terminate()

    async def wait(self, timeout_seconds: float) -> None:
        """Wait for the end of all processes, and kill them after the timeout."""
        if self._process is not None:
            with contextlib.suppress(psutil.Error):
                await asyncio.to_thread(self._process.wait, timeout_seconds)
        await asyncio.to_thread(self.kill)

    def kill(self) -> None:
        """Kill all processes immediately."""
        processes = self.list_processes()
        send_signal(processes, signal.SIGKILL)
        psutil.wait_procs(processes, timeout=5)
        if self._process is not None:
            self._process.poll()  # collect the exit status
        self.is_suspended = False

    def suspend(self) -> None:
        """Stop all processes until `resume`, as if the machine did not respond."""
        self.is_suspended = True
        send_signal(self.list_processes(), signal.SIGSTOP)

    def resume(self) -> None:
        if self.is_suspended:
            self.is_suspended = False
            send_signal(self.list_processes(), signal.SIGCONT)

    def list_processes(self) -> list[psutil.Process]:
        """Return the process and its descendants, parents first."""
        roots = []
        if self._process is not None:
            with contextlib.suppress(psutil.NoSuchProcess):
                roots.append(psutil.Process(self._process.pid))
        if postmaster := self.find_postmaster():
            roots.append(postmaster)
        found = []
        for root in roots:
            with contextlib.suppress(psutil.NoSuchProcess):
                found += [root, *root.children(recursive=True)]
        return found

    def find_postmaster(self) -> psutil.Process | None:
        """Return the server on the data folder. It is not a child of Patroni."""
        return None if self._pgdata is None else find_postmaster(self._pgdata)


def find_postmaster(pgdata: Path) -> psutil.Process | None:
    try:
        pid = int((pgdata / "postmaster.pid").read_text().partition("\n")[0])
        process = psutil.Process(pid)
        return process if process.cwd() == str(pgdata) else None
    except (OSError, ValueError, psutil.Error):
        return None


def send_signal(processes: Iterable[psutil.Process], number: signal.Signals) -> None:
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.send_signal(number)
