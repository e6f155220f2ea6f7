"""The most expensive requests within the limits, and the memory and CPU time they cost."""

import asyncio
import time
import tracemalloc
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, cast

import msgspec

from drivers.connections import FakeServerState
from tapgate.http.api.examples import build_example, get_path_example
from tapgate.http.endpoint import Endpoint
from tapgate.http.protocol import HttpProtocol

_ATTEMPTS = 3


class FakeTransport:
    """Transport that records the first response's status."""

    def __init__(self) -> None:
        self.status: int | None = None
        self.closed = False
        self._reading = asyncio.Event()
        self._reading.set()
        self.responded = asyncio.Event()

    async def wait_until_reading(self) -> None:
        await self._reading.wait()

    def get_extra_info(self, _name: str) -> Any:
        return "192.0.2.1", 40_000

    def is_closing(self) -> bool:
        return self.closed

    def write(self, data: bytes) -> None:
        if self.status is None:
            self.status = int(data[9:12])
        self.responded.set()

    def write_eof(self) -> None: ...

    def set_write_buffer_limits(self, high: int) -> None: ...

    def pause_reading(self) -> None:
        self._reading.clear()

    def resume_reading(self) -> None:
        self._reading.set()

    def close(self) -> None:
        self.closed = True
        self.responded.set()
        self._reading.set()

    abort = close


class FakeConfig:
    def __init__(self, app: Any) -> None:
        self.loaded_app = app


async def send_request(app: Any, reads: Sequence[bytes]) -> int | None:
    """Send data until a response starts or the data ends; return the status, or None."""
    transport = FakeTransport()
    connection = HttpProtocol(FakeConfig(app), FakeServerState(), {})
    connection.connection_made(cast(Any, transport))
    for read in reads:
        if transport.responded.is_set():
            break
        connection.data_received(read)
        await asyncio.sleep(0)
        readable = asyncio.ensure_future(transport.wait_until_reading())
        responded = asyncio.ensure_future(transport.responded.wait())
        await asyncio.wait((readable, responded), return_when=asyncio.FIRST_COMPLETED)
        readable.cancel()
        responded.cancel()
    if not transport.responded.is_set():
        # The response may still be pending. A request that never ends gets none.
        for _ in range(20):
            await asyncio.sleep(0)
    connection.connection_lost(None)
    await asyncio.sleep(0)
    return transport.status


async def measure_peak_memory(app: Any, reads: Sequence[bytes]) -> int:
    """Return the peak number of bytes allocated while the request is processed."""
    tracemalloc.reset_peak()
    before, _ = tracemalloc.get_traced_memory()
    await send_request(app, reads)
    _, peak = tracemalloc.get_traced_memory()
    return peak - before


async def measure_cpu_seconds(app: Any, reads: Sequence[bytes], target: float) -> float:
    """Return the lowest CPU time of at most `_ATTEMPTS` attempts.

    Stops after the first attempt that takes less than `target` seconds.
    """
    lowest = float("inf")
    for _ in range(_ATTEMPTS):
        started = time.thread_time()
        await send_request(app, reads)
        lowest = min(lowest, time.thread_time() - started)
        if lowest < target:
            break
    return lowest


def calibrate_cpu() -> float:
    """Return the lowest of five CPU times of fixed interpreter work, about ten milliseconds."""
    attempts = []
    for _ in range(5):
        started = time.thread_time()
        total, strings = 0, {}
        for number in range(40_000):
            strings[number % 1000] = str(number)
            total += len(strings[number % 1000])
        attempts.append(time.thread_time() - started)
    return min(attempts)


MEBIBYTE = 1024 * 1024
#: The size of one read by uvloop.
READ_CHUNK_BYTES = 256_000
#: Larger bodies only slow the test down: their cost grows linearly with size.
_MAX_VALUE_BYTES = 128 * 1024
#: How many bytes the test sends in an endless request.
_UNBOUNDED_BYTES = MEBIBYTE


@dataclass(frozen=True)
class Target:
    """A gateway or messenger endpoint, as a client sees it."""

    name: str
    method: str
    path: str
    body_limit: int
    is_public: bool
    example: dict[str, Any] | None  # a valid body, or None if the endpoint accepts no JSON
    parameters: tuple[str, ...]


@dataclass(frozen=True)
class AttackRequest:
    name: str
    chunks: list[bytes]  # one per read
    with_credential: bool = True
    #: Whether its cost up to the handler depends on the kind of route only, not on its fields.
    is_generic: bool = False


