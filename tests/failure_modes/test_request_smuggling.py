"""Request smuggling: a proxy and the gateway interpret the same bytes as different requests."""

import asyncio
import inspect
import json
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

from builders.statements import get_statement
from drivers.connections import EdgeServer, RawConnection, open_connection
from harness import Harness, HmacAuth, parse_error
from tapgate.http.protocol import HttpProtocol
from tapgate_client import signing
from tapgate_client.clock import format_rfc3339, system_clock

#: A valid request. If it gets a response after an ambiguous request, it was smuggled.
SMUGGLED_REQUEST = b"GET /api/v1/open HTTP/1.1\r\nHost: x\r\n\r\n"
POST_HEAD = b"POST /api/v1/echoes HTTP/1.1\r\nHost: x\r\n"
CHUNKED_HEAD = POST_HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
LAST_CHUNK = b"0\r\n\r\n"
CONTENT_LENGTH_HEADER = b"Content-Length: %d\r\n\r\n" % len(SMUGGLED_REQUEST)

AMBIGUOUS_REQUESTS = {
    "a length and chunks": POST_HEAD
    + b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n"
    + LAST_CHUNK,
    "chunks and a length": POST_HEAD
    + b"Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n"
    + LAST_CHUNK,
    "two equal lengths": POST_HEAD + b"Content-Length: 0\r\nContent-Length: 0\r\n\r\n",
    "two lengths": POST_HEAD + b"Content-Length: 0\r\n" + CONTENT_LENGTH_HEADER,
    "two lengths in one line": POST_HEAD + b"Content-Length: 0, 40\r\n\r\n",
    "a length with a sign": POST_HEAD + b"Content-Length: +0\r\n\r\n",
    "a length in hex": POST_HEAD + b"Content-Length: 0x0\r\n\r\n",
    "a length that overflows": POST_HEAD + b"Content-Length: 99999999999999999999999\r\n\r\n",
    "an empty length": POST_HEAD + b"Content-Length: \r\n\r\n",
    "a length with a space": POST_HEAD + b"Content-Length: 1 1\r\n\r\n",
    "an unknown transfer coding": POST_HEAD + b"Transfer-Encoding: xchunked\r\n\r\n" + LAST_CHUNK,
    "identity": POST_HEAD + b"Transfer-Encoding: identity\r\n\r\n",
    "chunked, then identity": POST_HEAD
    + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n"
    + LAST_CHUNK,
    "chunked twice": POST_HEAD + b"Transfer-Encoding: chunked, chunked\r\n\r\n" + LAST_CHUNK,
    "quoted chunked": POST_HEAD + b'Transfer-Encoding: "chunked"\r\n\r\n' + LAST_CHUNK,
    "a vertical tab before chunked": POST_HEAD
    + b"Transfer-Encoding: \x0bchunked\r\n\r\n"
    + LAST_CHUNK,
    "a space before the colon": POST_HEAD + b"Transfer-Encoding : chunked\r\n\r\n" + LAST_CHUNK,
    "a folded coding": POST_HEAD + b"Transfer-Encoding:\r\n chunked\r\n\r\n" + LAST_CHUNK,
    "a folded header": POST_HEAD + b"X-A: a\r\n b\r\nContent-Length: 0\r\n\r\n",
    "a folded first header": b"GET /api/v1/open HTTP/1.1\r\n Host: x\r\n\r\n",
    "a bare line feed in a chunk extension": CHUNKED_HEAD + b"1;a=b\nx\r\n" + LAST_CHUNK,
    "chunks with bare line feeds": CHUNKED_HEAD + b"1\nx\n0\n\n",
    "a chunk size with 0x": CHUNKED_HEAD + b"0x1\r\nx\r\n" + LAST_CHUNK,
    "a negative chunk": CHUNKED_HEAD + b"-1\r\nx\r\n" + LAST_CHUNK,
    "a chunk size that overflows": CHUNKED_HEAD + b"10000000000000001\r\nx\r\n" + LAST_CHUNK,
    "a space after a chunk size": CHUNKED_HEAD + b"1 \r\nx\r\n" + LAST_CHUNK,
    "a chunk longer than its size": CHUNKED_HEAD + b"1\r\nxx" + LAST_CHUNK,
    "bare line feeds": b"GET /api/v1/open HTTP/1.1\nHost: x\n\n",
    "a bare carriage return in a header": POST_HEAD + b"X-A: a\rContent-Length: 5\r\n\r\n",
    "a bare line feed in a header": POST_HEAD + b"X-A: a\n" + CONTENT_LENGTH_HEADER,
    "NUL in a value": POST_HEAD + b"X-A: a\0b\r\nContent-Length: 0\r\n\r\n",
    "NUL in a name": POST_HEAD + b"X\0A: a\r\nContent-Length: 0\r\n\r\n",
    "a header without a name": POST_HEAD + b": a\r\nContent-Length: 0\r\n\r\n",
    "an invalid header name": POST_HEAD + b"X(A): a\r\nContent-Length: 0\r\n\r\n",
    "HTTP/1.2": b"GET /api/v1/open HTTP/1.2\r\nHost: x\r\n\r\n",
    "HTTP/0.9": b"GET /api/v1/open\r\n",
    "the HTTP/2 preface": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "tabs in the request line": b"GET\t/api/v1/open\tHTTP/1.1\r\nHost: x\r\n\r\n",
    "a lowercase method": b"get /api/v1/open HTTP/1.1\r\nHost: x\r\n\r\n",
    "a length, chunks and an upgrade": POST_HEAD
    + b"Upgrade: h2c\r\nConnection: upgrade\r\nContent-Length: 4\r\n"
    + b"Transfer-Encoding: chunked\r\n\r\n"
    + LAST_CHUNK,
    "100 kB of one header": POST_HEAD + b"X-A: " + b"a" * 100_000 + b"\r\n\r\n",
    "one header 3,000 times": POST_HEAD + b"X:\r\n" * 3_000 + b"\r\n",
    "10,000 headers": POST_HEAD + b"".join(b"X-%d: a\r\n" % n for n in range(10_000)) + b"\r\n",
}


