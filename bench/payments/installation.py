"""Gateway with an embedded PostgreSQL, started with `tapgate serve`, and its resource usage."""

import asyncio
import contextlib
import os
import socket
import sys
from collections.abc import AsyncIterator, Iterable, Mapping
from pathlib import Path

import psutil

from tapgate.runtime.store.embedded import EmbeddedPostgres

_TAPGATE_COMMAND = Path(sys.executable).with_name("tapgate")
_NO_LIMIT = "1000000"


class Installation:
    def __init__(self, data_dir: Path, port: int, environ: Mapping[str, str]) -> None:
        self.port = port
        self.environ = environ
        self.database_url = EmbeddedPostgres(data_dir).url
        self._supervisor: psutil.Process | None = None

    def attach(self, pid: int) -> None:
        self._supervisor = psutil.Process(pid)

    @property
    def _children(self) -> list[psutil.Process]:
        assert self._supervisor is not None
        children: list[psutil.Process] = self._supervisor.children()
        return children

    @property
    def workers(self) -> list[psutil.Process]:
        return [child for child in self._children if child.name() != "postgres"]

    @property
    def _postmaster(self) -> psutil.Process:
        return next(child for child in self._children if child.name() == "postgres")

    @property
    def postgres_processes(self) -> list[psutil.Process]:
        postmaster = self._postmaster
        return [postmaster, *postmaster.children()]

    def get_worker_seconds(self) -> list[float]:
        """Return the CPU time used so far by each worker."""
        return [_get_cpu_seconds(worker) for worker in self.workers]

    def get_postgres_seconds(self) -> float:
        """Return the CPU time of all PostgreSQL processes, including those that have exited."""
        postmaster = self._postmaster
        times = postmaster.cpu_times()
        exited = getattr(times, "children_user", 0.0) + getattr(times, "children_system", 0.0)
        return float(
            _get_cpu_seconds(postmaster)
            + exited
            + sum(map(_get_cpu_seconds, postmaster.children()))
        )

    def get_workers_mb(self) -> list[float]:
        return [_to_megabytes(worker.memory_info().rss) for worker in self.workers]

    def get_postgres_mb(self) -> float:
        return _to_megabytes(_sum_proportional_memory(self.postgres_processes))


def _get_cpu_seconds(process: psutil.Process) -> float:
    try:
        times = process.cpu_times()
    except psutil.NoSuchProcess:  # exited since, so the postmaster's child times include it
        return 0.0
    return float(times.user + times.system)


def _sum_proportional_memory(processes: Iterable[psutil.Process]) -> int:
    """Return the total memory, with shared memory divided among processes where supported."""
    total = 0
    for process in processes:
        with contextlib.suppress(psutil.Error):
            memory = process.memory_full_info()
            total += getattr(memory, "pss", memory.rss)
    return total


def _to_megabytes(count: int) -> float:
    return round(count / 1e6, 1)


@contextlib.asynccontextmanager
async def run_installation(
    folder: Path,
    *,
    workers: int,
    settings: Mapping[str, str] | None = None,
    port: int | None = None,
) -> AsyncIterator[Installation]:
    """Run a gateway, and stop it with SIGTERM at the end. `settings` are added to its own."""
    data_dir, port = folder / "data", port or find_free_port()
    inherited = {
        name: value for name, value in os.environ.items() if not name.startswith("TAPGATE_")
    }
    environ = inherited | {
        "TAPGATE_DATA_DIR": str(data_dir),
        "TAPGATE_PORT": str(port),
        "TAPGATE_WORKERS": str(workers),
        "TAPGATE_REPORT_WORKERS": "0",
        "TAPGATE_RATE_LIMIT": _NO_LIMIT,
        "TAPGATE_RATE_BURST": _NO_LIMIT,
        "TAPGATE_MAX_CONNECTIONS": _NO_LIMIT,
        "TAPGATE_MAX_CONNECTIONS_PER_ADDRESS": _NO_LIMIT,
        "TAPGATE_DEMO": "off",
        **(settings or {}),
    }
    installation = Installation(data_dir, port, environ)
    with (folder / "gateway.log").open("wb") as log:
        process = await asyncio.create_subprocess_exec(
            _TAPGATE_COMMAND, "serve", env=environ, stdout=asyncio.subprocess.PIPE, stderr=log
        )
    try:
        assert process.stdout is not None
        while not (line := await process.stdout.readline()).startswith(b"The gateway listens"):
            if not line:
                raise RuntimeError((folder / "gateway.log").read_text())
        installation.attach(process.pid)
        yield installation
    finally:
        if process.returncode is None:
            process.terminate()
        await process.communicate()


def find_free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])
