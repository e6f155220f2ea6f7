"""The wire keeps to HTTP, and a client can make it keep only so much."""

import asyncio
import logging
from types import ModuleType

import pytest

from edge.builders import release_waits
from edge.raw_connection import EdgeServer, open_connection
from tapgate.service import connection, http_protocol

HEALTH_REQUEST = b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n"
INCOMPLETE_REQUEST = b"POST /api/v1/waits HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nabc"
WAIT_REQUEST = b"POST /api/v1/waits HTTP/1.1\r\nHost: x\r\n\r\n"


@pytest.mark.parametrize(
    "nonsense",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01",
        b"HELLO\r\n\r\n",
        b"GET /health HTTP/9.9\r\n\r\n",
        b"GET /health HTTP/1.1\r\nHost: x\r\nno colon\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"POST /health HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n"
        b"Transfer-Encoding: chunked\r\n\r\n0\r\n",
        b"POST /health HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
        b"POST /health HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
        b"GET /health HTTP/1.1\r\nHost: x\r\nX: " + b"x" * 70_000 + b"\r\n\r\n",
        b"GET /" + b"x" * 70_000 + b" HTTP/1.1\r\n\r\n",
    ],
)
async def test_what_is_not_http(port: int, nonsense: bytes) -> None:
    async with open_connection(port) as line:
        await line.send(nonsense)
        answer = await line.read_response()
        assert (answer.status_code, answer.json()["code"]) == (400, "INVALID_REQUEST")
        assert answer.headers["x-request-id"]
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert await line.is_closed()


async def test_nonsense_after_a_request_does_not_spoil_its_answer(port: int) -> None:
    async with open_connection(port) as line:
        await line.send(HEALTH_REQUEST * 2 + b"HELLO\r\n\r\n")
        assert (await line.read_response()).status_code == 200
        assert (await line.read_response()).status_code == 200
        assert await line.is_closed()


async def test_http_1_0_ends_with_its_answer(port: int) -> None:
    async with open_connection(port) as line:
        await line.send(b"GET /health HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")
        answer = await line.read_response()
        assert (answer.status_code, answer.headers["connection"]) == (200, "close")
        assert await line.is_closed()


