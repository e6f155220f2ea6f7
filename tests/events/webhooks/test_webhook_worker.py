"""Webhook delivery: signing, retries, leases and concurrency limits."""

import asyncio
from collections.abc import Collection
from typing import Any

import msgspec
import pytest
from structlog.testing import capture_logs

from builders.auth import FakeClock
from drivers.webhooks import (
    TransactionRecord,
    WebhookReceiver,
    attempt_due_deliveries,
    create_endpoint,
    encode_delivery_id,
    get_only_delivery,
    list_deliveries,
    publish_event,
    publish_ledger_event,
    wait_until_equal,
)
from tapgate.events.webhooks import delivery_queue, retry_schedule, worker
from tapgate.events.webhooks.event_data import (
    EventData,
    RecordLoaders,
    load_event_data,
    store_event_data,
)
from tapgate.events.webhooks.model import AttemptResult, LeasedDelivery
from tapgate.events.webhooks.webhook_events import publish
from tapgate.events.webhooks.worker import WebhookWorker
from tapgate.http.api.services import Services
from tapgate.runtime.store.database import Database
from tapgate_client import ids
from tapgate_client.errors import ApiError, Code


async def test_event_is_sent_with_a_standard_webhooks_signature(
    services_with_fake_clock: Services, receiver: WebhookReceiver, fake_clock: FakeClock
) -> None:
    _, secret = await create_endpoint(services_with_fake_clock, f"{receiver.url}/hook?shop=1")
    await publish_event(services_with_fake_clock)
    fake_clock.advance(seconds=61)
    await attempt_due_deliveries(services_with_fake_clock)
    row = await get_only_delivery(services_with_fake_clock)
    (received,) = receiver.received
    assert received.request_line == "POST /hook?shop=1 HTTP/1.1"
    assert received.headers["content-type"] == "application/json"
    assert received.headers["host"] == f"127.0.0.1:{receiver.port}"
    assert received.id == encode_delivery_id(row)
    assert received.headers["webhook-timestamp"] == str(int(fake_clock().timestamp()))
    assert received.is_signed_with(secret)
    assert received.content == {
        "type": "card.linked",
        "timestamp": "2026-01-31T12:00:00.000Z",
        "data": {"serial": "TAP-000001", "status": "ACTIVE", "holder_name": "Amïnata"},
    }
    assert (row["status"], row["attempts"], row["last_status"]) == ("delivered", 1, 204)
    await attempt_due_deliveries(services_with_fake_clock)
    assert len(receiver.received) == 1


async def test_endpoint_gets_subscribed_events_under_its_own_id_and_secret(
    services_with_fake_clock: Services, receiver: WebhookReceiver
) -> None:
    _, cards = await create_endpoint(
        services_with_fake_clock, f"{receiver.url}/cards", "card.linked", "card.blocked"
    )
    _, everything = await create_endpoint(
        services_with_fake_clock, f"{receiver.url}/everything", "*"
    )
    await publish_event(services_with_fake_clock, "card.linked")
    await publish_event(services_with_fake_clock, "alert.resolved")
    await attempt_due_deliveries(services_with_fake_clock)
    by_path = {
        path: [webhook.content["type"] for webhook in receiver.received if webhook.path == path]
        for path in ("/cards", "/everything")
    }
    assert by_path["/cards"] == ["card.linked"]
    assert sorted(by_path["/everything"]) == ["alert.resolved", "card.linked"]
    assert len({received.id for received in receiver.received}) == 3
    for webhook in receiver.received:
        assert webhook.is_signed_with(cards) == (webhook.path == "/cards")
        assert webhook.is_signed_with(everything) == (webhook.path == "/everything")


async def test_rolled_back_change_publishes_no_event(
    services_with_fake_clock: Services, receiver: WebhookReceiver
) -> None:
    await create_endpoint(services_with_fake_clock, receiver.url)
    with pytest.raises(ZeroDivisionError):
        async with services_with_fake_clock.transaction() as tx:
            await publish(tx, "card.linked", msgspec.defstruct("Record", [])())
            raise ZeroDivisionError
    await attempt_due_deliveries(services_with_fake_clock)
    assert receiver.received == []
    assert await services_with_fake_clock.database.fetchval("SELECT count(*) FROM events") == 0


