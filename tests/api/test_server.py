"""The application behind the real server, with chunked bodies and disconnecting clients."""

import asyncio
import json
import logging

import httpx2
import pytest

from api.builders import WRITER, things
from drivers.connections import open_connection

MEBIBYTE = 1024 * 1024
#: Derived from the fields of a thing.
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
