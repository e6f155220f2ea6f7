"""Receivers for webhooks and template messages, and builders for webhook tests."""

import asyncio
import base64
import contextlib
import hashlib
import hmac
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import asyncpg
import httpx2
import msgspec

from tapgate.events.webhooks import model
from tapgate.events.webhooks.sender import WebhookSender
from tapgate.events.webhooks.webhook_events import publish
from tapgate.events.webhooks.worker import WebhookWorker
from tapgate.http.api.services import Services
from tapgate_client import ids, signing


class ReceivedWebhook(NamedTuple):
    request_line: str
    headers: dict[str, str]
    body: bytes

    @property
    def path(self) -> str:
        return self.request_line.split(" ")[1]

    @property
    def id(self) -> str:
        return self.headers["webhook-id"]

    @property
    def content(self) -> dict[str, Any]:
        content: dict[str, Any] = msgspec.json.decode(self.body)
        return content

    @property
    def signatures(self) -> list[str]:
        return self.headers["webhook-signature"].split(" ")

    def is_signed_with(self, secret: str) -> bool:
        """Return whether a signature matches the secret, without using the gateway's code."""
        key = base64.b64decode(secret.split("_", 1)[1])
        signed = b".".join(
            (self.id.encode(), self.headers["webhook-timestamp"].encode(), self.body)
        )
        digest = hmac.new(key, signed, hashlib.sha256).digest()
        expected = "v1," + base64.b64encode(digest).decode()
        return expected in self.signatures


class _Receiver:
    """HTTP server that reads one request per connection and writes the response of `respond`."""

    path = ""

    def __init__(self) -> None:
        self.url = ""
        self.port = 0
        #: `respond` may wait for this event; it is set when the server stops.
        self.allow_responses = asyncio.Event()

    async def respond(self, request: ReceivedWebhook) -> bytes:
        raise NotImplementedError

    @asynccontextmanager
    async def listen(self, tls: ssl.SSLContext | None = None) -> AsyncIterator[None]:
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=tls)
        self.port = server.sockets[0].getsockname()[1]
        self.url = f"http{'s' if tls else ''}://127.0.0.1:{self.port}{self.path}"
        try:
            yield
        finally:
            self.allow_responses.set()
            server.close()
            await server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.closing(writer), contextlib.suppress(EOFError, ConnectionError):
            # A killed sender may disconnect before it sends a request or reads the response.
            request, *lines = (await reader.readuntil(b"\r\n\r\n")).decode().strip().split("\r\n")
            parts = (line.partition(": ") for line in lines)
            headers = {name.lower(): value for name, _, value in parts}
            body = await reader.readexactly(int(headers.get("content-length", 0)))
            writer.write(await self.respond(ReceivedWebhook(request, headers, body)))
            await writer.drain()


def _build_response(status: int) -> bytes:
    return f"HTTP/1.1 {status} X\r\nContent-Length: 0\r\n\r\n".encode()


class EmptyBook(_Receiver):
    """Another book, without customers."""

    async def respond(self, request: ReceivedWebhook) -> bytes:
        body = b'{"error": "Subscriber not found", "code": "SUBSCRIBER_NOT_FOUND"}'
        heads = f"Content-Type: application/json\r\nContent-Length: {len(body)}"
        return f"HTTP/1.1 404 X\r\nConnection: close\r\n{heads}\r\n\r\n".encode() + body


class WebhookReceiver(_Receiver):
    """Returns `responses` in order, then 204. Requests to `/slow` wait for `allow_responses`."""

    def __init__(self) -> None:
        super().__init__()
        self.responses: list[bytes] = []
        self.received: list[ReceivedWebhook] = []
        self.max_concurrent = 0
        self._concurrent = 0

    def enqueue_statuses(self, *statuses: int) -> None:
        self.responses = [_build_response(status) for status in statuses]

    def enqueue_response(self, status: int, body: bytes = b"", *headers: str) -> None:
        lines = [f"HTTP/1.1 {status} X", *headers, f"Content-Length: {len(body)}", "", ""]
        self.responses.append("\r\n".join(lines).encode() + body)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._concurrent += 1
        self.max_concurrent = max(self.max_concurrent, self._concurrent)
        try:
            await super()._serve(reader, writer)
        finally:
            self._concurrent -= 1

    async def respond(self, request: ReceivedWebhook) -> bytes:
        self.received.append(request)
        if request.path == "/slow":
            await self.allow_responses.wait()
        return self.responses.pop(0) if self.responses else b"HTTP/1.1 204 X\r\n\r\n"


ENDPOINTS_URL = "/api/v1/admin/webhook-endpoints"


class CardRecord(msgspec.Struct):
    serial: str = "TAP-000001"
    status: str = "ACTIVE"
    holder_name: str | None = "Amïnata"