async def test_event_without_subscribers_is_not_stored(services_with_fake_clock: Services) -> None:
    await create_endpoint(services_with_fake_clock, "http://127.0.0.1:9", "card.blocked")
    deleted_id, _ = await create_endpoint(services_with_fake_clock, "http://127.0.0.1:9", "*")
    await services_with_fake_clock.database.execute(
        "UPDATE webhook_endpoints SET deleted_at = now() WHERE id = $1", deleted_id
    )
    await publish_event(services_with_fake_clock, "card.linked")
    assert await services_with_fake_clock.database.fetchval("SELECT count(*) FROM events") == 0


async def test_failed_attempts_are_retried_on_schedule_until_the_delivery_fails(
    services_with_fake_clock: Services, receiver: WebhookReceiver, fake_clock: FakeClock
) -> None:
    _, secret = await create_endpoint(services_with_fake_clock, receiver.url)
    receiver.enqueue_statuses(*[500, 404, 301, 199 + 200, 429, 503, 502, 400, 401, 500])
    await publish_event(services_with_fake_clock)
    delays = []
    while (row := await get_only_delivery(services_with_fake_clock))["status"] == "pending":
        delays.append((row["next_attempt_at"] - fake_clock()).total_seconds())
        fake_clock.advance(seconds=delays[-1] - 0.001)
        await attempt_due_deliveries(services_with_fake_clock)
        assert len(receiver.received) == len(delays) - 1, "an attempt started too early"
        fake_clock.advance(seconds=0.001)
        await attempt_due_deliveries(services_with_fake_clock)
    hour = 3600
    expected = [5, 300, 1800, 2 * hour, 5 * hour, 10 * hour, 14 * hour, 20 * hour, 24 * hour]
    assert delays.pop(0) <= 0.001
    assert len(delays) == len(expected)
    for delay, expected_delay in zip(delays, expected, strict=True):
        assert 0.9 * expected_delay <= delay <= 1.1 * expected_delay
    assert (row["status"], row["attempts"], row["last_status"]) == ("failed", 10, 500)
    assert row["ended_at"] == fake_clock()
    assert len({(webhook.id, webhook.body) for webhook in receiver.received}) == 1
    assert len({received.headers["webhook-timestamp"] for received in receiver.received}) == 10
    assert all(webhook.is_signed_with(secret) for webhook in receiver.received)


async def test_retry_delays_have_jitter() -> None:
    assert len({retry_schedule.get_retry_delay(9) for _ in range(20)}) > 1
    assert retry_schedule.get_retry_delay(10) is None


async def test_redirect_is_a_failed_attempt_and_is_not_followed(
    services_with_fake_clock: Services, receiver: WebhookReceiver
) -> None:
    await create_endpoint(services_with_fake_clock, receiver.url)
    redirect_url = f"{receiver.url}/elsewhere"
    receiver.responses = [
        f"HTTP/1.1 307 X\r\nLocation: {redirect_url}\r\nContent-Length: 0\r\n\r\n".encode()
    ]
    await publish_event(services_with_fake_clock)
    await attempt_due_deliveries(services_with_fake_clock)
    assert [webhook.path for webhook in receiver.received] == ["/"]
    row = await get_only_delivery(services_with_fake_clock)
    assert (row["status"], row["last_status"]) == ("pending", 307)


async def test_huge_response_body_is_not_read_to_the_end(
    services_with_fake_clock: Services, receiver: WebhookReceiver
) -> None:
    await create_endpoint(services_with_fake_clock, receiver.url)
    receiver.responses = [
        b"HTTP/1.1 200 X\r\nContent-Length: 999999999999\r\n\r\n" + b"x" * 100_000
    ]
    await publish_event(services_with_fake_clock)
    async with asyncio.timeout(30):
        await attempt_due_deliveries(services_with_fake_clock)
    assert (await get_only_delivery(services_with_fake_clock))["status"] == "delivered"


