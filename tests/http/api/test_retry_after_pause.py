"""After a 503, reading pauses until Retry-After has passed, and no request is lost."""

import asyncio
import gc
import weakref

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cases import each
from drivers.connections import (
    RETRY_AFTER_SECONDS,
    SimulatedLoop,
    build_request,
    connect,
    drain_event_loop,
)
from tapgate.http import connection

STATUSES = st.sampled_from([200, 503])


async def test_nothing_is_read_during_the_pause() -> None:
    loop = SimulatedLoop()
    client = connect(loop)
    client.send(build_request(503))
    await drain_event_loop()
    assert client.responses == [(0, 503)]
    client.send(build_request(200))
    await loop.advance(RETRY_AFTER_SECONDS / 2)
    assert client.responses == [(0, 503)]
    await loop.advance(RETRY_AFTER_SECONDS / 2)
    assert client.responses == [(0, 503), (RETRY_AFTER_SECONDS, 200)]
    client.send(build_request(200))
    await drain_event_loop()
    assert client.responses[2:] == [(RETRY_AFTER_SECONDS, 200)]


async def test_pipelined_requests_wait_for_the_end_of_the_pause() -> None:
    loop = SimulatedLoop()
    client = connect(loop)
    client.send(build_request(503) + build_request(200) + build_request(503) + build_request(200))
    await loop.advance(5 * RETRY_AFTER_SECONDS)
    assert client.responses == [
        (0, 503),
        (RETRY_AFTER_SECONDS, 200),
        (RETRY_AFTER_SECONDS, 503),
        (2 * RETRY_AFTER_SECONDS, 200),
    ]


async def test_half_closed_client_gets_its_responses_before_the_connection_closes() -> None:
    loop = SimulatedLoop()
    client = connect(loop)
    client.send(build_request(503) + build_request(200))
    assert client.protocol.eof_received()
    await loop.advance(RETRY_AFTER_SECONDS / 2)
    assert not client.closed
    await loop.advance(RETRY_AFTER_SECONDS / 2)
    assert client.responses == [(0, 503), (RETRY_AFTER_SECONDS, 200)]
    assert client.closed


@each("pipelined", [b"", build_request(200)])
async def test_shutdown_closes_a_paused_connection_immediately(pipelined: bytes) -> None:
    loop = SimulatedLoop()
    client = connect(loop)
    client.send(build_request(503) + pipelined)
    await drain_event_loop()
    client.protocol.shutdown()
    assert client.closed
    assert loop.active_timer_count == 0
    await loop.advance(5 * RETRY_AFTER_SECONDS)
    assert client.responses == [(0, 503)]


async def test_client_that_disconnects_during_the_pause_leaves_no_timer() -> None:
    loop = SimulatedLoop()
    client = connect(loop)
    client.send(build_request(503))
    await drain_event_loop()
    client.close()
    assert loop.active_timer_count == 0
    await loop.advance(5 * RETRY_AFTER_SECONDS)
    assert client.responses == [(0, 503)]


async def test_idle_timeout_applies_during_the_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "IDLE_TIMEOUT_SECONDS", RETRY_AFTER_SECONDS / 2)
    loop = SimulatedLoop()
    client = connect(loop)
    client.send(build_request(503))
    await drain_event_loop()
    await loop.advance(connection.MAX_DEADLINE_CHECK_SECONDS)
    assert client.closed
    assert loop.active_timer_count == 0


async def test_end_of_the_pause_sends_nothing_to_a_client_that_does_not_read() -> None:
    loop = SimulatedLoop()
    client = connect(loop)
    client.send(build_request(503) + build_request(200))
    await drain_event_loop()
    client.protocol.pause_writing()
    await loop.advance(2 * RETRY_AFTER_SECONDS)
    assert client.responses == [(0, 503)]
    client.protocol.resume_writing()
    await drain_event_loop()
    assert client.responses == [(0, 503), (2 * RETRY_AFTER_SECONDS, 200)]


async def test_resumed_writing_does_not_end_the_pause() -> None:
    loop = SimulatedLoop()
    client = connect(loop)
    client.send(build_request(503) + build_request(200))
    await drain_event_loop()
    client.protocol.pause_writing()
    client.protocol.resume_writing()
    await drain_event_loop()
    assert client.responses == [(0, 503)]


@given(st.lists(st.tuples(STATUSES, st.booleans(), st.sampled_from([0.0, 0.3, 1.0, 2.5]))))
def test_every_request_gets_one_response_in_order_and_never_during_a_pause(
    steps: list[tuple[int, bool, float]],
) -> None:
    """A step is the requested status, whether to send the request in two parts, and a delay."""

    async def run_steps() -> None:
        loop = SimulatedLoop()
        client = connect(loop)
        free_at, expected = 0.0, []
        for status, is_split, delay in steps:
            data = build_request(status)
            middle = len(data) // 2 if is_split else len(data)
            client.send(data[:middle])
            client.send(data[middle:])
            at = max(loop.now, free_at)
            expected.append((at, status))
            free_at = at + RETRY_AFTER_SECONDS if status == 503 else at
            await loop.advance(delay)
        await loop.advance(RETRY_AFTER_SECONDS * (len(steps) + 1))
        assert client.responses == [(pytest.approx(at), status) for at, status in expected]

    asyncio.run(run_steps())


@each("status", [200, 503])
async def test_closed_connection_is_freed_without_garbage_collection(status: int) -> None:
    loop = SimulatedLoop()
    client = connect(loop)
    client.send(build_request(status) + build_request(status)[:20])
    await drain_event_loop()
    protocol_reference = weakref.ref(client.protocol)
    gc.disable()
    try:
        client.close()
        del client.protocol
        await drain_event_loop()
        assert protocol_reference() is None
    finally:
        gc.enable()
