"""Limits on what one connection can make the process buffer, parse or wait for."""

import asyncio
import tracemalloc
from collections.abc import AsyncIterator, Iterator

import pytest

from builders.http_apps import ADMIN, TERMINAL, WRITER, EdgeApp, build_bearer_headers
from drivers.connections import (
    EdgeServer,
    SimulatedLoop,
    connect,
    drain_event_loop,
    open_connection,
)
from tapgate.http import connection, protocol
from tapgate.http.body_budget import FREE_BODY_BYTES, BodyBudget
from tapgate.http.body_limits import DEFAULT_BODY_BYTES
from tapgate.http.connection import BoundedConnection
from tapgate.http.protocol import HttpProtocol

MEBIBYTE = 1024 * 1024
ECHO_HEAD = b"POST /api/v1/echoes HTTP/1.1\r\nHost: x\r\n"
CHUNKED_HEAD = ECHO_HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
HEALTH_REQUEST = b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n"


@pytest.fixture
def body_budget(monkeypatch: pytest.MonkeyPatch) -> BodyBudget:
    """A budget of 8 KiB that a single address may use completely."""
    budget = BodyBudget(8 * 1024, share=8 * 1024)
    monkeypatch.setattr(BoundedConnection, "body_budget", budget)
    return budget


@pytest.fixture
def traced_memory() -> Iterator[None]:
    tracemalloc.start()
    yield
    tracemalloc.stop()


@pytest.mark.parametrize(
    ("start", "endless"),
    [
        (CHUNKED_HEAD + b"0\r\nX: ", b"x" * 10_000),
        (CHUNKED_HEAD + b"0\r\n", b"X: x\r\n" * 2_000),
        (CHUNKED_HEAD + b"1;a=", b"x" * 10_000),
        (CHUNKED_HEAD, (b"1;a=%b\r\nx\r\n" % (b"x" * 200)) * 50),
        (b"\r\n", b"\r\n" * 5_000),
        (b"GET /", b"x" * 10_000),
        (b"GET / HTTP/1.1\r\nHost: x\r\nX: ", b"x" * 10_000),
    ],
    ids=["trailer", "trailers", "extension", "extensions", "blank lines", "target", "field"],
)
@pytest.mark.usefixtures("traced_memory")
async def test_endless_input_is_rejected_with_bounded_memory(start: bytes, endless: bytes) -> None:
    client = connect(SimulatedLoop())
    before, _ = tracemalloc.get_traced_memory()
    client.send(start)
    sent = 0
    while not client.responses and sent < 4 * MEBIBYTE:
        client.send(endless)
        sent += len(endless)
    await drain_event_loop()
    _, peak = tracemalloc.get_traced_memory()
    assert [status for _, status in client.responses] == [400]
    assert sent <= 2 * protocol.MAX_OVERHEAD_BYTES
    assert peak - before < MEBIBYTE


async def test_chunk_framing_is_accepted_in_proportion_to_the_body(port: int) -> None:
    body = b"x" * 15_000
    async with open_connection(port) as conn:
        await conn.send(CHUNKED_HEAD + b"1\r\nx\r\n" * len(body) + b"0\r\nX: trailer\r\n\r\n")
        assert (await conn.read_response()).content == body
        await conn.send(CHUNKED_HEAD + b"10;a=b\r\n0123456789abcdef\r\n" * 900 + b"0\r\n\r\n")
        assert len((await conn.read_response()).content) == 14_400
        await conn.send(HEALTH_REQUEST)
        assert (await conn.read_response()).status_code == 200


@pytest.mark.usefixtures("traced_memory")
async def test_tiny_chunks_use_less_memory_than_three_times_their_size(gateway: EdgeApp) -> None:
    client = connect(SimulatedLoop())
    client.protocol.app = gateway.app
    data = b"2\r\nxx\r\n" * 8_000
    client.send(CHUNKED_HEAD)
    await drain_event_loop()
    before, _ = tracemalloc.get_traced_memory()
    client.send(data)
    await drain_event_loop()
    after, _ = tracemalloc.get_traced_memory()
    assert client.protocol.held_bytes == 16_000
    assert after - before < 3 * 16_000
    client.close()