async def test_unreachable_or_non_http_endpoint_causes_a_retry(
    services_with_fake_clock: Services, receiver: WebhookReceiver
) -> None:
    await create_endpoint(services_with_fake_clock, "http://127.0.0.1:9/nobody")
    await create_endpoint(services_with_fake_clock, f"{receiver.url}/garbage")
    receiver.responses = [b"what?\r\n\r\n"]
    await publish_event(services_with_fake_clock)
    with capture_logs() as lines:
        await attempt_due_deliveries(services_with_fake_clock)
    assert {line["problem"] for line in lines} == {"ConnectError", "RemoteProtocolError"}
    for row in await list_deliveries(services_with_fake_clock):
        assert (row["status"], row["attempts"], row["last_status"]) == ("pending", 1, None)


async def test_response_timeout_is_a_failed_attempt(
    services_with_fake_clock: Services, receiver: WebhookReceiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tapgate.events.webhooks.sender.RESPONSE_TIMEOUT_SECONDS", 0.2)
    await create_endpoint(services_with_fake_clock, f"{receiver.url}/slow")
    await publish_event(services_with_fake_clock)
    await attempt_due_deliveries(services_with_fake_clock)
    row = await get_only_delivery(services_with_fake_clock)
    assert (row["status"], row["attempts"], row["last_status"]) == ("pending", 1, None)


async def test_production_sends_neither_to_local_addresses_nor_over_plain_http(
    services_with_fake_clock: Services, receiver: WebhookReceiver
) -> None:
    """The URL is checked at each attempt, not only when the endpoint is created."""
    services_with_fake_clock.settings = services_with_fake_clock.settings.replace(
        environment="production"
    )
    await create_endpoint(services_with_fake_clock, f"https://localhost:{receiver.port}/")
    await create_endpoint(services_with_fake_clock, f"http://localhost:{receiver.port}/")
    await create_endpoint(services_with_fake_clock, receiver.url)
    await publish_event(services_with_fake_clock)
    with capture_logs() as lines:
        await attempt_due_deliveries(services_with_fake_clock)
    assert [line["problem"] for line in lines] == ["TargetRejectedError"] * 3
    assert receiver.received == []
    assert {row["status"] for row in await list_deliveries(services_with_fake_clock)} == {"pending"}


async def test_attempt_that_cannot_be_recorded_is_repeated(
    services_with_fake_clock: Services,
    receiver: WebhookReceiver,
    fake_clock: FakeClock,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def fail_to_record(*_: object) -> None:
        raise ApiError(Code.SERVICE_UNAVAILABLE)

    await create_endpoint(services_with_fake_clock, receiver.url)
    await publish_event(services_with_fake_clock)
    with monkeypatch.context() as patch, capture_logs() as lines:
        patch.setattr(delivery_queue, "mark_delivered", fail_to_record)
        await attempt_due_deliveries(services_with_fake_clock)
    assert [line["event"] for line in lines] == ["webhooks.attempt_not_recorded"]
    fake_clock.advance(seconds=30)
    await attempt_due_deliveries(services_with_fake_clock)
    first, second = receiver.received
    assert (first.id, first.body) == (second.id, second.body)
    assert (await get_only_delivery(services_with_fake_clock))["status"] == "delivered"


async def test_concurrent_workers_send_each_delivery_once(
    services_with_fake_clock: Services, receiver: WebhookReceiver
) -> None:
    await create_endpoint(services_with_fake_clock, f"{receiver.url}/a")
    await create_endpoint(services_with_fake_clock, f"{receiver.url}/b")
    for _ in range(40):
        await publish_event(services_with_fake_clock)
    processes = [WebhookWorker(services_with_fake_clock, {}) for _ in range(2)]
    while await services_with_fake_clock.database.fetchval(
        "SELECT count(*) FROM deliveries WHERE status = 'pending'"
    ):
        await asyncio.gather(*(process.start_due_attempts() for process in processes))
        await asyncio.gather(*(process.wait_until_idle() for process in processes))
    assert len(receiver.received) == 80
    assert len({webhook.id for webhook in receiver.received}) == 80
    assert {row["attempts"] for row in await list_deliveries(services_with_fake_clock)} == {1}


async def test_delivery_leased_by_a_killed_process_is_sent_by_another(
    services_with_fake_clock: Services, receiver: WebhookReceiver, fake_clock: FakeClock
) -> None:
    await create_endpoint(services_with_fake_clock, f"{receiver.url}/slow")
    await publish_event(services_with_fake_clock)
    killed = WebhookWorker(services_with_fake_clock, {})
    await killed.start_due_attempts()
    await wait_until_equal(lambda: _count_received(receiver), 1)
    await killed.shut_down(within=0)
    receiver.allow_responses.set()

    fake_clock.advance(seconds=29)
    await attempt_due_deliveries(services_with_fake_clock)
    assert len(receiver.received) == 1
    fake_clock.advance(seconds=1)
    await attempt_due_deliveries(services_with_fake_clock)
    assert len(receiver.received) == 2
    assert len({webhook.id for webhook in receiver.received}) == 1
    row = await get_only_delivery(services_with_fake_clock)
    assert (row["status"], row["attempts"]) == ("delivered", 2)


async def test_expired_lease_does_not_postpone_the_current_lease(
    services_with_fake_clock: Services, receiver: WebhookReceiver, fake_clock: FakeClock
) -> None:
    await create_endpoint(services_with_fake_clock, f"{receiver.url}/slow")
    await publish_event(services_with_fake_clock)
    (expired,) = await _lease_all(services_with_fake_clock)
    fake_clock.advance(seconds=30)
    (current,) = await _lease_all(services_with_fake_clock)
    late_result = AttemptResult(problem="status 500", status=500)
    for retry_at in (fake_clock(), None):
        await delivery_queue.record_failed_attempts(
            services_with_fake_clock.database, [(expired, late_result, retry_at)], fake_clock()
        )
    await delivery_queue.release(services_with_fake_clock.database, [expired], fake_clock())
    row = await get_only_delivery(services_with_fake_clock)
    assert (row["status"], row["next_attempt_at"]) == ("pending", current.next_attempt_at)
    current_result = AttemptResult(problem="status 503", status=503)
    await delivery_queue.record_failed_attempts(
        services_with_fake_clock.database, [(current, current_result, fake_clock())], fake_clock()
    )
    assert (await get_only_delivery(services_with_fake_clock))["last_status"] == 503


async def test_slow_endpoint_does_not_delay_other_endpoints(
    services_with_fake_clock: Services, receiver: WebhookReceiver
) -> None:
    await create_endpoint(services_with_fake_clock, f"{receiver.url}/slow")
    await create_endpoint(services_with_fake_clock, f"{receiver.url}/fast")
    for _ in range(30):
        await publish_event(services_with_fake_clock)
    webhook_worker = WebhookWorker(services_with_fake_clock, {})

    async def attempt_and_count_fast() -> int:
        await webhook_worker.start_due_attempts()
        return sum(webhook.path == "/fast" for webhook in receiver.received)

    async def count_slow() -> int:
        return sum(received.path == "/slow" for received in receiver.received)

    await wait_until_equal(attempt_and_count_fast, 30)
    await wait_until_equal(count_slow, worker.MAX_CONCURRENT_ATTEMPTS_PER_ENDPOINT)
    await webhook_worker.start_due_attempts()
    assert await count_slow() == worker.MAX_CONCURRENT_ATTEMPTS_PER_ENDPOINT
    receiver.allow_responses.set()
    await webhook_worker.wait_until_idle()


async def test_total_concurrent_attempts_are_limited(
    services_with_fake_clock: Services, receiver: WebhookReceiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker, "MAX_CONCURRENT_ATTEMPTS", 4)
    for _ in range(3):
        await create_endpoint(services_with_fake_clock, f"{receiver.url}/slow")
    for _ in range(3):
        await publish_event(services_with_fake_clock)
    webhook_worker = WebhookWorker(services_with_fake_clock, {})
    await webhook_worker.start_due_attempts()
    await webhook_worker.start_due_attempts()
    await wait_until_equal(lambda: _count_received(receiver), 4)
    receiver.allow_responses.set()
    await webhook_worker.wait_until_idle()
    assert receiver.max_concurrent == 4


async def test_running_worker_sends_queued_and_later_events(
    services: Services, receiver: WebhookReceiver
) -> None:
    await create_endpoint(services, receiver.url)
    running = asyncio.create_task(WebhookWorker(services, {}).run())
    try:
        for _ in range(60):
            await publish_event(services)
        await wait_until_equal(lambda: _count_received(receiver), 60)
        await publish_event(services)
        await wait_until_equal(lambda: _count_received(receiver), 61)
    finally:
        running.cancel()
        await asyncio.wait([running])
    assert {row["status"] for row in await list_deliveries(services)} == {"delivered"}


async def test_delivery_that_is_not_yet_prepared_is_released_during_shutdown(
    services: Services, receiver: WebhookReceiver
) -> None:
    is_loading = asyncio.Event()

    async def load_forever(subject_id: int) -> TransactionRecord:
        is_loading.set()
        await asyncio.get_running_loop().create_future()
        raise AssertionError

    await create_endpoint(services, receiver.url)
    await publish_ledger_event(services, "transaction.completed", 1)
    running = asyncio.create_task(WebhookWorker(services, _load_with(load_forever)).run())
    async with asyncio.timeout(30):
        await is_loading.wait()
    running.cancel()
    await asyncio.wait([running])
    row = await get_only_delivery(services)
    assert (row["status"], row["attempts"]) == ("pending", 0)
    assert row["next_attempt_at"] <= services.clock()


async def test_attempt_in_progress_completes_during_shutdown(
    services: Services, receiver: WebhookReceiver
) -> None:
    await create_endpoint(services, f"{receiver.url}/slow")
    await publish_event(services)
    running = asyncio.create_task(WebhookWorker(services, {}).run())
    await wait_until_equal(lambda: _count_received(receiver), 1)
    running.cancel()
    await asyncio.sleep(0)
    receiver.allow_responses.set()
    await asyncio.wait([running])
    assert (await get_only_delivery(services))["status"] == "delivered"


async def test_pending_delivery_of_a_deleted_endpoint_fails_without_an_attempt(
    services_with_fake_clock: Services, receiver: WebhookReceiver
) -> None:
    await create_endpoint(services_with_fake_clock, receiver.url)
    await publish_event(services_with_fake_clock)
    await services_with_fake_clock.database.execute(
        "UPDATE webhook_endpoints SET deleted_at = now()"
    )
    await attempt_due_deliveries(services_with_fake_clock)
    assert receiver.received == []
    row = await get_only_delivery(services_with_fake_clock)
    assert (row["status"], row["attempts"], row["next_attempt_at"]) == ("failed", 0, None)


async def test_ledger_record_is_loaded_once_and_reused_for_retries(
    services_with_fake_clock: Services, receiver: WebhookReceiver, fake_clock: FakeClock
) -> None:
    await create_endpoint(services_with_fake_clock, receiver.url)
    loaded_ids = []

    async def load_transaction(subject_id: int) -> msgspec.Struct:
        loaded_ids.append(subject_id)
        return TransactionRecord(
            id=ids.encode(ids.TRANSACTION, subject_id), amount=f"{len(loaded_ids)}.00"
        )

    receiver.enqueue_statuses(500)
    await publish_ledger_event(services_with_fake_clock, "transaction.completed", 17)
    await attempt_due_deliveries(services_with_fake_clock, _load_with(load_transaction))
    fake_clock.advance(minutes=1)
    await attempt_due_deliveries(services_with_fake_clock, _load_with(load_transaction))
    assert loaded_ids == [17]
    first, second = receiver.received
    assert first.body == second.body
    assert first.content["data"]["id"] == ids.encode(ids.TRANSACTION, 17)


async def test_all_endpoints_get_the_same_record_of_an_event(
    services_with_fake_clock: Services, receiver: WebhookReceiver
) -> None:
    loaded_ids: list[int] = []

    async def load_transaction(subject_id: int) -> msgspec.Struct:
        loaded_ids.append(subject_id)
        amount = f"{len(loaded_ids)}.00"
        await asyncio.sleep(0.05)
        return TransactionRecord(id="txn_1", amount=amount)

    await create_endpoint(services_with_fake_clock, receiver.url)
    await create_endpoint(services_with_fake_clock, receiver.url)
    await publish_ledger_event(services_with_fake_clock, "transaction.completed", 17)
    await attempt_due_deliveries(services_with_fake_clock, _load_with(load_transaction))
    assert len(receiver.received) == 2
    assert len({webhook.body for webhook in receiver.received}) == 1


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        (
            "transaction.completed",
            {"status": "completed", "refunded_amount": "0.00", "completed_at": "then"},
        ),
        (
            "transaction.under_review",
            {"status": "under_review", "refunded_amount": "0.00", "completed_at": None},
        ),
        (
            "transaction.refunded",
            {"status": "partially_refunded", "refunded_amount": "4.00", "completed_at": "then"},
        ),
    ],
)
async def test_transaction_event_has_its_own_status_even_after_a_later_refund(
    services_with_fake_clock: Services,
    receiver: WebhookReceiver,
    event: str,
    expected: dict[str, Any],
) -> None:
    async def load_transaction(subject_id: int) -> msgspec.Struct:
        return TransactionRecord(
            id="txn_1", status="partially_refunded", refunded_amount="4.00", completed_at="then"
        )

    await create_endpoint(services_with_fake_clock, receiver.url)
    await publish_ledger_event(services_with_fake_clock, event, 17)
    await attempt_due_deliveries(services_with_fake_clock, _load_with(load_transaction))
    data = receiver.received[0].content["data"]
    assert {name: data[name] for name in expected} == expected


