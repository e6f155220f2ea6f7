"""The load client: a process of its own that sends requests which others have built.

It takes a `Plan` on standard input, connects, says that it is ready, waits for a line, sends, and
answers with a `Tally`. Each connection has one request under way at a time. What it does between an
answer and the next request is as little as possible, because it shares the machine with what is
measured.
"""

import asyncio
import gc
import sys
from array import array
from collections import Counter
from time import perf_counter, process_time
from typing import cast

import msgspec
import uvloop

READY, GO = b"ready\n", b"go\n"
_LONGEST_WAIT_SECONDS = 30.0
_HEAD_END = b"\r\n\r\n"
_LENGTH = b"content-length: "
_REPLAYED = b"idempotent-replayed: true"


class Plan(msgspec.Struct):
    port: int
    connections: int
    seconds: float
    requests: list[bytes]


class Tally(msgspec.Struct, kw_only=True):
    """`in_time` of the answers came within `seconds`; the rest were waited for, not counted."""

    seconds: float
    in_time: int
    sent: int
    replayed: int
    statuses: dict[str, int]
    refusals: dict[str, bytes]  # the first body of each status that is not 200
    latencies: bytes  # of all answers, in seconds, as doubles
    cpu_seconds: float


class Run:
    def __init__(self, plan: Plan) -> None:
        self._requests = plan.requests
        self._seconds = plan.seconds
        self._last = len(plan.requests)
        self._next = 0
        self._under_way = 0
        self._started = self._deadline = self._ended = 0.0
        self._in_time = self._replayed = 0
        self._statuses: Counter[bytes] = Counter()
        self._refusals: dict[bytes, bytes] = {}
        self._latencies = array("d")
        self.finished: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def go(self, connections: list["Connection"]) -> Tally:
        before = process_time()
        self._started = perf_counter()
        self._deadline = self._started + self._seconds
        self._under_way = len(connections)
        for connection in connections:
            self.send_next(connection)
        async with asyncio.timeout(self._seconds + _LONGEST_WAIT_SECONDS):
            await self.finished
        return Tally(
            seconds=min(self._ended, self._deadline) - self._started,
            in_time=self._in_time,
            sent=self._next,
            replayed=self._replayed,
            statuses={status.decode(): count for status, count in self._statuses.items()},
            refusals={status.decode(): body for status, body in self._refusals.items()},
            latencies=self._latencies.tobytes(),
            cpu_seconds=process_time() - before,
        )

    def send_next(self, connection: "Connection") -> None:
        number, now = self._next, perf_counter()
        if now >= self._deadline or number >= self._last:
            self._under_way -= 1
            if not self._under_way and not self.finished.done():
                self.finished.set_result(None)
            return
        self._next = number + 1
        connection.sent = now
        connection.transport.write(self._requests[number])

    def answered(self, connection: "Connection", head: bytes, body: bytes) -> None:
        now = self._ended = perf_counter()
        self._latencies.append(now - connection.sent)
        if now <= self._deadline:
            self._in_time += 1
        status = head[9:12]
        self._statuses[status] += 1
        if _REPLAYED in head:
            self._replayed += 1
        if status != b"200":
            self._refusals.setdefault(status, body)
        self.send_next(connection)


class Connection(asyncio.Protocol):
    transport: asyncio.WriteTransport

    def __init__(self, run: Run) -> None:
        self._run = run
        self._received = b""
        self.sent = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.WriteTransport, transport)

    def data_received(self, data: bytes) -> None:
        received = self._received + data if self._received else data
        head_end = received.find(_HEAD_END)
        if head_end >= 0:
            length_at = received.find(_LENGTH) + len(_LENGTH)
            body_at = head_end + len(_HEAD_END)
            length = int(received[length_at : received.find(b"\r", length_at)])
            if len(received) >= body_at + length:
                self._received = b""
                self._run.answered(self, received[:head_end], received[body_at:])
                return
        self._received = received

    def connection_lost(self, problem: Exception | None) -> None:
        if not self._run.finished.done():
            self._run.finished.set_exception(problem or ConnectionError("closed by the gateway"))


async def _main() -> None:
    read, write = sys.stdin.buffer, sys.stdout.buffer
    plan = msgspec.msgpack.decode(read.read(int.from_bytes(read.read(8))), type=Plan)
    run, loop = Run(plan), asyncio.get_running_loop()
    connections = [
        (await loop.create_connection(lambda: Connection(run), "127.0.0.1", plan.port))[1]
        for _ in range(plan.connections)
    ]
    gc.collect()
    gc.disable()
    write.write(READY)
    write.flush()
    if read.readline() != GO:
        return  # whoever wanted to measure has gone
    tally = await run.go(connections)
    write.write(msgspec.msgpack.encode(tally))
    write.flush()
    for connection in connections:
        connection.transport.close()


if __name__ == "__main__":
    uvloop.run(_main())
