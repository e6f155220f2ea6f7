"""Faults injected into the installation's processes while the load runs."""

import asyncio
import contextlib
import signal
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Final

import asyncpg
import psutil

from torture.client_connection import ClientConnection
from torture.installation import Installation, kill
from torture.plan import Fault

#: Time to wait for a session with an open write transaction.
_POLL_TIMEOUT_SECONDS: Final = 0.5


class FaultInjector:
    """Injects planned faults; `connections` are the client connections that a fault can cut."""

    def __init__(self, installation: Installation, connections: Iterable[ClientConnection]) -> None:
        self._installation = installation
        self._connections = connections
        self.needs_restart = False

    async def inject(self, fault: Fault) -> None:
        await asyncio.sleep(fault.delay)
        await _INJECTORS[fault.kind](self, fault)

    async def kill_worker(self, fault: Fault) -> None:
        kill(_pick(self._installation.list_workers(), fault.choice))

    async def kill_all_workers(self, fault: Fault) -> None:
        kill(self._installation.list_workers())

    async def kill_postmaster(self, fault: Fault) -> None:
        postmaster = self._installation.find_postmaster()
        kill([] if postmaster is None else [postmaster])

    async def kill_backend(self, fault: Fault) -> None:
        kill(_pick(self._installation.list_backends(), fault.choice))

    async def kill_supervisor(self, fault: Fault) -> None:
        """Kill the supervisor; its children must exit, and the next start cleans up after them."""
        kill([self._installation.supervisor])
        self.needs_restart = True

    async def kill_all_processes(self, fault: Fault) -> None:
        kill(self._installation.list_processes())
        self.needs_restart = True

    async def kill_all_processes_twice(self, fault: Fault) -> None:
        """Kill everything again during startup, possibly during PostgreSQL crash recovery."""
        kill(self._installation.list_processes())
        self._installation.restart()
        await asyncio.sleep(fault.duration)
        await self.kill_all_processes(fault)

    async def cut_connections(self, fault: Fault) -> None:
        """Close all client connections, including those with a request in flight."""
        for connection in self._connections:
            connection.close()

    async def suspend_worker(self, fault: Fault) -> None:
        """Suspend a worker, which may hold locks and unsent responses, and then resume it."""
        for worker in _pick(self._installation.list_workers(), fault.choice):
            with contextlib.suppress(psutil.NoSuchProcess):
                worker.send_signal(signal.SIGSTOP)
                try:
                    await asyncio.sleep(fault.duration)
                finally:
                    worker.send_signal(signal.SIGCONT)

    async def terminate_ledger_session(self, fault: Fault) -> None:
        """Terminate sessions with an open write transaction, if any appear before the timeout."""
        try:
            connection = await asyncpg.connect(self._installation.database_url, timeout=1)
        except (OSError, TimeoutError, asyncpg.PostgresError):
            return  # another fault took the database down first
        with contextlib.suppress(
            OSError, asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError
        ):
            async with asyncio.timeout(_POLL_TIMEOUT_SECONDS):
                while not await connection.fetchval(_TERMINATE_WRITERS_SQL):
                    await asyncio.sleep(0.001)
        connection.terminate()


_TERMINATE_WRITERS_SQL: Final = """
    SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_xid IS NOT NULL"""

_INJECTORS: Final[dict[str, Callable[[FaultInjector, Fault], Awaitable[None]]]] = {
    "kill a worker": FaultInjector.kill_worker,
    "kill all workers": FaultInjector.kill_all_workers,
    "kill the postmaster": FaultInjector.kill_postmaster,
    "kill a backend": FaultInjector.kill_backend,
    "kill the supervisor": FaultInjector.kill_supervisor,
    "kill everything": FaultInjector.kill_all_processes,
    "kill everything twice": FaultInjector.kill_all_processes_twice,
    "drop many connections": FaultInjector.cut_connections,
    "stop a worker": FaultInjector.suspend_worker,
    "terminate the ledger's session": FaultInjector.terminate_ledger_session,
}


def _pick(candidates: list[Any], choice: int) -> list[Any]:
    return [candidates[choice % len(candidates)]] if candidates else []
