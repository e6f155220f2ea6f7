"""Delivery log, the effect of Retry-After, and the cost of polling the queue."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from business.payments.transactions.large_history import QueryExplainer, count_rows_read
from cases import each
from drivers.webhooks import (
    ENDPOINTS_URL,
    WebhookReceiver,
    attempt_due_deliveries,
    create_endpoint,
    encode_delivery_id,
    get_only_delivery,
    publish_event,
    publish_ledger_event,
)
from harness import Harness
from tapgate.events.webhooks import delivery_queue, retry_schedule, sender
from tapgate.events.webhooks.retry_schedule import MAX_RETRY_AFTER, parse_retry_after
from tapgate.events.webhooks.sender import MAX_RESPONSE_BYTES, WebhookSender, decode_body_prefix
from tapgate.events.webhooks.webhook_events import publish_data
from tapgate.http.api.services import Services
from tapgate_client import ids


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


async def test_deliveries_are_filtered_by_status(
    harness: Harness, receiver: WebhookReceiver
) -> None:
    services = harness.services
    endpoint_id, _ = await create_endpoint(services, receiver.url)
    receiver.enqueue_response(200, b"")
    receiver.enqueue_response(500, b"")
    for _ in range(2):
        await publish_event(services)
        await attempt_due_deliveries(services)
    url = f"{ENDPOINTS_URL}/{ids.encode(ids.WEBHOOK_ENDPOINT, endpoint_id)}/deliveries"
    admin = await harness.create_admin()

    async def count_deliveries(status: str) -> int:
        response = await harness.get(url, params={"status": status}, auth=admin)
        assert {record["status"] for record in response.json()["data"]} <= {status}
        return len(response.json()["data"])

    counts = [await count_deliveries(status) for status in ("delivered", "pending", "failed")]
    assert counts == [1, 1, 0]
    response = await harness.get(url, params={"status": "lost"}, auth=admin)
    assert response.status_code == 422


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
    (first,) = (await harness.get(path, auth=admin)).json()["data"]
    assert (first["status"], first["last_status"]) == ("pending", 500)
    assert first["response"] == "out of order" and first["duration_ms"] >= 0
    await services.database.execute("UPDATE deliveries SET next_attempt_at = now()")
    await attempt_due_deliveries(services)
    (second,) = (await harness.get(path, auth=admin)).json()["data"]
    assert (second["status"], second["last_status"]) == ("delivered", 202)
    assert second["response"] == "accepted"


async def test_delivery_lists_its_attempts(harness: Harness, receiver: WebhookReceiver) -> None:
    services, admin = harness.services, await harness.create_admin()
    endpoint_id, _ = await create_endpoint(services, receiver.url)
    receiver.enqueue_response(500, b"")
    receiver.responses.append(b"what?\r\n\r\n")
    await publish_event(services)
    delivery_id = encode_delivery_id(await get_only_delivery(services))
    path = f"{ENDPOINTS_URL}/{ids.encode(ids.WEBHOOK_ENDPOINT, endpoint_id)}/deliveries"

    async def list_attempts() -> list[tuple[int, int | None, str | None]]:
        shown = (await harness.get(f"{path}/{delivery_id}", auth=admin)).json()
        log = shown["attempt_log"]
        assert shown["last_error"] == (log[-1]["error"] if log else None)
        assert all(item["attempted_at"] >= shown["created_at"] for item in log)
        return [(item["number"], item["http_status"], item["error"]) for item in log]

    for _ in range(2):
        await services.database.execute("UPDATE deliveries SET next_attempt_at = now()")
        await attempt_due_deliveries(services)
    failures = [(1, 500, "http_status"), (2, None, "invalid_response")]
    assert await list_attempts() == failures
    await harness.post(f"{path}/{delivery_id}/redeliver", auth=admin)
    await attempt_due_deliveries(services)
    assert await list_attempts() == [*failures, (3, 204, None)]
    await harness.post(f"{path}/{delivery_id}/redeliver", auth=admin)
    assert await list_attempts() == [*failures, (3, 204, None)]
    await attempt_due_deliveries(services)
    assert await list_attempts() == [*failures, (3, 204, None), (4, 204, None)]


async def test_attempt_log_is_bounded(harness: Harness, receiver: WebhookReceiver) -> None:
    services, admin = harness.services, await harness.create_admin()
    endpoint_id, _ = await create_endpoint(services, receiver.url)
    await publish_event(services)
    receiver.enqueue_statuses(*[500] * 32)
    for _ in range(32):
        await services.database.execute(
            "UPDATE deliveries SET next_attempt_at = now(), attempts_before = attempts"
        )
        await services.database.execute("UPDATE webhook_endpoints SET backoff_until = NULL")
        await attempt_due_deliveries(services)
    path = f"{ENDPOINTS_URL}/{ids.encode(ids.WEBHOOK_ENDPOINT, endpoint_id)}/deliveries"
    delivery_id = encode_delivery_id(await get_only_delivery(services))
    shown = (await harness.get(f"{path}/{delivery_id}", auth=admin)).json()
    assert [item["number"] for item in shown["attempt_log"]] == list(range(3, 33))


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
    monkeypatch.setattr(sender, "BODY_TIMEOUT_SECONDS", 0.2)
    stopped = asyncio.Event()

    async def trickle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 X\r\nTransfer-Encoding: chunked\r\n\r\n")
        try:
            while True:
                writer.write(b"1\r\nx\r\n")
                await writer.drain()
                await asyncio.sleep(0.01)
        except (ConnectionError, RuntimeError):  # uvloop raises the latter
            stopped.set()

    server = await asyncio.start_server(trickle, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    await create_endpoint(services_with_fake_clock, f"http://127.0.0.1:{port}")
    await publish_event(services_with_fake_clock)
    # An open server would keep the event loop from closing after the last test.
    async with server, asyncio.timeout(30):
        await attempt_due_deliveries(services_with_fake_clock)
        row = await get_only_delivery(services_with_fake_clock)
        assert (row["status"], row["last_status"]) == ("delivered", 200)
        assert set(row["response"]) == {"x"}
        await stopped.wait()


async def test_compressed_response_is_not_decompressed(receiver: WebhookReceiver) -> None:
    receiver.enqueue_response(200, b"\x1f\x8b" + b"\0" * 100, "Content-Encoding: gzip")
    response = await WebhookSender(public_only=False).send(receiver.url, {}, b"{}")
    assert response.text == "\x1f�"
    assert receiver.received[0].headers["accept-encoding"] == "identity"


NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)


@each(
    "value, expected",
    [
        ("0", timedelta(0)),
        ("120", timedelta(minutes=2)),
        (" 120 ", timedelta(minutes=2)),
        ("Sat, 31 Jan 2026 12:10:00 GMT", timedelta(minutes=10)),
        ("Saturday, 31-Jan-26 12:10:00 GMT", timedelta(minutes=10)),
        ("Sat Jan 31 12:10:00 2026", timedelta(minutes=10)),
        ("Sat, 31 Jan 2026 11:00:00 GMT", timedelta(0)),
        ("86401", MAX_RETRY_AFTER),
        ("9" * 5000, MAX_RETRY_AFTER),
        ("Fri, 31 Dec 9999 23:59:59 GMT", MAX_RETRY_AFTER),
    ],
)
def test_seconds_and_dates_are_parsed_and_limited_to_the_maximum(
    value: str, expected: timedelta
) -> None:
    assert parse_retry_after(value, NOW) == expected


@each(
    "value",
    [
        *(None, "", "-1", "1.5", "soon", "٣", "Sat", ",", "0x10"),
        "Sat, 99 Jan 2026 12:00:00 GMT",
        "Sat, 31 Jan 99999999999999999999 12:00:00 GMT",
    ],
)
def test_invalid_value_is_ignored(value: str | None) -> None:
    assert parse_retry_after(value, NOW) is None


def test_retry_after_extends_the_scheduled_delay_and_never_shortens_it() -> None:
    minute = timedelta(minutes=1)
    assert retry_schedule.get_retry_delay(1, minute) == minute
    second = retry_schedule.get_retry_delay(2, minute)
    assert second is not None
    minimum = timedelta(seconds=0.9 * retry_schedule.RETRY_DELAYS_SECONDS[1])
    assert second >= minimum
    assert retry_schedule.get_retry_delay(10, minute) is None


PENDING_COUNT = 20_000


async def test_polling_does_not_scan_deliveries_that_are_not_due(services: Services) -> None:
    slow, _ = await create_endpoint(services, "https://slow.example.com")
    for number in range(20):
        deleted, _ = await create_endpoint(services, f"https://{number}.example.com")
        await services.database.execute(
            "UPDATE webhook_endpoints SET deleted_at = now() WHERE id = $1", deleted
        )
    async with services.database.connection() as connection:
        await connection.execute(
            """WITH inserted AS (
               INSERT INTO events (id, type, data, occurred_at)
               SELECT number, 'card.linked', '{}', now() FROM generate_series(1, $1) AS number
               RETURNING id)
           INSERT INTO deliveries (event_id, endpoint_id, next_attempt_at, created_at)
           SELECT id, $2, now() + interval '1 hour', now() FROM inserted""",
            PENDING_COUNT,
            slow,
            timeout=60,
        )
        await connection.execute("VACUUM ANALYZE", timeout=60)
    explainer: Any = QueryExplainer(services.database)
    await delivery_queue.fail_for_deleted_endpoints(explainer, services.clock())
    await delivery_queue.lease(
        explainer, now=services.clock(), limit=200, capacity=10, capacities={slow: 5}
    )
    assert max(count_rows_read(plan, "deliveries") for plan in explainer.plans) < 10


async def test_delivery_is_shown_with_its_payload(
    harness: Harness, services: Services, receiver: WebhookReceiver
) -> None:
    admin = await harness.create_admin()
    await harness.create_subscriber(balance="5.00")
    transaction_id = await services.database.fetchval("SELECT max(id) FROM transactions")
    endpoint_id, _ = await create_endpoint(services, receiver.url)
    endpoint = ids.encode(ids.WEBHOOK_ENDPOINT, endpoint_id)
    await publish_ledger_event(services, "transaction.completed", transaction_id)
    url = f"{ENDPOINTS_URL}/{endpoint}/deliveries"
    (listed,) = (await harness.get(url, auth=admin)).json()["data"]
    shown = (await harness.get(f"{url}/{listed['id']}", auth=admin)).json()
    payload = shown.pop("payload")
    assert shown.pop("attempt_log") == []
    assert shown == listed
    receiver.enqueue_response(200, b"thanks")
    await attempt_due_deliveries(services, services.event_record_loaders)
    assert receiver.received[0].content == payload
    shown = (await harness.get(f"{url}/{listed['id']}", auth=admin)).json()
    assert (shown["response"], shown["payload"]) == ("thanks", payload)
    other_id, _ = await create_endpoint(services, receiver.url)
    other = f"{ENDPOINTS_URL}/{ids.encode(ids.WEBHOOK_ENDPOINT, other_id)}/deliveries"
    for path in (f"{other}/{listed['id']}", f"{url}/dlv_x"):
        assert (await harness.get(path, auth=admin)).status_code == 404


async def test_payload_of_a_missing_record_is_null(
    harness: Harness, services: Services, receiver: WebhookReceiver
) -> None:
    endpoint_id, _ = await create_endpoint(services, receiver.url)
    await publish_ledger_event(services, "transaction.completed", 5)
    delivery = encode_delivery_id(await get_only_delivery(services))
    endpoint = ids.encode(ids.WEBHOOK_ENDPOINT, endpoint_id)
    shown = await harness.get(
        f"{ENDPOINTS_URL}/{endpoint}/deliveries/{delivery}", auth=await harness.create_admin()
    )
    assert shown.json()["payload"] is None


async def test_payload_omits_personal_data_of_a_restricted_subscriber(
    harness: Harness, services: Services, receiver: WebhookReceiver
) -> None:
    person = await harness.create_restricted_subscriber()
    endpoint_id, _ = await create_endpoint(services, receiver.url)
    data = {**person, "status_reason": None}
    async with services.transaction() as tx:
        await publish_data(tx, "subscriber.created", data)
    delivery = encode_delivery_id(await get_only_delivery(services))
    endpoint = ids.encode(ids.WEBHOOK_ENDPOINT, endpoint_id)
    shown = await harness.get(
        f"{ENDPOINTS_URL}/{endpoint}/deliveries/{delivery}", auth=await harness.create_admin()
    )
    assert set(shown.json()["payload"]["data"]) == {"id", "status", "status_reason", "restricted"}
