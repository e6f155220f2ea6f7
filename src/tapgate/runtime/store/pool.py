"""Connection pool that opens connections on demand and reuses them.

Acquiring and releasing an idle connection costs almost nothing. asyncpg's own pool would cost twice
as much as the single statement that most requests run (measured in docs/benchmark-details.md).
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Final, NamedTuple

import asyncpg

#: A firewall or NAT may have dropped connections that were idle for longer.
MAX_IDLE_SECONDS: Final = 300.0


class PoolState(NamedTuple):
    """Connections that may be open, are open and are in use, and callers that wait for one."""

    size: int
    open: int
    in_use: int
    waiting: int


class Pool:
    def __init__(self, connect: Callable[[], Awaitable[asyncpg.Connection]], size: int) -> None:
        self._connect = connect
        self._size = size
        self._open_count = 0
        #: Idle connections and the time each became idle; last in, first out.
        self._idle: list[tuple[asyncpg.Connection, float]] = []
        self._in_use: set[asyncpg.Connection] = set()
        #: Connections that are closed when they are released.
        self._retired: set[asyncpg.Connection] = set()
        #: A waiter that receives None may open a new connection.
        self._waiters: deque[asyncio.Future[asyncpg.Connection | None]] = deque()
        #: Times that a caller waited for a connection, and the seconds it waited.
        self.wait_count = 0
        self.wait_seconds = 0.0
        self._is_closing = False
        self._all_released = asyncio.Event()

    async def acquire(self, timeout_seconds: float) -> asyncpg.Connection:
        """Return a connection. Raise TimeoutError if none becomes available in time.

        Raise InterfaceError if the pool is closing.
        """
        self._require_open()
        connection = self._pop_idle()
        if connection is None:
            connection = await self._wait_for_connection(timeout_seconds)
            if self._is_closing:  # closed while waiting: close() does not see this connection
                connection.terminate()
                self._open_count -= 1
            self._require_open()
        self._in_use.add(connection)
        return connection

    def get_state(self) -> PoolState:
        waiting = sum(not waiter.done() for waiter in self._waiters)
        return PoolState(self._size, self._open_count, len(self._in_use), waiting)

    def retire_all(self) -> None:
        """Close all idle connections, and the others when they are released."""
        for connection, _ in self._idle:
            connection.terminate()  # `_pop_idle` removes it
        self._retired |= self._in_use

    def release(self, connection: asyncpg.Connection) -> None:
        self._in_use.discard(connection)
        if connection in self._retired:
            self._retired.discard(connection)
            connection.terminate()
        if connection.is_closed():
            self._open_count -= 1
            self._give_to_waiter(None)
        elif not self._give_to_waiter(connection):
            self._idle.append((connection, asyncio.get_running_loop().time()))
        if self._is_closing and not self._in_use:
            self._all_released.set()

    async def close(self) -> None:
        """Wait until no connection is in use, then close all connections."""
        self._is_closing = True
        if self._in_use:
            await self._all_released.wait()
        while self._idle:
            connection, _ = self._idle.pop()
            await connection.close()

    def terminate(self) -> None:
        for connection in (*self._in_use, *(connection for connection, _ in self._idle)):
            connection.terminate()
        self._idle.clear()

    def _require_open(self) -> None:
        if self._is_closing:
            raise asyncpg.InterfaceError("the connection pool is closing")

    def _pop_idle(self) -> asyncpg.Connection | None:
        now = asyncio.get_running_loop().time()
        while self._idle:
            connection, since = self._idle.pop()
            if not connection.is_closed():
                if now - since < MAX_IDLE_SECONDS:
                    return connection
                connection.terminate()
            self._open_count -= 1
        return None

    async def _wait_for_connection(self, timeout_seconds: float) -> asyncpg.Connection:
        get_time = asyncio.get_running_loop().time
        started = get_time()
        try:
            async with asyncio.timeout(timeout_seconds):
                while (connection := await self._open_or_wait()) is None:
                    pass
            return connection
        finally:
            self.wait_count += 1
            self.wait_seconds += get_time() - started

    async def _open_or_wait(self) -> asyncpg.Connection | None:
        if self._open_count < self._size:
            return await self._open_connection()
        waiter: asyncio.Future[asyncpg.Connection | None]
        waiter = asyncio.get_running_loop().create_future()
        self._waiters.append(waiter)
        try:
            return await waiter
        except BaseException:
            if not waiter.cancelled():  # a result was set just before the timeout or cancellation
                if (connection := waiter.result()) is not None:
                    self.release(connection)
                else:
                    self._give_to_waiter(None)
            raise

    async def _open_connection(self) -> asyncpg.Connection:
        self._open_count += 1
        try:
            return await self._connect()
        except BaseException:
            self._open_count -= 1
            self._give_to_waiter(None)
            raise

    def _give_to_waiter(self, connection: asyncpg.Connection | None) -> bool:
        """Give a connection, or the right to open one, to the next waiter, if any.

        Return whether there was a waiter.
        """
        while self._waiters:
            waiter = self._waiters.popleft()
            if not waiter.done():
                waiter.set_result(connection)
                return True
        return False
