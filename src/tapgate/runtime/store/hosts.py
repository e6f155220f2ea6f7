"""Chooses among the hosts in a database URL.

The host that was used last is tried first. If a host does not respond quickly, the next one is
tried in parallel, and the first usable connection is taken, so a silent host delays a connection
only briefly.
"""

import asyncio
from collections.abc import Callable, Coroutine, Hashable, Sequence
from typing import Any, Final, TypeAlias

import asyncpg

Host: TypeAlias = tuple[str | None, int | None]
#: Opens a connection to a host.
Connect: TypeAlias = Callable[[Host], Coroutine[Any, Any, asyncpg.Connection]]

#: Maximum time until the next host is tried in parallel.
_MAX_DELAY_SECONDS: Final = 0.5
#: Failures after which the next host is tried.
FAILOVER_ERRORS: Final = (
    OSError,
    asyncpg.CannotConnectNowError,
    asyncpg.TargetServerAttributeNotMatched,
)

#: Host used last, by the hosts to choose from and the required session attribute.
last_used: dict[Hashable, Host] = {}


async def connect_to_one(
    hosts: Sequence[Host],
    attribute: str | None,
    connect: Connect,
    seconds: float,
) -> asyncpg.Connection:
    """Return a connection to one of the hosts, or raise the last host's error."""
    if len(hosts) == 1:
        return await connect(hosts[0])
    key = (tuple(hosts), attribute)
    attempts = Attempts(_put_first(hosts, last_used.get(key)), connect)
    try:
        connection, last_used[key] = await attempts.run(
            min(_MAX_DELAY_SECONDS, seconds / (2 * len(hosts)))
        )
    finally:
        await attempts.cancel()
    return connection


def _put_first(hosts: Sequence[Host], first: Host | None) -> list[Host]:
    return sorted(hosts, key=lambda host: host != first)


class Attempts:
    def __init__(self, hosts: list[Host], connect: Connect) -> None:
        self.untried = hosts
        self._connect = connect
        self._running: dict[asyncio.Task[asyncpg.Connection], Host] = {}

    async def run(self, delay_seconds: float) -> tuple[asyncpg.Connection, Host]:
        failure: Exception | None = None
        while self.untried or self._running:
            if self.untried:
                host = self.untried.pop(0)
                self._running[asyncio.create_task(self._connect(host))] = host
            done, _ = await asyncio.wait(
                self._running,
                timeout=delay_seconds if self.untried else None,
                return_when=asyncio.FIRST_COMPLETED,
            )
            for task in done:
                try:
                    connection = task.result()
                except FAILOVER_ERRORS as error:
                    failure = error
                    del self._running[task]
                else:
                    return connection, self._running.pop(task)
        assert failure is not None
        raise failure

    async def cancel(self) -> None:
        """End the remaining attempts, and close the connections that they have opened."""
        for task in self._running:
            task.cancel()
        results = await asyncio.gather(*self._running, return_exceptions=True)
        for connection in results:
            if not isinstance(connection, BaseException):
                connection.terminate()
