"""Connections that are opened when they are needed and used again.

Taking one that is there and giving it back costs next to nothing; asyncpg's own pool would cost
twice as much as the statement that most requests need one for (measured in docs/benchmarks.md).
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Final

import asyncpg

#: One that was not used for longer may have been forgotten by what is in between.
_LONGEST_REST_SECONDS: Final = 300.0


class Pool:
    def __init__(self, connect: Callable[[], Awaitable[asyncpg.Connection]], size: int) -> None:
        self._connect = connect
        self._size = size
        self._open = 0
        #: With the moment since when each has rested; the last one is taken first.
        self._resting: list[tuple[asyncpg.Connection, float]] = []
        self._used: set[asyncpg.Connection] = set()
        #: None is handed over where there is room to open another one.
        self._waiting: deque[asyncio.Future[asyncpg.Connection | None]] = deque()
        self._closing = False
        self._all_back = asyncio.Event()

    async def take(self, patience: float) -> asyncpg.Connection:
        """TimeoutError: all of them were in use for that long."""
        self._require_open()
        connection = self._rested()
        if connection is None:
            async with asyncio.timeout(patience):
                while connection is None:
                    connection = await self._another()
            if self._closing:  # since it was asked for: nobody would close this one
                connection.terminate()
                self._open -= 1
            self._require_open()
        self._used.add(connection)
        return connection

    async def apart(self) -> asyncpg.Connection:
        """Another one, which is the caller's own to close."""
        return await self._connect()

    def give_back(self, connection: asyncpg.Connection) -> None:
        self._used.discard(connection)
        if connection.is_closed():
            self._open -= 1
            self._hand_over(None)
        elif not self._hand_over(connection):
            self._resting.append((connection, asyncio.get_running_loop().time()))
        if self._closing and not self._used:
            self._all_back.set()

    async def close(self) -> None:
        """Waits for those that are in use."""
        self._closing = True
        if self._used:
            await self._all_back.wait()
        while self._resting:
            connection, _ = self._resting.pop()
            await connection.close()

    def terminate(self) -> None:
        for connection in (*self._used, *(connection for connection, _ in self._resting)):
            connection.terminate()
        self._resting.clear()

    def _require_open(self) -> None:
        if self._closing:
            raise asyncpg.InterfaceError("the connections are being closed")

    def _rested(self) -> asyncpg.Connection | None:
        now = asyncio.get_running_loop().time()
        while self._resting:
            connection, since = self._resting.pop()
            if not connection.is_closed():
                if now - since < _LONGEST_REST_SECONDS:
                    return connection
                connection.terminate()
            self._open -= 1
        return None

    async def _another(self) -> asyncpg.Connection | None:
        if self._open < self._size:
            return await self._opened()
        waiter: asyncio.Future[asyncpg.Connection | None]
        waiter = asyncio.get_running_loop().create_future()
        self._waiting.append(waiter)
        try:
            return await waiter
        except BaseException:
            if not waiter.cancelled():  # handed over too late
                if (connection := waiter.result()) is not None:
                    self.give_back(connection)
                else:
                    self._hand_over(None)
            raise

    async def _opened(self) -> asyncpg.Connection:
        self._open += 1
        try:
            return await self._connect()
        except BaseException:
            self._open -= 1
            self._hand_over(None)
            raise

    def _hand_over(self, connection: asyncpg.Connection | None) -> bool:
        """Whether there was somebody who waited."""
        while self._waiting:
            waiter = self._waiting.popleft()
            if not waiter.done():
                waiter.set_result(connection)
                return True
        return False