async def test_delivery_is_retried_if_its_record_cannot_be_loaded(
    services_with_fake_clock: Services, receiver: WebhookReceiver, fake_clock: FakeClock
) -> None:
    async def find_nothing(database: Database, subject_ids: Collection[int]) -> Any:
        return {}

    async def raise_error(subject_id: int) -> msgspec.Struct:
        raise ZeroDivisionError

    await create_endpoint(services_with_fake_clock, receiver.url)
    await publish_ledger_event(services_with_fake_clock, "transaction.completed", 17)
    with capture_logs() as lines:
        for records in ({"transaction": find_nothing}, _load_with(raise_error), {}):
            await attempt_due_deliveries(services_with_fake_clock, records)
            fake_clock.advance(hours=1)
    assert [line["problem"] for line in lines] == [
        "RecordUnavailableError",
        "ZeroDivisionError",
        "RecordUnavailableError",
    ]
    assert receiver.received == []
    assert (await get_only_delivery(services_with_fake_clock))["status"] == "pending"


async def test_secret_sealed_with_another_key_does_not_block_other_endpoints(
    services_with_fake_clock: Services, receiver: WebhookReceiver
) -> None:
    await create_endpoint(services_with_fake_clock, f"{receiver.url}/other")
    await services_with_fake_clock.database.execute(
        "UPDATE webhook_endpoints SET secret = 'sealed by another'"
    )
    await create_endpoint(services_with_fake_clock, f"{receiver.url}/own")
    await publish_event(services_with_fake_clock)
    with capture_logs() as lines:
        await attempt_due_deliveries(services_with_fake_clock)
    assert [webhook.path for webhook in receiver.received] == ["/own"]
    assert [line["problem"] for line in lines] == ["VaultError"]