@pytest.fixture
def port(tmp_path: Path) -> Iterator[int]:
    """Port for a small gateway that uses the production HTTP protocol."""
    edge_server = EdgeServer(tmp_path)
    yield edge_server.port
    edge_server.stop()


async def read_all_responses(raw: RawConnection) -> list[httpx2.Response]:
    """Read responses until the connection is closed."""
    received = []
    while True:
        try:
            received.append(await raw.read_response())
        except asyncio.IncompleteReadError:
            return received


async def send_and_read_all(port: int, data: bytes) -> list[httpx2.Response]:
    async with open_connection(port) as raw:
        await raw.send(data)
        raw.send_eof()
        return await read_all_responses(raw)


async def test_ambiguous_or_malformed_request_is_rejected_and_the_connection_closed(
    port: int,
) -> None:
    """If a proxy and a server disagree on where a body ends, a client can inject requests."""
    for name, data in AMBIGUOUS_REQUESTS.items():
        (response,) = await send_and_read_all(port, data + SMUGGLED_REQUEST)
        assert (response.status_code, response.json()["code"]) == (400, "INVALID_REQUEST"), name
        assert response.headers["connection"] == "close", name


async def test_request_body_is_never_parsed_as_a_request(port: int) -> None:
    """Covers unexpected bodies, upgrade offers, and hop-by-hop headers."""
    for head in (
        b"GET /api/v1/open HTTP/1.1\r\nHost: x\r\n",
        POST_HEAD + b"Upgrade: h2c\r\nConnection: upgrade\r\n",
        POST_HEAD + b"Connection: close, content-length\r\n",
        POST_HEAD + b"Expect: 200-ok\r\n",
    ):
        async with open_connection(port) as raw:
            await raw.send(head + CONTENT_LENGTH_HEADER + SMUGGLED_REQUEST)
            raw.send_eof()
            found = [response.status_code for response in await read_all_responses(raw)]
            assert found == [200], head


async def test_path_has_exactly_one_spelling(port: int) -> None:
    """If paths were normalized, `/./metrics` would bypass a proxy that blocks `/metrics`."""
    for path in (
        b"//api/v1/open",
        b"/./api/v1/open",
        b"/api/v1/x/../open",
        b"/api/v1/x/%2e%2e/open",
        b"/api/v1/%6fpen",
        b"/api%2fv1%2fopen",
        b"/api/v1/open;a=b",
        b"/api/v1/open%3Fa",
        b"/api/v1/open#a",
        b"/api/v1/open/",
        b"/api/v1/open%00",
        b"/API/v1/open",
    ):
        (response,) = await send_and_read_all(port, b"GET %b HTTP/1.1\r\nHost: x\r\n\r\n" % path)
        assert response.status_code == 404, path


