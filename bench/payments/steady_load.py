"""Payments at a fixed rate, whose latencies show what other work costs."""

import asyncio
import itertools
import math
import time
from collections import Counter
from collections.abc import Callable
from typing import Final, NamedTuple

from bench.payments.dataset import Dataset
from bench.payments.requests import build_payment
from tapgate_client.clock import format_rfc3339, system_clock

_CONNECTIONS: Final = 32


class LoadSummary(NamedTuple):
    latencies: list[float]  # in seconds, from the time when the payment was due
    statuses: Counter[int]
    seconds: float

    @property
    def p50(self) -> float:
        return self._find_percentile(50)

    @property
    def p99(self) -> float:
        return self._find_percentile(99)

    def _find_percentile(self, percent: int) -> float:
        """Return milliseconds; not a number if no payment was due, as during very short work."""
        if not self.latencies:
            return math.nan
        rank = math.ceil(len(self.latencies) * percent / 100)
        return sorted(self.latencies)[rank - 1] * 1000

    @property
    def per_second(self) -> float:
        return len(self.latencies) / self.seconds


class SteadyLoad:
    """Sends payments at a fixed rate on a connection pool."""

    def __init__(self, port: int, data: Dataset, rate: int) -> None:
        self._port = port
        self._data = data
        self._interval = 1 / rate
        self._numbers = itertools.count()
        self._idle: asyncio.Queue[tuple[asyncio.StreamReader, asyncio.StreamWriter]]

    async def connect(self) -> None:
        self._idle = asyncio.Queue()
        for _ in range(_CONNECTIONS):
            self._idle.put_nowait(await asyncio.open_connection("127.0.0.1", self._port))

    async def run_for(self, seconds: float) -> LoadSummary:
        deadline = time.perf_counter() + seconds
        return await self.run_until(lambda: time.perf_counter() >= deadline)

    async def run_until(self, is_over: Callable[[], bool]) -> LoadSummary:
        latencies: list[float] = []
        statuses: Counter[int] = Counter()
        started = time.perf_counter()
        async with asyncio.TaskGroup() as group:
            for number in itertools.count():
                due = started + number * self._interval
                await asyncio.sleep(max(0.0, due - time.perf_counter()))
                if is_over():
                    break
                group.create_task(self._pay(due, latencies, statuses))
        return LoadSummary(latencies, statuses, time.perf_counter() - started)

    async def _pay(self, due: float, latencies: list[float], statuses: Counter[int]) -> None:
        number = next(self._numbers)
        keys, cards = self._data.terminals, self._data.cards
        request = build_payment(
            cards[number % len(cards)], keys[number % len(keys)], format_rfc3339(system_clock())
        )
        reader, writer = await self._idle.get()
        writer.write(request)
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r")[0])
        body = await reader.readexactly(length)
        if head[9:12] not in (b"200", b"201", b"402", b"403"):  # a wallet may run out of money
            raise RuntimeError(body)
        statuses[int(head[9:12])] += 1
        latencies.append(time.perf_counter() - due)
        self._idle.put_nowait((reader, writer))