async def test_huge_numbers_are_sent_as_stored(
    services_with_fake_clock: Services, receiver: WebhookReceiver
) -> None:
    await create_endpoint(services_with_fake_clock, receiver.url)
    await publish_event(services_with_fake_clock)
    await services_with_fake_clock.database.execute(
        """UPDATE events SET data = '{"order": 1e400}'"""
    )
    await attempt_due_deliveries(services_with_fake_clock)
    assert b'"order": 1' + b"0" * 400 in receiver.received[0].body


async def _count_received(receiver: WebhookReceiver) -> int:
    return len(receiver.received)


async def _lease_all(services: Services) -> list[LeasedDelivery]:
    return await delivery_queue.lease(
        services.database, now=services.clock(), limit=100, capacity=10, capacities={}
    )


def _load_with(load_transaction: Any) -> RecordLoaders:
    async def load_transactions(services: Services, subject_ids: Collection[int]) -> Any:
        return {subject_id: await load_transaction(subject_id) for subject_id in subject_ids}

    return {"transaction": load_transactions}


async def test_unavailable_database_uses_up_no_attempt(
    services_with_fake_clock: Services, receiver: WebhookReceiver
) -> None:
    async def fail(subject_id: int) -> msgspec.Struct:
        raise ApiError(Code.SERVICE_UNAVAILABLE)

    await create_endpoint(services_with_fake_clock, receiver.url)
    await publish_ledger_event(services_with_fake_clock, "transaction.completed", 17)
    await attempt_due_deliveries(services_with_fake_clock, _load_with(fail))
    row = await get_only_delivery(services_with_fake_clock)
    now = services_with_fake_clock.clock()
    assert (row["status"], row["attempts"], row["attempt_log"]) == ("pending", 0, None)
    assert row["next_attempt_at"] <= now
    assert receiver.received == []


