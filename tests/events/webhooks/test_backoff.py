"""A failing endpoint pauses as a whole, and a period can be sent again."""

from typing import Any

import pytest

from builders.auth import FakeClock
from drivers.webhooks import (
    WebhookReceiver,
    attempt_due_deliveries,
    create_endpoint,
    publish_event,
)
from harness import BearerAuth, Harness
from tapgate.events.webhooks import operations
from tapgate.events.webhooks.delivery_queue import BACKLOG_SQL, BACKOFF_AFTER_FAILURES
from tapgate.events.webhooks.endpoint_metrics import EndpointMetrics
from tapgate.http.api.services import Services

ENDPOINTS_URL = "/api/v1/admin/webhook-endpoints"


async def publish(services: Services, count: int) -> None:
    for _ in range(count):
        await publish_event(services)


async def get_pause(services: Services, clock: FakeClock) -> float | None:
    until = await services.database.fetchval(
        "SELECT backoff_until FROM webhook_endpoints ORDER BY id LIMIT 1"
    )
    return None if until is None else (until - clock()).total_seconds()


async def count_new_requests(services: Services, receiver: WebhookReceiver) -> int:
    before = len(receiver.received)
    await attempt_due_deliveries(services)
    return len(receiver.received) - before


async def test_failing_endpoint_gets_one_request_after_pauses_that_double(
    services_with_fake_clock: Services, receiver: WebhookReceiver, fake_clock: FakeClock
) -> None:
    services = services_with_fake_clock
    await create_endpoint(services, receiver.url)
    await publish(services, 40)
    receiver.enqueue_statuses(*[500] * 1_000)
    assert await count_new_requests(services, receiver) >= BACKOFF_AFTER_FAILURES
    pauses = []
    for _ in range(8):
        pause = await get_pause(services, fake_clock)
        assert pause is not None
        pauses.append(pause)
        fake_clock.advance(seconds=pause - 0.5)
        assert await count_new_requests(services, receiver) == 0
        fake_clock.advance(seconds=0.5)
        # The helper starts a worker without knowledge of the pause, which may send a burst.
        assert await count_new_requests(services, receiver) <= 10
    assert pauses == [5, 10, 20, 40, 80, 160, 300, 300]


async def test_success_ends_the_pause_and_nothing_is_lost(
    services_with_fake_clock: Services, receiver: WebhookReceiver, fake_clock: FakeClock
) -> None:
    services = services_with_fake_clock
    await create_endpoint(services, receiver.url)
    await publish(services, 30)
    receiver.enqueue_statuses(*[500] * 30)
    await attempt_due_deliveries(services)
    assert await get_pause(services, fake_clock) == 5
    receiver.enqueue_statuses()
    fake_clock.advance(seconds=60)
    for _ in range(10):
        await attempt_due_deliveries(services)
        fake_clock.advance(seconds=600)
    assert await get_pause(services, fake_clock) is None
    statuses = await services.database.fetch("SELECT DISTINCT status FROM deliveries")
    assert [row["status"] for row in statuses] == ["delivered"]


async def test_few_failures_between_successes_do_not_pause_an_endpoint(
    services_with_fake_clock: Services, receiver: WebhookReceiver, fake_clock: FakeClock
) -> None:
    services = services_with_fake_clock
    await create_endpoint(services, receiver.url)
    for _ in range(5):
        await publish(services, 5)
        receiver.enqueue_statuses(400, 400, 204, 204, 204)
        await attempt_due_deliveries(services)
        fake_clock.advance(seconds=1)
    assert await get_pause(services, fake_clock) is None


async def test_failing_endpoint_is_named_and_not_part_of_the_platform_backlog(
    services: Services, receiver: WebhookReceiver
) -> None:
    await create_endpoint(services, receiver.url)
    await publish(services, 3)
    backlog = await services.database.fetchrow(BACKLOG_SQL)
    assert backlog is not None
    assert backlog["jobs"] == 3
    receiver.enqueue_statuses(500, 500, 500)
    await attempt_due_deliveries(services)
    backlog = await services.database.fetchrow(BACKLOG_SQL)
    assert backlog is not None
    assert (backlog["jobs"], backlog["overdue"]) == (0, 0)
    metrics = EndpointMetrics(services.database)
    await metrics.update()
    ((sample,),) = [metric.samples for metric in metrics.collect()]
    assert sample.labels["host"] == "127.0.0.1"
    assert sample.labels["endpoint"].startswith("whk_")


@pytest.fixture
async def failed(harness: Harness, receiver: WebhookReceiver) -> str:
    """Yield an endpoint with seven failed deliveries, from five different minutes."""
    services = harness.services
    await create_endpoint(services, receiver.url)
    await publish(services, 7)
    await services.database.execute(
        """UPDATE deliveries SET status = 'failed', next_attempt_at = NULL, attempts = 10,
               ended_at = '2026-01-01 13:00Z',
               created_at = timestamptz '2026-01-01 12:00Z' + make_interval(
                   mins => least(5, (id - (SELECT min(id) FROM deliveries))::int))"""
    )
    return str(await services.database.fetchval("SELECT id FROM webhook_endpoints"))


async def redeliver(
    harness: Harness, admin: BearerAuth, url: str, **changes: str
) -> dict[str, Any]:
    body = {"from": "2026-01-01T12:01:00Z", "to": "2026-01-01T12:05:30Z", **changes}
    response = await harness.client.post(f"{url}/redeliver", json=body, auth=admin)
    return {"status": response.status_code, **response.json()}


async def test_period_is_redelivered_once_in_bounded_steps(
    harness: Harness, failed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(operations, "MAX_REDELIVERIES", 4)
    admin = await harness.create_admin()
    (endpoint,) = (await harness.get(ENDPOINTS_URL, auth=admin)).json()["data"]
    url = f"{ENDPOINTS_URL}/{endpoint['id']}"
    first = await redeliver(harness, admin, url)
    assert first == {"status": 200, "redelivered": 4, "complete": False}
    assert await redeliver(harness, admin, url) == {
        "status": 200,
        "redelivered": 6,
        "complete": True,
    }
    pending = "SELECT count(*) FROM deliveries WHERE status = 'pending'"
    assert await harness.database.fetchval(pending) == 6  # the first one is before the period
    # They fail again: the same request does not repeat them.
    await harness.database.execute(
        "UPDATE deliveries SET status = 'failed', next_attempt_at = NULL, ended_at = now()"
    )
    assert (await redeliver(harness, admin, url))["redelivered"] == 6
    assert await harness.database.fetchval(pending) == 0
    entries = await harness.list_audit_entries(endpoint["id"], "webhook_endpoint.redelivered")
    counts = sorted(entry["changes"]["deliveries"] for entry in entries)
    assert counts == [[0, 4], [4, 6]]


async def test_period_must_be_past_and_bounded(harness: Harness, failed: str) -> None:
    admin = await harness.create_admin()
    (endpoint,) = (await harness.get(ENDPOINTS_URL, auth=admin)).json()["data"]
    url = f"{ENDPOINTS_URL}/{endpoint['id']}"
    for changes in (
        {"to": "2999-01-01"},
        {"to": "2026-01-01T12:00:00Z"},
        {"from": "2025-11-01"},
        {"status": "pending"},
    ):
        assert (await redeliver(harness, admin, url, **changes))["status"] == 422, changes