class TransactionRecord(msgspec.Struct):
    id: str
    status: str = "completed"
    amount: str = "10.00"
    refunded_amount: str = "0.00"
    currency: str = "SLE"
    failure_code: str | None = None
    completed_at: str | None = "2026-01-31T12:00:00.000Z"


async def create_endpoint(services: Services, url: str, *events: str) -> tuple[int, str]:
    """Insert an endpoint directly into the database and return its id and secret."""
    endpoint_id, secret = services.new_id(), signing.new_standard_secret()
    await services.database.execute(
        """INSERT INTO webhook_endpoints (id, url, events, secret, created_at, status_changed_at)
           VALUES ($1, $2, $3, $4, $5, $5)""",
        endpoint_id,
        url,
        list(events or ("*",)),
        services.vault.seal(secret.encode(), model.build_secret_context(endpoint_id)),
        services.clock(),
    )
    return endpoint_id, secret


async def publish_event(services: Services, event: str = "card.linked") -> None:
    async with services.transaction() as tx:
        await publish(tx, event, CardRecord())


async def publish_ledger_event(services: Services, event: str, subject_id: int) -> None:
    """Insert an event as the ledger does: with a subject ID instead of data."""
    await services.database.execute(
        """WITH event AS (
               INSERT INTO events (id, type, subject_id, occurred_at) VALUES ($1, $2, $3, $4)
               RETURNING id)
           INSERT INTO deliveries (event_id, endpoint_id, next_attempt_at, created_at)
           SELECT event.id, webhook_endpoints.id, $4, $4 FROM event, webhook_endpoints""",
        services.new_id(),
        event,
        subject_id,
        services.clock(),
    )


async def attempt_due_deliveries(
    services: Services, records: Any = None, sender: WebhookSender | None = None
) -> None:
    """Start all due attempts that a new worker may run concurrently, and wait for them."""
    worker = WebhookWorker(services, records or {}, sender)
    await worker.start_due_attempts()
    await worker.wait_until_idle()


async def list_deliveries(services: Services) -> list[asyncpg.Record]:
    return await services.database.fetch("SELECT * FROM deliveries ORDER BY id")


async def get_only_delivery(services: Services) -> asyncpg.Record:
    (row,) = await list_deliveries(services)
    return row


async def wait_until_equal(read: Callable[[], Awaitable[Any]], expected: object) -> None:
    async with asyncio.timeout(60):
        while await read() != expected:
            await asyncio.sleep(0.01)


def encode_delivery_id(row: asyncpg.Record) -> str:
    return ids.encode(ids.DELIVERY, row["id"])


ACCESS_TOKEN = "the access token"
PHONE_NUMBER_ID = "106540352242922"
GRAPH_APP_SECRET = "the app secret"


class ProviderWebhookServer(_Receiver):
    """Webhook endpoint that responds with `statuses` in order, then with 200."""

    path = "/webhook"

    def __init__(self) -> None:
        super().__init__()
        self.statuses: list[int] = []
        #: Raw bodies and signatures.
        self.received: list[tuple[bytes, str]] = []

    async def respond(self, request: ReceivedWebhook) -> bytes:
        self.received.append((request.body, request.headers.get("x-hub-signature-256", "")))
        return _build_response(self.statuses.pop(0) if self.statuses else 200)


def open_graph_client(url: str) -> httpx2.AsyncClient:
    return httpx2.AsyncClient(
        base_url=url,
        headers={"Authorization": f"Bearer {ACCESS_TOKEN}"},
        trust_env=False,
        timeout=30,
    )


TEMPLATE_PATH = "/api/v1/messages/template"


class FakeMessenger(_Receiver):
    """Returns `statuses` in order, then 202; 401 for invalid signatures, 404 for other paths.

    Responses are sent only while `allow_responses` is set.
    """

    def __init__(self, secret: str) -> None:
        super().__init__()
        self.allow_responses.set()
        self.statuses: list[int] = []
        #: Number of requests received completely, with or without a response.
        self.requests = 0
        #: Request bodies with a valid signature, each with the message's ID added.
        self.received: list[dict[str, Any]] = []
        self._secret = secret.encode()

    async def respond(self, request: ReceivedWebhook) -> bytes:
        self.requests += 1
        await self.allow_responses.wait()
        return _build_response(self._check_request(request))

    def _check_request(self, request: ReceivedWebhook) -> int:
        if request.request_line != f"POST {TEMPLATE_PATH} HTTP/1.1":
            return 404
        headers = request.headers
        signed = signing.service_signed_string(
            "POST", TEMPLATE_PATH, b"", headers["x-service-timestamp"]
        )
        genuine = signing.verify(self._secret, headers["x-service-signature"], signed)
        if headers["x-service-name"] != "gateway" or not genuine:
            return 401
        self.received.append({"id": headers["idempotency-key"], **request.content})
        return self.statuses.pop(0) if self.statuses else 202
