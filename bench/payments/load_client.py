"""Load client: a separate process that sends prebuilt requests.

It reads a `LoadPlan` from standard input, connects, reports that it is ready, waits for a line,
sends the requests and writes a `LoadResult`. Each connection has one request in flight. Work
between a response and the next request is minimal, since the client shares the machine with the
gateway that it measures.
"""

import gc
import select
import socket
import sys
from array import array
from collections import Counter
from time import perf_counter, process_time

import msgspec

from tapgate.runtime import open_files

READY, GO = b"ready\n", b"go\n"
_RESPONSE_TIMEOUT_SECONDS = 30.0
_MAX_RECEIVE_BYTES = 65_536
_HEAD_END = b"\r\n\r\n"
_CONTENT_LENGTH_HEADER = b"content-length: "
_REPLAYED_HEADER = b"idempotent-replayed: true"
_UNAVAILABLE_STATUS = b"503"


class LoadPlan(msgspec.Struct):
    port: int
    connections: int
    seconds: float
    requests: list[bytes]
    #: Warm-up in seconds, in which all connections should get their first response. Responses
    #: during the warm-up are not part of `in_time`, unless the requests run out before its end.
    lead_in: float = 0.0
    #: Whether a connection resends a request immediately after a 503.
    insists: bool = False


class LoadResult(msgspec.Struct, kw_only=True):
    """Load run result.

    `in_time` is the number of responses within `seconds`. Later responses are awaited but not
    counted, except that at least one response always counts. A 503 after which the request was
    sent again is part of `statuses`, but not of `in_time` and `latencies`.
    """

    seconds: float
    in_time: int
    sent: int
    replayed: int
    statuses: dict[str, int]
    refusals: dict[str, bytes]  # first body of each status other than 200, except retried 503s
    latencies: bytes  # in seconds, as doubles, including the warm-up
    first_refusals: bytes  # latencies of first attempts that got a 503, as doubles
    cpu_seconds: float


class Connection:
    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.sent_at = 0.0
        self.request = b""
        self.was_rejected = False
        self._received = b""

    def receive_response(self) -> tuple[bytes, bytes] | None:
        """Return head and body once the response is complete, else None."""
        data = self.socket.recv(_MAX_RECEIVE_BYTES)
        if not data:
            raise ConnectionError("the gateway closed the connection")
        received = self._received + data if self._received else data
        head_end = received.find(_HEAD_END)
        if head_end >= 0:
            length_at = received.find(_CONTENT_LENGTH_HEADER) + len(_CONTENT_LENGTH_HEADER)
            body_at = head_end + len(_HEAD_END)
            length = int(received[length_at : received.find(b"\r", length_at)])
            if len(received) >= body_at + length:
                self._received = b""
                return received[:head_end], received[body_at:]
        self._received = received
        return None


class LoadRun:
    def __init__(self, plan: LoadPlan) -> None:
        self._requests = iter(plan.requests)
        self._seconds = plan.seconds
        self._warm_up_seconds = plan.lead_in
        self._retries_immediately = plan.insists
        self._connections = [Connection(plan.port) for _ in range(plan.connections)]
        self._sent = self._in_time = self._warm_up_count = self._replayed = self._in_flight = 0
        self._started_at = self._counting_starts_at = self._deadline = self._ended_at = 0.0
        self._statuses: Counter[bytes] = Counter()
        self._error_bodies: dict[bytes, bytes] = {}
        self._latencies = array("d")
        self._first_rejection_latencies = array("d")

    def run(self) -> LoadResult:
        before = process_time()
        self._started_at = perf_counter()
        self._counting_starts_at = self._started_at + self._warm_up_seconds
        self._deadline = self._counting_starts_at + self._seconds
        by_descriptor = {connection.socket.fileno(): connection for connection in self._connections}
        with select.epoll() as poll:
            for descriptor, connection in by_descriptor.items():
                poll.register(descriptor, select.EPOLLIN)
                self._send_next(connection, self._started_at)
            while self._in_flight:
                ready = poll.poll(_RESPONSE_TIMEOUT_SECONDS)
                if not ready:
                    raise TimeoutError("the gateway does not respond")
                for descriptor, _ in ready:
                    self._handle_readable(by_descriptor[descriptor])
        if self._deadline <= self._counting_starts_at:  # requests ran out during the warm-up
            self._counting_starts_at, self._warm_up_count = self._started_at, 0
        return LoadResult(
            seconds=min(self._ended_at, self._deadline) - self._counting_starts_at,
            in_time=self._in_time - self._warm_up_count,
            sent=self._sent,
            replayed=self._replayed,
            statuses={status.decode(): count for status, count in self._statuses.items()},
            refusals={status.decode(): body for status, body in self._error_bodies.items()},
            latencies=self._latencies.tobytes(),
            first_refusals=self._first_rejection_latencies.tobytes(),
            cpu_seconds=process_time() - before,
        )

    def _handle_readable(self, connection: Connection) -> None:
        response = connection.receive_response()
        if response is None:
            return
        head, body = response
        now = perf_counter()
        status = head[9:12]
        self._statuses[status] += 1
        if self._retries_immediately and status == _UNAVAILABLE_STATUS:
            self._resend(connection, now)
            return
        self._ended_at = now
        self._in_flight -= 1
        self._latencies.append(now - connection.sent_at)
        if self._in_time == self._warm_up_count:
            self._deadline = max(self._deadline, now)  # extended until one response counts
        if now <= self._deadline:
            self._in_time += 1
            self._warm_up_count += now < self._counting_starts_at
        if _REPLAYED_HEADER in head:
            self._replayed += 1
        if status != b"200":
            self._error_bodies.setdefault(status, body)
        self._send_next(connection, now)

    def _resend(self, connection: Connection, now: float) -> None:
        if not connection.was_rejected:
            connection.was_rejected = True
            self._first_rejection_latencies.append(now - connection.sent_at)
        if now < self._deadline:
            connection.sent_at = now
            connection.socket.sendall(connection.request)
        else:
            self._in_flight -= 1

    def _send_next(self, connection: Connection, now: float) -> None:
        request = next(self._requests, None) if now < self._deadline else None
        if request is not None:
            self._sent += 1
            self._in_flight += 1
            connection.request = request
            connection.was_rejected = False
            connection.sent_at = now
            connection.socket.sendall(request)
        elif self._retries_immediately:
            # With idle connections there is no overload anymore, so the run ends early.
            self._deadline = min(self._deadline, now)


def _main() -> None:
    read, write = sys.stdin.buffer, sys.stdout.buffer
    plan = msgspec.msgpack.decode(read.read(int.from_bytes(read.read(8))), type=LoadPlan)
    open_files.raise_open_file_limit()
    run = LoadRun(plan)
    gc.collect()
    gc.disable()
    write.write(READY)
    write.flush()
    if read.readline() != GO:
        return  # the parent process has exited
    write.write(msgspec.msgpack.encode(run.run()))
    write.flush()


if __name__ == "__main__":
    _main()
