"""A gateway on its embedded PostgreSQL, started as an operator would, and its processes.

Only processes started here are ever killed.
"""

import asyncio
import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import IO, Final

import psutil

from drivers.forked import build_worker_name
from drivers.processes import ADMIN, TAPGATE_EXECUTABLE, free_port
from tapgate.runtime.store.embedded import EmbeddedPostgres
from tapgate_sandbox.clock import FILE_NAME, write_offset
from torture.client_connection import ClientConnection, ConnectFailedError, NoResponseError

WORKERS: Final = 2
_MODULE: Final = "tapgate_sandbox.gateway"
_HEALTHY_TIMEOUT_SECONDS: Final = 60.0
_STOP_TIMEOUT_SECONDS: Final = 30.0
_NO_LIMIT: Final = "1000000"
_HEALTH_REQUEST: Final = b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"


class UnhealthyError(Exception):
    """The gateway did not recover without intervention."""


class Installation:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.chmod(0o755)  # PostgreSQL may run as another user
        self.port = free_port()
        self.database_url = EmbeddedPostgres(folder / "data").url
        self._supervisor: psutil.Process | None = None
        self._log = folder / "gateway.log"
        self._log_offset = 0
        self._seen_processes: dict[int, psutil.Process] = {}

    def list_ports(self, client: int) -> Sequence[int]:
        return [self.port]

    def set_clock(self, offset: timedelta) -> None:
        """Shift the gateway's clock."""
        file = self.folder / "data" / FILE_NAME
        file.parent.mkdir(exist_ok=True)
        write_offset(file, offset.total_seconds())

    def start(self) -> None:
        if not self._log.exists():
            self.set_clock(timedelta())
        if self._log.exists():
            self._log_offset = self._log.stat().st_size
        stored = {name: value for name, value in os.environ.items() if "TAPGATE" not in name}
        with self._log.open("ab") as log:
            self._supervisor = self._spawn(
                stored
                | {
                    "TAPGATE_DATA_DIR": str(self.folder / "data"),
                    "TAPGATE_PORT": str(self.port),
                    "TAPGATE_WORKERS": str(WORKERS),
                    "TAPGATE_REPORT_WORKERS": "0",  # all processes may be killed as gateways
                    "TAPGATE_ADMIN_EMAIL": ADMIN["email"],
                    "TAPGATE_ADMIN_PASSWORD": ADMIN["password"],
                    "TAPGATE_RATE_LIMIT": _NO_LIMIT,
                    "TAPGATE_RATE_BURST": _NO_LIMIT,
                    "TAPGATE_DEMO": "off",
                    "TAPGATE_RECEIPTS": "off",
                    "TAPGATE_BANK_ACCOUNT_COOLDOWN": "0",
                },
                log,
            )

    def _spawn(self, environ: Mapping[str, str], log: IO[bytes]) -> psutil.Process:
        return psutil.Popen(
            [TAPGATE_EXECUTABLE, "serve"],
            env=environ,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,  # Ctrl-C does not reach it; `stop` ends it
        )

    def stop(self) -> None:
        """Shut down gracefully, and kill processes that do not exit."""
        if self._supervisor is None:
            return
        self.list_processes()
        with contextlib.suppress(psutil.NoSuchProcess, psutil.TimeoutExpired):
            self._supervisor.terminate()
            self._supervisor.wait(_STOP_TIMEOUT_SECONDS)
        kill(list(self._seen_processes.values()))
        self._supervisor = None

    @property
    def supervisor(self) -> psutil.Process:
        assert self._supervisor is not None
        return psutil.Process(self._supervisor.pid)

    def list_processes(self) -> list[psutil.Process]:
        """Return all processes, the supervisor first, or none if the supervisor has exited."""
        with contextlib.suppress(psutil.NoSuchProcess):
            found = [self.supervisor, *self.supervisor.children(recursive=True)]
            self._seen_processes |= {item.pid: item for item in found}
            return found
        return []

    def list_workers(self) -> list[psutil.Process]:
        return [
            item
            for item in self._list_children()
            if _get_name(item) == build_worker_name(_MODULE, str(self.port))
            or _MODULE in _get_command(item)
        ]

    def find_postmaster(self) -> psutil.Process | None:
        found = [item for item in self._list_children() if _get_name(item) == "postgres"]
        return found[0] if found else None

    def list_backends(self) -> list[psutil.Process]:
        """Return PostgreSQL's client sessions without its background processes."""
        postmaster = self.find_postmaster()
        if postmaster is None:
            return []
        with contextlib.suppress(psutil.NoSuchProcess):
            return [
                item for item in postmaster.children() if "[local]" in " ".join(_get_command(item))
            ]
        return []

    def _list_children(self) -> list[psutil.Process]:
        with contextlib.suppress(psutil.NoSuchProcess):
            found: list[psutil.Process] = self.supervisor.children()
            return found
        return []

    def restart(self) -> None:
        """Start again after the supervisor was killed."""
        assert self._supervisor is not None
        self._supervisor.wait(_STOP_TIMEOUT_SECONDS)
        self.start()

    async def wait_until_healthy(self, *, workers: int = 1) -> None:
        """Wait for a healthy gateway with enough workers; raise UnhealthyError on timeout."""
        deadline = time.monotonic() + _HEALTHY_TIMEOUT_SECONDS
        while time.monotonic() < deadline:
            if (
                self._is_listening()
                and len(self.list_workers()) >= workers
                and await self._is_healthy()
            ):
                return
            await asyncio.sleep(0.02)
        raise UnhealthyError(f"not healthy after {_HEALTHY_TIMEOUT_SECONDS:.0f} seconds")

    def _is_listening(self) -> bool:
        """Return whether startup completed; before that, a worker's exit is a failed start."""
        if self._log_offset >= 0:
            with self._log.open("rb") as log:
                log.seek(self._log_offset)
                if b"The gateway listens" in log.read():
                    self._log_offset = -1
        return self._log_offset < 0

    async def _is_healthy(self) -> bool:
        connection = ClientConnection(self.port)
        try:
            return (await connection.send(_HEALTH_REQUEST)).status == 200
        except (ConnectFailedError, NoResponseError):
            return False
        finally:
            connection.close()


def kill(processes: list[psutil.Process]) -> None:
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.send_signal(signal.SIGKILL)


def _get_command(process: psutil.Process) -> list[str]:
    with contextlib.suppress(psutil.Error):
        command_line: list[str] = process.cmdline()
        return command_line
    return []


def _get_name(process: psutil.Process) -> str:
    with contextlib.suppress(psutil.Error):
        return str(process.name())
    return ""