async def test_the_client_may_end_the_connection(port: int) -> None:
    async with open_connection(port) as line:
        await line.send(b"GET /health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        answer = await line.read_response()
        assert (answer.status_code, answer.headers["connection"]) == (200, "close")
        assert await line.is_closed()


@pytest.mark.parametrize("protocol", [b"websocket", b"h2c"])
async def test_no_other_protocol_is_spoken_and_the_request_is_answered(
    port: int, protocol: bytes
) -> None:
    """Java's client offers h2c with its first request, body and all."""
    body = b'{"name": "lamp"}'
    head = (
        b"POST /api/v1/echoes HTTP/1.1\r\nHost: x\r\nConnection: Upgrade, HTTP2-Settings\r\n"
        b"Upgrade: %b\r\nHTTP2-Settings: AAEAAEAAAAIAAAAB\r\nContent-Length: %d\r\n\r\n"
    ) % (protocol, len(body))
    async with open_connection(port) as line:
        await line.send(head + body[:4])
        await line.send(body[4:])
        answer = await line.read_response()
        assert (answer.status_code, answer.content) == (200, body)
        await line.send(HEALTH_REQUEST)
        assert (await line.read_response()).status_code == 200


async def test_connect_is_not_for_us(port: int) -> None:
    async with open_connection(port) as line:
        await line.send(b"CONNECT example.com:443 HTTP/1.1\r\nHost: x\r\n\r\nabc")
        assert (await line.read_response()).status_code == 400
        assert await line.is_closed()


async def test_a_head_without_end_is_refused(port: int) -> None:
    async with open_connection(port) as line:
        await line.send(b"GET /health HTTP/1.1\r\nHost: x\r\nX: ")
        for _ in range(40):
            await line.send(b"x" * 10_000)
            await asyncio.sleep(0)
        assert (await line.read_response()).status_code == 400


async def test_a_large_body_before_the_next_head_is_no_large_head(port: int) -> None:
    body = b"x" * 300_000
    head = b"POST /api/v1/large-body HTTP/1.1\r\nHost: x\r\nContent-Length: 300000\r\n\r\n"
    request = head + body
    async with open_connection(port) as line:
        await line.send(request + HEALTH_REQUEST[:20])
        assert len((await line.read_response()).content) == 300_000
        await line.send(HEALTH_REQUEST[20:])
        assert (await line.read_response()).status_code == 200


async def test_a_client_that_said_all_still_gets_its_answers(port: int) -> None:
    release_waits.clear()
    async with open_connection(port) as line:
        await line.send(WAIT_REQUEST * 3)
        line.send_eof()
        release_waits.set()
        for _ in range(3):
            assert (await line.read_response()).status_code == 200
        assert await line.is_closed()


async def test_a_client_that_stops_in_the_middle_is_not_waited_for(port: int) -> None:
    for part in (HEALTH_REQUEST[:9], INCOMPLETE_REQUEST):
        async with open_connection(port) as line:
            await line.send(part)
            line.send_eof()
            assert await line.is_closed()


async def test_it_says_to_go_on_when_the_body_is_wanted(port: int) -> None:
    body = b'{"old_pin": "1", "new_pin": "2"}'
    head = (
        b"POST /api/v1/things/change-pin HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\n"
        b"Authorization: Bearer key_writer\r\nContent-Length: %d\r\n\r\n" % len(body)
    )
    async with open_connection(port) as line:
        await line.send(head)
        assert (await line.read_response()).status_code == 100
        await line.send(body)
        assert (await line.read_response()).status_code == 400


async def test_an_answer_that_does_not_wait_for_the_body(port: int) -> None:
    async with open_connection(port) as line:
        await line.send(b"POST /nowhere HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n")
        answer = await line.read_response()
        assert (answer.status_code, answer.headers["connection"]) == (404, "close")
        await line.send(b"x" * 100_000)
        assert await line.is_closed()


async def test_nonsense_after_an_early_answer_is_not_answered_again(port: int) -> None:
    async with open_connection(port) as line:
        await line.send(b"POST /nowhere HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n")
        assert (await line.read_response()).status_code == 404
        await line.send(b"not a size\r\n")
        assert await line.is_closed()


async def test_trailers_are_not_headers(port: int) -> None:
    async with open_connection(port) as line:
        await line.send(
            b"POST /api/v1/upload HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
            b"1\r\nx\r\n0\r\nAuthorization: Bearer key_writer\r\n\r\n"
        )
        assert (await line.read_response()).status_code == 401


async def test_a_header_that_comes_twice_is_one_with_both_values(port: int) -> None:
    """Of two credentials none is chosen: a proxy may have looked at the other one."""
    good = b"Authorization: Bearer key_writer\r\n"
    head = b"POST /api/v1/upload HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n"
    async with open_connection(port) as line:
        for lines, refused in (
            (good, False),
            (good + good, True),
            (b"Authorization: Bearer nobody\r\n" + good, True),
            (good + b"authorization: Bearer nobody\r\n", True),
        ):
            await line.send(head + lines + b"\r\nx")
            assert ((await line.read_response()).status_code == 401) == refused


async def test_many_requests_sent_ahead(port: int) -> None:
    count = 10 * http_protocol._MAX_PIPELINED_REQUESTS
    async with open_connection(port) as line:
        await line.send(HEALTH_REQUEST * count)
        for _ in range(count):
            assert (await line.read_response()).status_code == 200


async def test_a_client_that_does_not_read_is_not_answered_without_limit(port: int) -> None:
    request = b"GET /api/v1/large HTTP/1.1\r\nHost: x\r\n\r\n"
    async with open_connection(port) as line:
        await line.send(request * 20)
        async with open_connection(port) as other:
            await other.send(HEALTH_REQUEST)
            assert (await other.read_response()).status_code == 200
        sizes = [len((await line.read_response()).content) for _ in range(20)]
        assert sizes == [4 * 1024 * 1024] * 20


async def test_a_last_answer_that_is_not_read_does_not_keep_the_connection(
    server: EdgeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "_MAX_DEADLINE_CHECK_SECONDS", 0.05)
    last = b"GET /api/v1/large HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
    async with open_connection(server.port, window=4096) as line:
        async with asyncio.timeout(60):
            while not server.connection_count:
                await asyncio.sleep(0.01)
            monkeypatch.setattr(connection, "IDLE_TIMEOUT_SECONDS", 0.3)
            await line.send(last)
            while server.connection_count:
                await asyncio.sleep(0.05)
        with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
            await line.read_response()


async def test_no_line_is_smuggled_into_a_head(port: int) -> None:
    async with open_connection(port) as line:
        await line.send(b"GET /api/v1/injects HTTP/1.1\r\nHost: x\r\n\r\n")
        answer = await line.read_response()
        assert answer.status_code == 500
        assert "set-cookie" not in answer.headers


@pytest.mark.parametrize(
    ("module", "limit", "sent"),
    [
        (connection, "IDLE_TIMEOUT_SECONDS", b""),
        (http_protocol, "_HEAD_TIMEOUT_SECONDS", b"GET /hea"),
        (http_protocol, "_RECEIVE_TIMEOUT_SECONDS", INCOMPLETE_REQUEST),
        (http_protocol, "_STALL_TIMEOUT_SECONDS", INCOMPLETE_REQUEST),
        (http_protocol, "_MIN_RATE_GRACE_SECONDS", INCOMPLETE_REQUEST),
    ],
)
async def test_a_client_that_sends_too_slowly_is_cut_off(
    module: ModuleType,
    limit: str,
    sent: bytes,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
) -> None:
    monkeypatch.setattr(module, limit, 0.05)
    monkeypatch.setattr(connection, "_MAX_DEADLINE_CHECK_SECONDS", 0.05)
    port: int = request.getfixturevalue("port")
    async with open_connection(port) as line:
        with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
            await line.send(sent)
            await line.read_response()


async def test_what_is_under_way_is_answered_before_the_end(
    server: EdgeServer, caplog: pytest.LogCaptureFixture
) -> None:
    release_waits.clear()
    async with open_connection(server.port) as idle, open_connection(server.port) as line:
        await idle.send(HEALTH_REQUEST)
        assert (await idle.read_response()).status_code == 200
        await line.send(WAIT_REQUEST)
        async with asyncio.timeout(60):
            while not server.active_request_count:
                await asyncio.sleep(0.01)
        with caplog.at_level(logging.INFO, logger="uvicorn.error"):
            server.request_stop()
            assert await idle.is_closed()
            release_waits.set()
            answer = await line.read_response()
        assert (answer.status_code, answer.headers["connection"]) == (200, "close")
        assert await line.is_closed()