async def test_requests_pipelined_after_a_malformed_request_are_not_processed(port: int) -> None:
    """After a malformed request, the start of the next one is unknown."""
    bad = POST_HEAD + b"Content-Length: x\r\n\r\n"
    received = await send_and_read_all(port, SMUGGLED_REQUEST + bad + SMUGGLED_REQUEST * 3)
    assert [response.status_code for response in received] in ([200], [200, 400])


async def test_pipelined_upgrade_offers_do_not_grow_the_stack(
    port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Recursive parsing would exhaust the stack and copy the remaining data at every level."""
    depths: list[int] = []
    ignore_upgrade = HttpProtocol.ignore_upgrade

    def record_depth(self: HttpProtocol, rest: memoryview) -> bytes | memoryview:
        frame, depth = inspect.currentframe(), 0
        while (frame := frame.f_back) is not None:  # type: ignore[assignment]
            depth += 1
        depths.append(depth)
        return ignore_upgrade(self, rest)

    monkeypatch.setattr(HttpProtocol, "ignore_upgrade", record_depth)
    offer = b"GET /nowhere HTTP/1.1\r\nHost: x\r\nUpgrade: h2c\r\nConnection: upgrade\r\n\r\n"
    received = await send_and_read_all(port, offer * 1000)
    assert [response.status_code for response in received] == [404] * 1000
    assert len(depths) == 1000
    assert max(depths) - min(depths) <= 1  # called by the transport or by the event loop


async def test_signed_path_is_the_path_that_is_served(harness: Harness) -> None:
    """Verifying the decoded path but routing the raw one would make one signature fit two paths."""
    terminal_auth = await harness.create_processor()
    body = json.dumps({"card_identifier": "TAP-1"}).encode()
    served = "/api/v1/pos/lookup-card"
    for signed_path, requested_path in (
        (served, "/api/v1/pos/%6cookup-card"),
        ("/api/v1/pos/%6cookup-card", served),
        (served, "/api/v1/pos//lookup-card"),
        (served, "/payment/lookup-card"),
        ("/payment/lookup-card", "/api/v1/payment/lookup-card"),
        (served, "/api/v1/pos/payment"),
    ):
        response = await harness.post(
            requested_path, content=body, headers=_sign_headers(terminal_auth, signed_path, body)
        )
        assert response.status_code in (401, 404), requested_path
    # The signed path has no query. The signature is valid, and the query parameter is not.
    response = await harness.post(
        served + "?a", content=body, headers=_sign_headers(terminal_auth, served, body)
    )
    assert parse_error(response) == (422, "VALIDATION_FAILED")
    assert "is not a parameter" in response.text


def _sign_headers(terminal_auth: HmacAuth, path: str, body: bytes) -> dict[str, str]:
    timestamp = format_rfc3339(system_clock())
    signature = signing.sign(terminal_auth.secret.encode(), "POST", path, timestamp, body)
    return {"X-API-Key-ID": terminal_auth.id, "X-Timestamp": timestamp, "X-Signature": signature}


async def test_host_header_does_not_appear_in_generated_links(harness: Harness) -> None:
    """A link built from the Host header would send the statement token to an attacker's host."""
    spoofed = {"Host": "evil.example", "X-Forwarded-Host": "evil.example"}
    harness.client.headers.update(spoofed | {"X-Forwarded-Proto": "javascript"})
    holder = await harness.create_subscriber()
    statement = await get_statement(
        harness, await harness.create_api_key("payments:read"), holder, format="csv"
    )
    assert statement["statement_url"].startswith(harness.services.settings.public_url + "/api/v1/")
    file = await harness.get(
        statement["statement_url"].removeprefix(harness.services.settings.public_url)
    )
    assert "evil" not in str(file.headers)
    name = file.headers["content-disposition"].removeprefix('attachment; filename="statement-')
    assert name.removesuffix('.csv"').replace("-", "").isdigit()
