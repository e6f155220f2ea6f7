"""HttpProtocol conforms to HTTP, bounds its buffers and serves the application."""

import asyncio
import json
import logging
from types import ModuleType

import httpx2
import pytest

from builders.http_apps import WRITER, release_waits, things
from drivers.connections import EdgeServer, open_connection
from tapgate.http import connection, protocol

HEALTH_REQUEST = b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n"
INCOMPLETE_REQUEST = b"POST /api/v1/waits HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nabc"
WAIT_REQUEST = b"POST /api/v1/waits HTTP/1.1\r\nHost: x\r\n\r\n"


@pytest.mark.parametrize(
    "malformed",
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
async def test_malformed_http_returns_400_and_closes_the_connection(
    port: int, malformed: bytes
) -> None:
    async with open_connection(port) as conn:
        await conn.send(malformed)
        response = await conn.read_response()
        assert (response.status_code, response.json()["code"]) == (400, "INVALID_REQUEST")
        assert response.headers["x-request-id"]
        assert response.headers["x-content-type-options"] == "nosniff"
        assert await conn.is_closed()


async def test_malformed_data_after_a_request_does_not_affect_its_response(port: int) -> None:
    async with open_connection(port) as conn:
        await conn.send(HEALTH_REQUEST * 2 + b"HELLO\r\n\r\n")
        assert (await conn.read_response()).status_code == 200
        assert (await conn.read_response()).status_code == 200
        assert await conn.is_closed()


async def test_http_1_0_connection_closes_after_the_response(port: int) -> None:
    async with open_connection(port) as conn:
        await conn.send(b"GET /health HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")
        response = await conn.read_response()
        assert (response.status_code, response.headers["connection"]) == (200, "close")
        assert await conn.is_closed()


async def test_connection_close_header_closes_the_connection(port: int) -> None:
    async with open_connection(port) as conn:
        await conn.send(b"GET /health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        response = await conn.read_response()
        assert (response.status_code, response.headers["connection"]) == (200, "close")
        assert await conn.is_closed()


@pytest.mark.parametrize("protocol", [b"websocket", b"h2c"])
async def test_protocol_upgrade_is_ignored_and_the_request_is_served(
    port: int, protocol: bytes
) -> None:
    """Java's HTTP client offers h2c with its first request, even if the request has a body."""
    body = b'{"name": "lamp"}'
    head = (
        b"POST /api/v1/echoes HTTP/1.1\r\nHost: x\r\nConnection: Upgrade, HTTP2-Settings\r\n"
        b"Upgrade: %b\r\nHTTP2-Settings: AAEAAEAAAAIAAAAB\r\nContent-Length: %d\r\n\r\n"
    ) % (protocol, len(body))
    async with open_connection(port) as conn:
        await conn.send(head + body[:4])
        await conn.send(body[4:])
        response = await conn.read_response()
        assert (response.status_code, response.content) == (200, body)
        await conn.send(HEALTH_REQUEST)
        assert (await conn.read_response()).status_code == 200


async def test_connect_method_is_rejected(port: int) -> None:
    async with open_connection(port) as conn:
        await conn.send(b"CONNECT example.com:443 HTTP/1.1\r\nHost: x\r\n\r\nabc")
        assert (await conn.read_response()).status_code == 400
        assert await conn.is_closed()


async def test_endless_head_is_rejected(port: int) -> None:
    async with open_connection(port) as conn:
        await conn.send(b"GET /health HTTP/1.1\r\nHost: x\r\nX: ")
        for _ in range(40):
            await conn.send(b"x" * 10_000)
            await asyncio.sleep(0)
        assert (await conn.read_response()).status_code == 400


async def test_large_body_does_not_count_toward_the_next_head(port: int) -> None:
    body = b"x" * 300_000
    head = b"POST /api/v1/large-body HTTP/1.1\r\nHost: x\r\nContent-Length: 300000\r\n\r\n"
    request = head + body
    async with open_connection(port) as conn:
        await conn.send(request + HEALTH_REQUEST[:20])
        assert len((await conn.read_response()).content) == 300_000
        await conn.send(HEALTH_REQUEST[20:])
        assert (await conn.read_response()).status_code == 200


async def test_half_closed_client_gets_all_responses(port: int) -> None:
    release_waits.clear()
    async with open_connection(port) as conn:
        await conn.send(WAIT_REQUEST * 3)
        conn.send_eof()
        release_waits.set()
        for _ in range(3):
            assert (await conn.read_response()).status_code == 200
        assert await conn.is_closed()


async def test_half_closed_client_with_an_incomplete_request_is_disconnected(port: int) -> None:
    for part in (HEALTH_REQUEST[:9], INCOMPLETE_REQUEST):
        async with open_connection(port) as conn:
            await conn.send(part)
            conn.send_eof()
            assert await conn.is_closed()


async def test_expect_100_continue_is_honored(port: int) -> None:
    body = b'{"old_pin": "1", "new_pin": "2"}'
    head = (
        b"POST /api/v1/things/change-pin HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\n"
        b"Authorization: Bearer key_writer\r\nContent-Length: %d\r\n\r\n" % len(body)
    )
    async with open_connection(port) as conn:
        await conn.send(head)
        assert (await conn.read_response()).status_code == 100
        await conn.send(body)
        assert (await conn.read_response()).status_code == 400


async def test_early_response_closes_the_connection_without_reading_the_body(port: int) -> None:
    async with open_connection(port) as conn:
        await conn.send(b"POST /nowhere HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n")
        response = await conn.read_response()
        assert (response.status_code, response.headers["connection"]) == (404, "close")
        await conn.send(b"x" * 100_000)
        assert await conn.is_closed()


async def test_malformed_data_after_an_early_response_gets_no_second_response(port: int) -> None:
    async with open_connection(port) as conn:
        await conn.send(b"POST /nowhere HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n")
        assert (await conn.read_response()).status_code == 404
        await conn.send(b"not a size\r\n")
        assert await conn.is_closed()


async def test_trailers_are_not_treated_as_headers(port: int) -> None:
    async with open_connection(port) as conn:
        await conn.send(
            b"POST /api/v1/upload HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
            b"1\r\nx\r\n0\r\nAuthorization: Bearer key_writer\r\n\r\n"
        )
        assert (await conn.read_response()).status_code == 401


async def test_repeated_credential_header_is_rejected(port: int) -> None:
    """Neither value is used, because a proxy may have checked the other one."""
    good = b"Authorization: Bearer key_writer\r\n"
    head = b"POST /api/v1/upload HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n"
    async with open_connection(port) as conn:
        for headers, is_rejected in (
            (good, False),
            (good + good, True),
            (b"Authorization: Bearer nobody\r\n" + good, True),
            (good + b"authorization: Bearer nobody\r\n", True),
        ):
            await conn.send(head + headers + b"\r\nx")
            assert ((await conn.read_response()).status_code == 401) == is_rejected


async def test_many_pipelined_requests_all_get_responses(port: int) -> None:
    count = 10 * protocol.MAX_PIPELINED_REQUESTS
    async with open_connection(port) as conn:
        await conn.send(HEALTH_REQUEST * count)
        for _ in range(count):
            assert (await conn.read_response()).status_code == 200


async def test_client_that_does_not_read_neither_blocks_others_nor_loses_responses(
    port: int,
) -> None:
    request = b"GET /api/v1/large HTTP/1.1\r\nHost: x\r\n\r\n"
    async with open_connection(port) as conn:
        await conn.send(request * 20)
        async with open_connection(port) as other:
            await other.send(HEALTH_REQUEST)
            assert (await other.read_response()).status_code == 200
        sizes = [len((await conn.read_response()).content) for _ in range(20)]
        assert sizes == [4 * 1024 * 1024] * 20


async def test_unread_final_response_does_not_keep_the_connection_open(
    server: EdgeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "MAX_DEADLINE_CHECK_SECONDS", 0.05)
    last = b"GET /api/v1/large HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
    async with open_connection(server.port, window=4096) as conn:
        async with asyncio.timeout(60):
            while not server.connection_count:
                await asyncio.sleep(0.01)
            monkeypatch.setattr(connection, "IDLE_TIMEOUT_SECONDS", 0.3)
            await conn.send(last)
            while server.connection_count:
                await asyncio.sleep(0.05)
        with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
            await conn.read_response()


async def test_response_with_a_line_break_in_a_header_is_replaced_by_500(port: int) -> None:
    async with open_connection(port) as conn:
        await conn.send(b"GET /api/v1/injects HTTP/1.1\r\nHost: x\r\n\r\n")
        response = await conn.read_response()
        assert response.status_code == 500
        assert "set-cookie" not in response.headers


@pytest.mark.parametrize(
    ("module", "limit", "sent"),
    [
        (connection, "IDLE_TIMEOUT_SECONDS", b""),
        (protocol, "HEAD_TIMEOUT_SECONDS", b"GET /hea"),
        (protocol, "RECEIVE_TIMEOUT_SECONDS", INCOMPLETE_REQUEST),
        (protocol, "STALL_TIMEOUT_SECONDS", INCOMPLETE_REQUEST),
        (protocol, "MIN_RATE_GRACE_SECONDS", INCOMPLETE_REQUEST),
    ],
)
async def test_client_that_sends_too_slowly_is_disconnected(
    module: ModuleType,
    limit: str,
    sent: bytes,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
) -> None:
    monkeypatch.setattr(module, limit, 0.05)
    monkeypatch.setattr(connection, "MAX_DEADLINE_CHECK_SECONDS", 0.05)
    port: int = request.getfixturevalue("port")
    async with open_connection(port) as conn:
        with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
            await conn.send(sent)
            await conn.read_response()


async def test_graceful_shutdown_completes_requests_in_progress(
    server: EdgeServer, caplog: pytest.LogCaptureFixture
) -> None:
    release_waits.clear()
    async with open_connection(server.port) as idle, open_connection(server.port) as conn:
        await idle.send(HEALTH_REQUEST)
        assert (await idle.read_response()).status_code == 200
        await conn.send(WAIT_REQUEST)
        async with asyncio.timeout(60):
            while not server.active_request_count:
                await asyncio.sleep(0.01)
        with caplog.at_level(logging.INFO, logger="uvicorn.error"):
            server.request_stop()
            assert await idle.is_closed()
            release_waits.set()
            response = await conn.read_response()
        assert (response.status_code, response.headers["connection"]) == (200, "close")
        assert await conn.is_closed()


MEBIBYTE = 1024 * 1024
#: Derived from a thing's fields.
(BODY_LIMIT,) = {
    endpoint.body_limit for endpoint in things if endpoint.name == "POST /api/v1/things"
}
REQUEST_HEAD = b"POST /api/v1/things HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer key_writer\r\n"
VALID_BODY = b'{"name": "Lamp", "pin": "4071", "amount": "5"}'


async def test_connection_is_kept_alive_across_requests_and_errors(port: int) -> None:
    async with open_connection(port) as conn:
        for content, status in [(VALID_BODY, 201), (b"{", 400), (b"", 400), (VALID_BODY, 201)]:
            await conn.send(REQUEST_HEAD + b"Content-Length: %d\r\n\r\n" % len(content) + content)
            assert (await conn.read_response()).status_code == status
        await conn.send(b"GET /nowhere HTTP/1.1\r\nHost: x\r\n\r\n")
        assert (await conn.read_response()).status_code == 404
        await conn.send(b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n")
        assert (await conn.read_response()).status_code == 200


async def test_chunked_body_is_accepted(port: int) -> None:
    async with open_connection(port) as conn:
        await conn.send(REQUEST_HEAD + b"Transfer-Encoding: chunked\r\n\r\n")
        for start in range(0, len(VALID_BODY), 7):
            chunk = VALID_BODY[start : start + 7]
            await conn.send(b"%x\r\n%s\r\n" % (len(chunk), chunk))
        await conn.send(b"0\r\n\r\n")
        assert (await conn.read_response()).status_code == 201


async def test_content_length_above_the_limit_is_rejected_immediately(port: int) -> None:
    async with open_connection(port) as conn:
        await conn.send(REQUEST_HEAD + b"Content-Length: 999999999999\r\n\r\n")
        response = await conn.read_response()
        assert (response.status_code, response.json()["code"]) == (413, "PAYLOAD_TOO_LARGE")
        assert response.headers["connection"] == "close"
        assert response.headers["x-request-id"]


async def test_content_length_above_the_limit_gets_no_100_continue(port: int) -> None:
    async with open_connection(port) as conn:
        await conn.send(REQUEST_HEAD + b"Content-Length: 2000000\r\nExpect: 100-continue\r\n\r\n")
        assert (await conn.read_response()).status_code == 413


async def test_oversized_body_is_not_read_without_limit(port: int) -> None:
    async with open_connection(port) as conn:
        await conn.send(REQUEST_HEAD + b"Content-Length: %d\r\n\r\n" % (1024 * MEBIBYTE))
        assert (await conn.read_response()).status_code == 413
        with pytest.raises(ConnectionError):
            for _ in range(1024):
                await conn.send(b" " * MEBIBYTE)


async def test_client_that_sends_the_whole_body_first_can_read_the_response(port: int) -> None:
    async with httpx2.AsyncClient(base_url=f"http://127.0.0.1:{port}") as client:
        for size in (BODY_LIMIT + 1, 3 * MEBIBYTE, 9 * MEBIBYTE):
            response = await client.post("/api/v1/things", content=b" " * size)
            assert response.status_code == 413
        largest_body = b" " * (BODY_LIMIT - len(VALID_BODY)) + VALID_BODY
        headers = {"Authorization": f"Bearer {WRITER.id}"}
        response = await client.post("/api/v1/things", content=largest_body, headers=headers)
        assert response.status_code == 201


async def test_client_disconnect_is_counted_and_not_logged_as_an_error(
    port: int, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    async with open_connection(port) as conn:
        await conn.send(REQUEST_HEAD + b'Content-Length: 100\r\n\r\n{"name"')
    deadline = asyncio.get_running_loop().time() + 30
    expected_line = (
        'tapgate_http_requests_total{endpoint="/api/v1/things",method="POST",status="499"} 1.0'
    )
    async with httpx2.AsyncClient(base_url=f"http://127.0.0.1:{port}") as client:
        while expected_line not in (await client.get("/metrics")).text:
            assert asyncio.get_running_loop().time() < deadline
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []
    assert "Traceback" not in capfd.readouterr().err


@pytest.mark.parametrize(
    "request_line",
    [
        b"GET /caf\xc3\xa9 HTTP/1.1",
        b"GET /%2e%2e/%2e%2e/etc/passwd HTTP/1.1",
        b"GET //health HTTP/1.1",
        b"GET /health/ HTTP/1.1",
        b"GET http://elsewhere/nowhere HTTP/1.1",
        b"OPTIONS * HTTP/1.1",
        b"CONNECT elsewhere:443 HTTP/1.1",
    ],
)
async def test_unusual_targets_are_rejected(port: int, request_line: bytes) -> None:
    async with open_connection(port) as conn:
        await conn.send(request_line + b"\r\nHost: x\r\n\r\n")
        assert (await conn.read_response()).status_code in {400, 404, 405}


async def test_client_address_is_the_peer_address(port: int) -> None:
    async with httpx2.AsyncClient(base_url=f"http://127.0.0.1:{port}") as client:
        response = await client.get("/api/v1/open", headers={"X-Forwarded-For": "203.0.113.9"})
        assert json.loads(response.content)["ip"] == "127.0.0.1"