def build_body_attacks(target: Target) -> Iterator[AttackRequest]:
    if target.method in ("GET", "DELETE"):
        return
    size = min(target.body_limit, _MAX_VALUE_BYTES) - 64
    for name, body in _build_worst_bodies(target.example or {}, size):
        head = _build_head(target, b"Content-Length: %d\r\n" % len(body))
        is_generic = name.endswith(_BESIDE_NULL)
        yield AttackRequest(name, [head + b"\r\n" + body], is_generic=is_generic)


def build_wide_body_attacks(target: Target) -> Iterator[AttackRequest]:
    """Yield the bodies that decode to many or large objects."""
    for attack in build_body_attacks(target):
        if attack.name.startswith(("wide", "four-byte", "{", "1e", "empty")):
            yield attack


#: The value is an unknown field, which every route skips.
_BESIDE_NULL = " beside null"


def _build_worst_bodies(example: dict[str, Any], size: int) -> Iterator[tuple[str, bytes]]:
    room = size - len(msgspec.json.encode(example))
    if room < 1024:
        example, room = {}, size
    # A null makes the decoder run twice. Each value also replaces one field in the example.
    with_null = example | dict.fromkeys(list(example)[:1])
    for index, (label, value) in enumerate(_build_large_values(room // 1024 * 1024).items()):
        yield f"{label}{_BESIDE_NULL}", _set_member(with_null, "unknown", value)
        if example:
            name = list(example)[index % len(example)]
            yield f"{label} in {name}", _set_member(example, name, value)
    for name, member in example.items():
        for label, value in _build_worst_values(member, room - 40):
            yield f"{label} in {name}", _set_member(example, name, value)


@cache
def _build_large_values(room: int) -> dict[str, bytes]:
    return {
        "wide array": b"[%b0]" % (b"[]," * (room // 3 - 9)),
        "wide object": b"{%b}" % b",".join(b'"%x":0' % n for n in range(room // 9 - 9)),
        "deep arrays": b"[" * (room // 2 - 9) + b"]" * (room // 2 - 9),
        "nulls": b"[%bnull]" % (b"null," * (room // 5 - 9)),
        "lone surrogates": b'"%b"' % (b"\\ud800" * (room // 6 - 9)),
        "surrogate pairs": b'["\\ud800","%b"]' % (b"\\ud83d\\ude00" * (room // 12 - 9)),
        "escapes": b'["\\ud800","%b"]' % (b"\\n" * (room // 2 - 20)),
        "empty objects beside a surrogate": b'["\\ud800"%b]' % (b",{}" * (room // 3 - 20)),
        "backslashes without end": b'"\\ud800%b' % (b"\\\\" * (room // 2 - 20)),
        "digits": b"9" * (room - 20),
        "decimals": b"0." + b"3" * (room - 20),
        "four-byte characters": b'"%b"' % ("\U0001f600" * (room // 4 - 9)).encode(),
        "bad UTF-8": b'"%b\xff"' % (b"\xc3\xa9" * (room // 2 - 20)),
    }


def _build_worst_values(member: Any, room: int) -> Iterator[tuple[str, bytes]]:
    if isinstance(member, list):
        for item in (b'""', b"{}", b"null", b"0"):
            yield f"{item.decode()}", b"[%b]" % b",".join([item] * (room // (len(item) + 1)))
    if isinstance(member, dict):
        for item in (b"1e-300", b"18446744073709551615", b'{"a":{"b":{}}}'):
            items = b",".join([item] * (room // (len(item) + 1)))
            yield f"{item.decode()}", b'{"a":[%b]}' % items


def _set_member(example: dict[str, Any], name: str, value: bytes) -> bytes:
    rest = msgspec.json.encode({item: example[item] for item in example if item != name})[:-1]
    return b'%b%b"%b":%b}' % (rest, b"," if len(rest) > 1 else b"", name.encode(), value)


_EXPENSIVE_QUERIES = {"ampersands": b"&" * 15_000, "percent signs": b"%41" * 5_000}
_EXPENSIVE_HEADERS = {
    "many fields": b"".join(b"X-%d: a\r\n" % n for n in range(1_500)),
    "one field many times": b"X-A: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\r\n" * 900,
    "addresses": b"X-Forwarded-For: %b\r\n" % (b"10.0.0.1," * 6_000),
    "idempotency key": b"Idempotency-Key: %b\r\n" % (b"a" * 60_000),
    "bearer": b"Authorization: Bearer %b\r\n" % (b"eyJ." * 15_000),
}


def build_head_attacks(target: Target) -> Iterator[AttackRequest]:
    for name in target.parameters:
        head = _build_head(target, b"", name.encode() + b"=" + b"%2b" * 5_000)
        yield AttackRequest(f"query: {name}", [head + b"\r\n"])
    for name, query in _EXPENSIVE_QUERIES.items():
        head = _build_head(target, b"", query)
        yield AttackRequest(f"any query: {name}", [head + b"\r\n"], is_generic=True)
    for name, lines in _EXPENSIVE_HEADERS.items():
        head = _build_head(target, lines)
        yield AttackRequest(f"head: {name}", [head + b"\r\n"], is_generic=True)


def _split_into_chunks(data: bytes) -> list[bytes]:
    size = 64 * 1024
    return [data[start : start + size] for start in range(0, len(data), size)]


_EXPENSIVE_CHUNKED_BODIES = {
    name: _split_into_chunks(rest)
    for name, rest in {
        "trailer": b"0\r\nX: " + b"a" * _UNBOUNDED_BYTES,
        "trailers": b"0\r\n" + b"X: a\r\n" * (_UNBOUNDED_BYTES // 6),
        "chunk extension": b"1;a=" + b"a" * _UNBOUNDED_BYTES,
        "chunk extensions": (b"1;a=%b\r\nx\r\n" % (b"a" * 200)) * (_UNBOUNDED_BYTES // 210),
        "two-byte chunks": b"2\r\nxx\r\n" * (_UNBOUNDED_BYTES // 7),
        "large chunks": (b"4000\r\n%b\r\n" % (b"x" * 0x4000)) * (_UNBOUNDED_BYTES // 0x4000),
    }.items()
}


def build_framing_attacks(target: Target) -> Iterator[AttackRequest]:
    """Yield attacks on framing, bodies without a credential, and pipelined requests."""
    chunked = _build_head(target, b"Transfer-Encoding: chunked\r\n") + b"\r\n"
    for name, reads in _EXPENSIVE_CHUNKED_BODIES.items():
        yield AttackRequest(name, [chunked, *reads], is_generic=True)
    for name in ("two-byte chunks", "large chunks"):
        yield AttackRequest(
            f"{name} without a credential",
            [chunked, *_EXPENSIVE_CHUNKED_BODIES[name]],
            with_credential=False,
            is_generic=True,
        )
    declared = _build_head(target, b"Content-Length: %d\r\n" % target.body_limit)
    reads = [declared + b"\r\n", *[b" " * READ_CHUNK_BYTES] * 3]
    yield AttackRequest("body without a credential", reads, with_credential=False, is_generic=True)
    small = b"GET %b HTTP/1.1\r\nHost: x\r\n\r\n" % target.path.encode()
    pipelined = small * (READ_CHUNK_BYTES // len(small))
    yield AttackRequest("pipelined requests", [pipelined], is_generic=True)


def _build_head(target: Target, lines: bytes, query: bytes = b"") -> bytes:
    path = target.path.encode() + (b"?" + query if query else b"")
    return b"%b %b HTTP/1.1\r\nHost: x\r\n%b" % (target.method.encode(), path, lines)


def build_gateway_target(endpoint: Endpoint) -> Target:
    path = endpoint.path
    for name in endpoint.path_parameters:
        path = path.replace(f"{{{name}}}", get_path_example(endpoint, name))
    kind = endpoint.body_struct
    fields = () if endpoint.query_type is None else msgspec.structs.fields(endpoint.query_type)
    return Target(
        name=endpoint.name,
        method=endpoint.method,
        path=path,
        body_limit=endpoint.body_limit,
        is_public=endpoint.access.public,
        example=None if kind in (None, bytes) else build_example(kind),
        parameters=tuple(item.encode_name for item in fields),
    )


def build_messenger_target(route: Endpoint) -> Target:
    return Target(
        name=f"messenger {route.method} {route.path}",
        method=route.method,
        path=route.path,
        body_limit=route.body_limit,
        is_public=True,
        example=getattr(route.body_type, "EXAMPLE", None),
        parameters=tuple(item.name for item in route.parameters if item.location == "query"),
    )