@pytest.mark.parametrize(("status", "is_stored"), [(200, False), (500, True)])
async def test_transaction_is_stored_with_its_event_only_after_a_failure(
    services_with_fake_clock: Services, receiver: WebhookReceiver, *, status: int, is_stored: bool
) -> None:
    async def load_transaction(subject_id: int) -> msgspec.Struct:
        return TransactionRecord(id=ids.encode(ids.TRANSACTION, subject_id), amount="1.00")

    database = services_with_fake_clock.database
    await create_endpoint(services_with_fake_clock, receiver.url)
    await publish_ledger_event(services_with_fake_clock, "transaction.completed", 17)
    receiver.enqueue_statuses(status)
    await attempt_due_deliveries(services_with_fake_clock, _load_with(load_transaction))
    (sent,) = receiver.received
    stored = await database.fetchval("SELECT data FROM events")
    assert stored == (sent.content["data"] if is_stored else None)


async def test_data_of_the_first_failed_attempt_is_kept(
    services_with_fake_clock: Services, receiver: WebhookReceiver
) -> None:
    services = services_with_fake_clock
    await create_endpoint(services, receiver.url)
    await publish_ledger_event(services, "transaction.completed", 17)
    delivery = await delivery_queue.lease(
        services.database, now=services.clock(), limit=1, capacity=1, capacities={}
    )

    async def load_transaction(subject_id: int) -> msgspec.Struct:
        return TransactionRecord(id=ids.encode(ids.TRANSACTION, subject_id), amount="1.00")

    loaded = await load_event_data(services, _load_with(load_transaction), delivery)
    ((event_id, data),) = loaded.items()
    assert isinstance(data, EventData)
    assert data.unstored is not None
    await store_event_data(services.database, {event_id: data.unstored})
    await store_event_data(services.database, {event_id: '{"id": "later"}'})
    again = await load_event_data(
        services, {}, [await delivery_queue.get(services.database, delivery[0].id)]
    )
    assert again[event_id] == EventData(data.unstored)


async def test_record_that_cannot_be_loaded_does_not_delay_the_others(
    services_with_fake_clock: Services, receiver: WebhookReceiver
) -> None:
    async def load_transactions(services: Services, subject_ids: Collection[int]) -> Any:
        if 18 in subject_ids:
            raise ZeroDivisionError
        return {subject_id: TransactionRecord(id=str(subject_id)) for subject_id in subject_ids}

    await create_endpoint(services_with_fake_clock, receiver.url)
    for subject_id in (17, 18, 19):
        await publish_ledger_event(services_with_fake_clock, "transaction.completed", subject_id)
    await attempt_due_deliveries(services_with_fake_clock, {"transaction": load_transactions})
    assert sorted(webhook.content["data"]["id"] for webhook in receiver.received) == ["17", "19"]
