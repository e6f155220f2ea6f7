"""Delivery log (status, duration and start of the response) and the effect of Retry-After."""

import asyncio

import pytest

from cases import each
from drivers.webhooks import (
    ENDPOINTS_URL,
    WebhookReceiver,
    attempt_due_deliveries,
    create_endpoint,
    get_only_delivery,
    publish_event,
)
from harness import Harness
from tapgate import ids
from tapgate.api.services import Services
from tapgate.webhooks import sender
from tapgate.webhooks.sender import MAX_RESPONSE_BYTES, WebhookSender, decode_body_prefix


async def get_logged_response(
    services: Services, receiver: WebhookReceiver, body: bytes
) -> str | None:
    receiver.enqueue_response(200, body)
    await create_endpoint(services, receiver.url)
    await publish_event(services)
    await attempt_due_deliveries(services)
    row = await get_only_delivery(services)
    assert row["status"] == "delivered"
    response: str | None = row["response"]
    return response


@pytest.mark.parametrize(
    ("body", "stored"),
    [
        (b"", None),
        (b"\0", None),
        (b"queued", "queued"),
        ("Amïnata ✓".encode(), "Amïnata ✓"),
        (b"a\0b", "ab"),
        (b"caf\xe9", "caf�"),
        (b"x" * 5000, "x" * 1024),
        ("é".encode() * 5000, "é" * 512),
        (b"x" + "é".encode() * 5000, "x" + "é" * 511),
        (b"\xff" * 5000, "�" * 341),
        (b"\x1b[31m<script>", "\x1b[31m<script>"),
    ],
)
async def test_first_kibibyte_of_the_response_is_stored_as_text(
    services_with_fake_clock: Services, receiver: WebhookReceiver, body: bytes, stored: str | None
) -> None:
    assert await get_logged_response(services_with_fake_clock, receiver, body) == stored


@each("length", range(1020, 1030))
def test_decoded_response_never_exceeds_the_size_limit(length: int) -> None:
    for body in (b"\xf0" * length, "€".encode() * length, b"\xe2\x82" * length):
        text = decode_body_prefix(body[:MAX_RESPONSE_BYTES])
        assert text is not None and len(text.encode()) <= MAX_RESPONSE_BYTES


async def test_delivery_record_shows_status_duration_and_response_of_the_last_attempt(
    harness: Harness, receiver: WebhookReceiver
) -> None:
    services = harness.services
    endpoint_id, _ = await create_endpoint(services, receiver.url)
    receiver.enqueue_response(500, b"out of order")
    receiver.enqueue_response(202, b"accepted")
    await publish_event(services)
    await attempt_due_deliveries(services)
    path = f"{ENDPOINTS_URL}/{ids.encode(ids.WEBHOOK_ENDPOINT, endpoint_id)}/deliveries"
    admin = await harness.create_admin("A")
    (first,) = (await harness.client.get(path, auth=admin)).json()["data"]
    assert (first["status"], first["last_status"]) == ("pending", 500)
    assert first["response"] == "out of order" and first["duration_ms"] >= 0
    await services.database.execute("UPDATE deliveries SET next_attempt_at = now()")
    await attempt_due_deliveries(services)
    (second,) = (await harness.client.get(path, auth=admin)).json()["data"]
    assert (second["status"], second["last_status"]) == ("delivered", 202)
    assert second["response"] == "accepted"


async def test_attempt_without_a_response_records_its_duration(
    services_with_fake_clock: Services, receiver: WebhookReceiver
) -> None:
    receiver.responses = [b"what?\r\n\r\n"]
    await create_endpoint(services_with_fake_clock, receiver.url)
    await publish_event(services_with_fake_clock)
    await attempt_due_deliveries(services_with_fake_clock)
    row = await get_only_delivery(services_with_fake_clock)
    assert (row["last_status"], row["response"]) == (None, None)
    assert row["duration_ms"] is not None


async def test_delivery_succeeds_after_the_body_timeout_of_a_slow_response(
    services_with_fake_clock: Services, receiver: WebhookReceiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sender, "_BODY_TIMEOUT_SECONDS", 0.2)
    stopped = asyncio.Event()

    async def trickle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 X\r\nTransfer-Encoding: chunked\r\n\r\n")
        try:
            while True:
                writer.write(b"1\r\nx\r\n")
                await writer.drain()
                await asyncio.sleep(0.01)
        except ConnectionError:
            stopped.set()

    server = await asyncio.start_server(trickle, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    await create_endpoint(services_with_fake_clock, f"http://127.0.0.1:{port}")
    await publish_event(services_with_fake_clock)
    async with asyncio.timeout(30):
        await attempt_due_deliveries(services_with_fake_clock)
        row = await get_only_delivery(services_with_fake_clock)
        assert (row["status"], row["last_status"]) == ("delivered", 200)
        assert set(row["response"]) == {"x"}
        await stopped.wait()
    server.close()


async def test_compressed_response_is_not_decompressed(receiver: WebhookReceiver) -> None:
    receiver.enqueue_response(200, b"\x1f\x8b" + b"\0" * 100, "Content-Encoding: gzip")
    response = await WebhookSender(public_only=False).send(receiver.url, {}, b"{}")
    assert response.text == "\x1f�"
    assert receiver.received[0].headers["accept-encoding"] == "identity"