@pytest.mark.parametrize("filler", [b"", b"X: %b\r\n" % (b"x" * 8_000)], ids=["tiny", "large"])
@pytest.mark.parametrize("reads", [1, 100], ids=["one read", "many reads"])
@pytest.mark.usefixtures("traced_memory")
async def test_pipelined_requests_are_parsed_as_responses_are_sent(
    filler: bytes, reads: int
) -> None:
    """The queue is bounded at all times: one read can contain thousands of requests."""
    client = connect(SimulatedLoop())
    request = b"GET /200 HTTP/1.1\r\nHost: x\r\n%b\r\n" % filler
    count = 800_000 // len(request) // reads * reads
    before, _ = tracemalloc.get_traced_memory()
    longest = 0
    for _ in range(reads):
        client.send(request * (count // reads))
        longest = max(longest, len(client.protocol.pipelined))
    async with asyncio.timeout(60):
        while len(client.responses) < count:
            await asyncio.sleep(0)
            longest = max(longest, len(client.protocol.pipelined))
    _, peak = tracemalloc.get_traced_memory()
    # Data of one parsing step may exceed the limit of 16 requests.
    assert longest <= (2 if filler else 100)
    # The client's unsent data and its list of responses are part of the traced memory.
    assert peak - before < 4 * MEBIBYTE


@pytest.mark.parametrize(
    "head",
    [
        b"GET /health HTTP/1.1\r\n\r\n",
        b"GET /health HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n",
        b"GET /health HTTP/1.1\r\nHost: a\r\nX: y\r\nhost: b\r\n\r\n",
        b"GET /health HTTP/1.0\r\nHost: a\r\nHost: a\r\n\r\n",
        b"GET /health HTTP/1.1\r\nHost: a, b\r\n\r\n",
        b"GET /health HTTP/1.1\r\nHost: a/b\r\n\r\n",
        b"GET /health HTTP/1.1\r\nHost: user@a\r\n\r\n",
        b"GET /health HTTP/1.1\r\nUpgrade: h2c\r\nConnection: upgrade\r\n\r\n",
    ],
)
async def test_request_without_exactly_one_valid_host_is_rejected(port: int, head: bytes) -> None:
    async with open_connection(port) as conn:
        await conn.send(head)
        response = await conn.read_response()
        assert (response.status_code, response.json()["code"]) == (400, "INVALID_REQUEST")
        assert response.json()["message"].startswith("The Host header ")
        assert await conn.is_closed()


@pytest.mark.parametrize("host", [b"", b"pay.example", b"pay.example:8000", b"[::1]:8000", b"a_b"])
async def test_valid_hosts_are_accepted(port: int, host: bytes) -> None:
    async with open_connection(port) as conn:
        await conn.send(b"GET /health HTTP/1.1\r\nHost: %b\r\n\r\n" % host)
        assert (await conn.read_response()).status_code == 200


async def test_target_that_is_too_long_is_reported(port: int) -> None:
    async with open_connection(port) as conn:
        await conn.send(b"GET /health?" + b"x" * 17_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n")
        assert (await conn.read_response()).json()["message"] == "The request target is too long."


async def test_credential_is_checked_before_the_body_arrives(port: int) -> None:
    for path, credential, status in (
        (b"/api/v1/things", b"", 401),
        (b"/api/v1/things", b"Authorization: Bearer nobody\r\n", 401),
        (b"/api/v1/things", b"Authorization: Bearer key_reader\r\n", 403),
        (b"/api/v1/pos/pay", b"X-API-Key-ID: key_nobody\r\n", 401),
    ):
        head = b"POST %b HTTP/1.1\r\nHost: x\r\n%b" % (path, credential)
        for framing in (b"Content-Length: 9\r\n\r\n", b"Transfer-Encoding: chunked\r\n\r\n"):
            async with open_connection(port) as conn:
                await conn.send(head + framing)
                assert (await conn.read_response()).status_code == status
        async with open_connection(port) as conn:
            await conn.send(head + b"Content-Length: 99999999\r\n\r\n")
            assert (await conn.read_response()).status_code == 413


async def test_signature_is_verified_after_the_body_has_arrived(port: int) -> None:
    head = b"POST /pay HTTP/1.1\r\nHost: x\r\nX-API-Key-ID: %b\r\n" % TERMINAL.id.encode()
    async with open_connection(port) as conn:
        await conn.send(head + b"Content-Length: 2\r\n\r\n")
        await asyncio.sleep(0.05)
        await conn.send(b"{}")
        assert (await conn.read_response()).status_code == 200


@pytest.mark.parametrize("framing", ["length", "chunks"])
async def test_large_body_of_a_signer_without_access_is_not_received(
    port: int, framing: str
) -> None:
    head = b"POST /api/v1/large-upload HTTP/1.1\r\nHost: x\r\nX-API-Key-ID: %b\r\n" % (
        TERMINAL.id.encode()
    )
    if framing == "length":
        data = head + b"Content-Length: 400000\r\n\r\n"
    else:
        part = b"x" * (DEFAULT_BODY_BYTES + 1)
        data = head + b"Transfer-Encoding: chunked\r\n\r\n%x\r\n%b\r\n" % (len(part), part)
    async with open_connection(port) as conn:
        await conn.send(data)
        response = await conn.read_response()
    assert (response.status_code, response.json()["code"]) == (403, "FORBIDDEN")
    assert "x-ratelimit-remaining" in response.headers


async def test_denial_of_an_unverified_signer_is_not_recorded(gateway: EdgeApp) -> None:
    for size, recorded in ((DEFAULT_BODY_BYTES + 1, 0), (DEFAULT_BODY_BYTES, 1)):
        response = await gateway.client.post(
            "/api/v1/large-upload", content=b"x" * size, headers={"X-API-Key-ID": TERMINAL.id}
        )
        assert response.status_code == 403
        assert len(gateway.denials) == recorded


async def test_credential_revoked_while_the_body_arrives_is_rejected(
    gateway: EdgeApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    bearers = dict(gateway.services.authenticator.bearers)  # type: ignore[attr-defined]
    monkeypatch.setattr(gateway.services.authenticator, "bearers", bearers)

    async def body() -> AsyncIterator[bytes]:
        yield b"{}"
        del bearers[f"Bearer {ADMIN.id}".encode()]
        yield b""

    response = await gateway.client.post(
        "/api/v1/refuses", content=body(), headers=build_bearer_headers(ADMIN)
    )
    assert response.status_code == 401


async def test_caller_is_charged_once_for_a_request_with_a_body(gateway: EdgeApp) -> None:
    responses = [
        await gateway.client.post(
            "/api/v1/fund", content=b"{}", headers=build_bearer_headers(WRITER)
        )
        for _ in range(2)
    ]
    remaining = [int(response.headers["x-ratelimit-remaining"]) for response in responses]
    assert remaining[0] - remaining[1] <= 1


async def test_bodies_above_the_budget_get_503_and_small_ones_do_not(
    server: EdgeServer, body_budget: BodyBudget
) -> None:
    size = FREE_BODY_BYTES + 6 * 1024
    head = ECHO_HEAD + b"Content-Length: %d\r\n\r\n"
    large_head = b"POST /api/v1/large-body HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % size
    async with open_connection(server.port) as first:
        await first.send(large_head + b"x" * (size - 1))
        async with asyncio.timeout(60):
            while not body_budget.used:
                await asyncio.sleep(0.01)
        async with open_connection(server.port) as second:
            await second.send(large_head + b"x" * (size - 1))
            response = await second.read_response()
            assert (response.status_code, response.json()["code"]) == (503, "SERVICE_UNAVAILABLE")
            assert response.headers["retry-after"] == "1"
        async with open_connection(server.port) as third:
            await third.send(head % 3 + b"abc")
            assert (await third.read_response()).content == b"abc"
        await first.send(b"x")
        assert len((await first.read_response()).content) == size
    async with asyncio.timeout(60):
        while body_budget.used:
            await asyncio.sleep(0.01)


async def test_lost_connection_releases_its_bytes_of_the_body_budget(
    server: EdgeServer, body_budget: BodyBudget
) -> None:
    async with open_connection(server.port) as conn:
        await conn.send(
            b"POST /api/v1/large-body HTTP/1.1\r\nHost: x\r\nContent-Length: 30000\r\n\r\n"
            + b"x" * (FREE_BODY_BYTES + 1024)
        )
        async with asyncio.timeout(60):
            while body_budget.used != 1024:
                await asyncio.sleep(0.01)
    async with asyncio.timeout(60):
        while body_budget.used:
            await asyncio.sleep(0.01)


@pytest.mark.parametrize(("pause", "size"), [(10.0, 4), (1.0, 512)])
async def test_client_that_sends_a_body_below_the_minimum_rate_is_disconnected(
    gateway: EdgeApp, pause: float, size: int
) -> None:
    """No single pause exceeds the stall timeout."""
    loop = SimulatedLoop()
    client = connect(loop)
    client.protocol.app = gateway.app
    client.send(ECHO_HEAD + b"Content-Length: 16000\r\n\r\n")
    while not client.closed:
        await loop.advance(pause)
        client.send(b"x" * size)
        assert loop.now < protocol.RECEIVE_TIMEOUT_SECONDS
    assert loop.now > protocol.MIN_RATE_GRACE_SECONDS


async def test_body_at_the_minimum_rate_is_received(gateway: EdgeApp) -> None:
    loop = SimulatedLoop()
    client = connect(loop)
    client.protocol.app = gateway.app
    client.send(ECHO_HEAD + b"Content-Length: 16384\r\n\r\n")
    for _ in range(16):
        await loop.advance(1.0)
        client.send(b"x" * 1024)
    await drain_event_loop()
    assert [status for _, status in client.responses] == [200]


async def test_client_that_pipelines_without_reading_is_disconnected() -> None:
    loop = SimulatedLoop()
    client = connect(loop)
    client.send(b"GET /200 HTTP/1.1\r\nHost: x\r\n\r\n")
    await drain_event_loop()
    client.protocol.pause_writing()  # the response is still in the transport's buffer
    client.send(b"GET /200 HTTP/1.1\r\nHost: x\r\n\r\n")
    await loop.advance(2 * connection.IDLE_TIMEOUT_SECONDS)
    assert client.closed


async def test_client_that_reads_in_time_gets_its_pipelined_response() -> None:
    loop = SimulatedLoop()
    client = connect(loop)
    client.protocol.pause_writing()
    client.send(b"GET /200 HTTP/1.1\r\nHost: x\r\n\r\n")
    await loop.advance(protocol.HEAD_TIMEOUT_SECONDS / 2)
    client.protocol.resume_writing()
    await loop.advance(1.0)
    assert [status for _, status in client.responses] == [200]
    assert not client.closed
    client.close()


def test_one_untrusted_address_holds_at_most_a_quarter_of_the_budget() -> None:
    budget = BodyBudget(8_000)
    budget.is_trusted = lambda address: address == "10.0.0.1"
    first, second, proxy = "2001:db8::1", "2001:db8::2", "10.0.0.1"
    assert budget.resize(first, 0, FREE_BODY_BYTES + 1_500) == 1_500
    assert budget.resize(second, 0, FREE_BODY_BYTES + 501) is None  # same network
    assert budget.resize(second, 0, FREE_BODY_BYTES + 500) == 500
    assert budget.resize("192.0.2.1", 0, FREE_BODY_BYTES + 2_000) == 2_000
    assert budget.resize(proxy, 0, FREE_BODY_BYTES + 4_001) is None  # only the total budget applies
    assert budget.resize(proxy, 0, FREE_BODY_BYTES + 4_000) == 4_000
    assert budget.resize(first, 1_500, 0) == 0
    assert budget.resize(second, 500, FREE_BODY_BYTES + 2_000) == 2_000
    for address, charged in ((second, 2_000), ("192.0.2.1", 2_000), (proxy, 4_000)):
        assert budget.resize(address, charged, 0) == 0
    assert (budget.used, budget.by_address) == (0, {})


async def test_bodies_of_one_address_above_a_quarter_of_the_budget_get_503(
    server: EdgeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    budget = BodyBudget(32 * 1024)
    monkeypatch.setattr(BoundedConnection, "body_budget", budget)
    size = FREE_BODY_BYTES + 6 * 1024
    head = b"POST /api/v1/large-body HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % size
    async with open_connection(server.port) as first, open_connection(server.port) as second:
        await first.send(head + b"x" * (size - 1))
        async with asyncio.timeout(60):
            while budget.used != 6 * 1024 - 1:
                await asyncio.sleep(0.01)
        await second.send(head + b"x" * (size - 1))
        assert (await second.read_response()).status_code == 503
        await first.send(b"x")
        assert (await first.read_response()).status_code == 200


def test_gateway_protocol_uses_the_common_body_budget() -> None:
    assert HttpProtocol.body_budget is BoundedConnection.body_budget
