"""Who is told to come later is not listened to until then, and loses nothing."""

import asyncio
import gc
import weakref

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge.hand_wire import PAUSE, HandLoop, connect, request, settled
from tapgate.service import connection

STATUSES = st.sampled_from([200, 503])


async def test_nothing_is_read_before_the_end_of_the_pause() -> None:
    loop = HandLoop()
    client = connect(loop)
    client.send(request(503))
    await settled()
    assert client.answers == [(0, 503)]
    client.send(request(200))
    await loop.wait(PAUSE / 2)
    assert client.answers == [(0, 503)]
    await loop.wait(PAUSE / 2)
    assert client.answers == [(0, 503), (PAUSE, 200)]
    client.send(request(200))
    await settled()
    assert client.answers[2:] == [(PAUSE, 200)]


async def test_what_was_sent_ahead_waits_too() -> None:
    loop = HandLoop()
    client = connect(loop)
    client.send(request(503) + request(200) + request(503) + request(200))
    await loop.wait(5 * PAUSE)
    assert client.answers == [(0, 503), (PAUSE, 200), (PAUSE, 503), (2 * PAUSE, 200)]


async def test_a_client_that_said_all_gets_its_answers_and_then_the_end() -> None:
    loop = HandLoop()
    client = connect(loop)
    client.send(request(503) + request(200))
    assert client.wire.eof_received()
    await loop.wait(PAUSE / 2)
    assert not client.closed
    await loop.wait(PAUSE / 2)
    assert client.answers == [(0, 503), (PAUSE, 200)]
    assert client.closed


@pytest.mark.parametrize("ahead", [b"", request(200)])
async def test_shutdown_closes_a_paused_connection_at_once(ahead: bytes) -> None:
    loop = HandLoop()
    client = connect(loop)
    client.send(request(503) + ahead)
    await settled()
    client.wire.shutdown()
    assert client.closed
    assert loop.timers == 0
    await loop.wait(5 * PAUSE)
    assert client.answers == [(0, 503)]


async def test_a_client_that_goes_away_in_the_pause_leaves_nothing_behind() -> None:
    loop = HandLoop()
    client = connect(loop)
    client.send(request(503))
    await settled()
    client.close()
    assert loop.timers == 0
    await loop.wait(5 * PAUSE)
    assert client.answers == [(0, 503)]


async def test_the_idle_deadline_holds_in_the_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "IDLE_TIMEOUT_SECONDS", PAUSE / 2)
    loop = HandLoop()
    client = connect(loop)
    client.send(request(503))
    await settled()
    await loop.wait(connection._MAX_DEADLINE_CHECK_SECONDS)
    assert client.closed
    assert loop.timers == 0


async def test_a_client_that_does_not_read_is_not_answered_when_the_pause_is_over() -> None:
    loop = HandLoop()
    client = connect(loop)
    client.send(request(503) + request(200))
    await settled()
    client.wire.pause_writing()
    await loop.wait(2 * PAUSE)
    assert client.answers == [(0, 503)]
    client.wire.resume_writing()
    await settled()
    assert client.answers == [(0, 503), (2 * PAUSE, 200)]


async def test_that_a_client_reads_again_does_not_end_the_pause() -> None:
    loop = HandLoop()
    client = connect(loop)
    client.send(request(503) + request(200))
    await settled()
    client.wire.pause_writing()
    client.wire.resume_writing()
    await settled()
    assert client.answers == [(0, 503)]


@given(st.lists(st.tuples(STATUSES, st.booleans(), st.sampled_from([0.0, 0.3, 1.0, 2.5]))))
def test_every_request_is_answered_once_in_order_and_never_in_a_pause(
    steps: list[tuple[int, bool, float]],
) -> None:
    """Each step: what is asked, whether it comes in two pieces, how much later the next is."""

    async def story() -> None:
        loop = HandLoop()
        client = connect(loop)
        free, expected = 0.0, []
        for status, in_pieces, later in steps:
            data = request(status)
            cut = len(data) // 2 if in_pieces else len(data)
            client.send(data[:cut])
            client.send(data[cut:])
            at = max(loop.now, free)
            expected.append((at, status))
            free = at + PAUSE if status == 503 else at
            await loop.wait(later)
        await loop.wait(PAUSE * (len(steps) + 1))
        assert client.answers == [(pytest.approx(at), status) for at, status in expected]

    asyncio.run(story())


@pytest.mark.parametrize("status", [200, 503])
async def test_a_closed_connection_is_gone_without_the_collector(status: int) -> None:
    loop = HandLoop()
    client = connect(loop)
    client.send(request(status) + request(status)[:20])
    await settled()
    gone = weakref.ref(client.wire)
    gc.disable()
    try:
        client.close()
        del client.wire
        await settled()
        assert gone() is None
    finally:
        gc.enable()
