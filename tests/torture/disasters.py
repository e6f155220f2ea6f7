"""What strikes while the load runs. Each strikes processes that the installation consists of."""

import asyncio
import contextlib
import signal
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Final

import asyncpg
import psutil

from torture.installation import Installation, end
from torture.plan import Disaster
from torture.wire import Line

#: How long to wait for a session to be in the middle of something.
_LOOKING_SECONDS: Final = 0.5


class Disasters:
    """`lines` are those of the clients, which a disaster may cut."""

    def __init__(self, installation: Installation, lines: Iterable[Line]) -> None:
        self._installation = installation
        self._lines = lines
        self.needs_start = False

    async def strike(self, disaster: Disaster) -> None:
        await asyncio.sleep(disaster.delay)
        await _STRIKES[disaster.kind](self, disaster)

    async def kill_a_worker(self, disaster: Disaster) -> None:
        end(_one(self._installation.workers(), disaster.choice))

    async def kill_all_workers(self, disaster: Disaster) -> None:
        end(self._installation.workers())

    async def kill_the_postmaster(self, disaster: Disaster) -> None:
        postmaster = self._installation.postmaster()
        end([] if postmaster is None else [postmaster])

    async def kill_a_backend(self, disaster: Disaster) -> None:
        end(_one(self._installation.backends(), disaster.choice))

    async def kill_the_supervisor(self, disaster: Disaster) -> None:
        """Its children must notice; what they leave behind is for the next start."""
        end([self._installation.supervisor])
        self.needs_start = True

    async def kill_everything(self, disaster: Disaster) -> None:
        end(self._installation.processes())
        self.needs_start = True

    async def kill_everything_twice(self, disaster: Disaster) -> None:
        """The second time while it is starting, PostgreSQL perhaps in the middle of recovering."""
        end(self._installation.processes())
        self._installation.start_again()
        await asyncio.sleep(disaster.lasts)
        await self.kill_everything(disaster)

    async def cut_many_lines(self, disaster: Disaster) -> None:
        """All that are open, in the middle of whatever they were asked."""
        for line in self._lines:
            line.close()

    async def stop_a_worker(self, disaster: Disaster) -> None:
        """It stands still for a while, locks held and answers unsent, and then goes on."""
        for worker in _one(self._installation.workers(), disaster.choice):
            with contextlib.suppress(psutil.NoSuchProcess):
                worker.send_signal(signal.SIGSTOP)
                try:
                    await asyncio.sleep(disaster.lasts)
                finally:
                    worker.send_signal(signal.SIGCONT)

    async def end_the_ledgers_session(self, disaster: Disaster) -> None:
        """One that is about to commit, if there is one soon; otherwise all that have written."""
        try:
            connection = await asyncpg.connect(self._installation.database_url, timeout=1)
        except (OSError, TimeoutError, asyncpg.PostgresError):
            return  # another disaster was quicker
        with contextlib.suppress(
            OSError, asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError
        ):
            async with asyncio.timeout(_LOOKING_SECONDS):
                while not await connection.fetchval(_END_WRITING):
                    await asyncio.sleep(0.001)
        connection.terminate()


_END_WRITING: Final = """
    SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_xid IS NOT NULL"""

_STRIKES: Final[dict[str, Callable[[Disasters, Disaster], Awaitable[None]]]] = {
    "kill a worker": Disasters.kill_a_worker,
    "kill all workers": Disasters.kill_all_workers,
    "kill the postmaster": Disasters.kill_the_postmaster,
    "kill a backend": Disasters.kill_a_backend,
    "kill the supervisor": Disasters.kill_the_supervisor,
    "kill everything": Disasters.kill_everything,
    "kill everything twice": Disasters.kill_everything_twice,
    "cut many lines": Disasters.cut_many_lines,
    "stop a worker": Disasters.stop_a_worker,
    "end the ledger's session": Disasters.end_the_ledgers_session,
}


def _one(found: list[Any], choice: int) -> list[Any]:
    return [found[choice % len(found)]] if found else []
