"""Updating, pausing and reactivating endpoints; endpoints that the gateway disables."""

from datetime import UTC, datetime, timedelta
from typing import Any

import httpx2
import pytest

from cases import each
from drivers.webhooks import ENDPOINTS_URL, WebhookReceiver, attempt_due_deliveries, publish_event
from harness import BearerAuth, Harness
from tapgate.core.vault import VaultError
from tapgate.events.webhooks import model, retry_schedule
from tapgate.events.webhooks.model import StatusReason
from tapgate.events.webhooks.retry_schedule import MAX_RETRY_AFTER
from tapgate.http.api.services import Services
from tapgate.server.event_records import EVENT_RECORD_LOADERS
from tapgate_client import ids


class EndpointsDriver:
    """Calls the endpoint routes as an administrator."""

    def __init__(self, harness: Harness, admin: BearerAuth) -> None:
        self.harness, self.admin = harness, admin
        self.services: Services = harness.services

    async def create(self, url: str, *events: str) -> str:
        body = {"url": url, "events": list(events or ("*",))}
        response = await self.harness.post(ENDPOINTS_URL, json=body, auth=self.admin)
        assert response.status_code == 201, response.text
        return str(response.json()["id"])

    async def get(self, id: str) -> dict[str, Any]:
        response = await self.harness.get(f"{ENDPOINTS_URL}/{id}", auth=self.admin)
        record: dict[str, Any] = response.json()
        return record

    async def put(self, id: str, **body: Any) -> httpx2.Response:
        return await self.harness.put(f"{ENDPOINTS_URL}/{id}", json=body, auth=self.admin)

    async def list_deliveries(self, id: str) -> list[dict[str, Any]]:
        response = await self.harness.get(f"{ENDPOINTS_URL}/{id}/deliveries", auth=self.admin)
        listed: list[dict[str, Any]] = response.json()["data"]
        return listed

    async def make_all_due(self) -> None:
        await self.services.database.execute(
            "UPDATE deliveries SET next_attempt_at = $1 WHERE status = 'pending'",
            self.services.clock(),
        )


@pytest.fixture
async def endpoints_driver(harness: Harness) -> EndpointsDriver:
    return EndpointsDriver(harness, await harness.create_admin("A"))


async def test_update_changes_the_given_fields_and_keeps_the_rest(
    endpoints_driver: EndpointsDriver, harness: Harness, receiver: WebhookReceiver
) -> None:
    id = await endpoints_driver.create(f"{receiver.url}/old", "card.linked")
    before = await endpoints_driver.get(id)
    assert (await endpoints_driver.put(id)).json() == before
    url_update = await endpoints_driver.put(
        id, url=f"{receiver.url}/new?password=hunter2", status=None
    )
    assert url_update.json() == before | {"url": f"{receiver.url}/new?password=hunter2"}
    events_update = await endpoints_driver.put(id, events=["alert.created", "alert.created"])
    assert events_update.json() == url_update.json() | {"events": ["alert.created"]}
    await publish_event(harness.services, "card.linked")
    await publish_event(harness.services, "alert.created")
    await attempt_due_deliveries(harness.services)
    expected = [("/new?password=hunter2", "alert.created")]
    assert [(webhook.path, webhook.content["type"]) for webhook in receiver.received] == expected
    first, second = await harness.list_audit_entries(id, "webhook_endpoint.updated")
    assert first["changes"] == {"url": [f"{receiver.url}/old", f"{receiver.url}/new"]}
    assert second["changes"] == {"events": [["card.linked"], ["alert.created"]]}
    assert first["actor"]["id"] == endpoints_driver.admin.id


@each(
    "body, code, field",
    [
        ({"url": "ftp://shop.example.com"}, "VALIDATION_FAILED", "url"),
        ({"url": "http://user:secret@shop.example.com"}, "VALIDATION_FAILED", "url"),
        ({"events": []}, "VALIDATION_FAILED", "events"),
        ({"events": ["card.lost"]}, "VALIDATION_FAILED", "events[0]"),
        ({"status": "disabled"}, "VALIDATION_FAILED", "status"),
        ({"status": "ACTIVE"}, "VALIDATION_FAILED", "status"),
        ({"status": 1}, "INVALID_REQUEST", "status"),
        ({"events": "*"}, "INVALID_REQUEST", "events"),
    ],
)
async def test_invalid_field_is_rejected_and_named(
    endpoints_driver: EndpointsDriver, body: dict[str, Any], code: str, field: str
) -> None:
    id = await endpoints_driver.create("https://shop.example.com/hook")
    before = await endpoints_driver.get(id)
    response = await endpoints_driver.put(id, **body)
    assert response.json()["code"] == code
    assert list(response.json()["details"]["fields"]) == [field]
    assert "secret" not in response.text
    assert await endpoints_driver.get(id) == before


async def test_unknown_and_deleted_endpoints_are_not_found(
    endpoints_driver: EndpointsDriver,
) -> None:
    deleted = await endpoints_driver.create("https://shop.example.com")
    client, admin = endpoints_driver.harness.client, endpoints_driver.admin
    await client.delete(f"{ENDPOINTS_URL}/{deleted}", auth=admin)
    for id in (deleted, ids.encode(ids.WEBHOOK_ENDPOINT, 1), "whk_", "x"):
        rotated = await client.post(f"{ENDPOINTS_URL}/{id}/rotate-secret", auth=admin)
        for response in (rotated, await endpoints_driver.put(id, status="paused")):
            assert (response.status_code, response.json()["code"]) == (404, "NOT_FOUND")


async def test_events_for_a_paused_endpoint_are_queued_and_sent_when_it_is_resumed(
    endpoints_driver: EndpointsDriver, harness: Harness, receiver: WebhookReceiver
) -> None:
    services = harness.services
    id = await endpoints_driver.create(receiver.url)
    await publish_event(services)
    paused = (await endpoints_driver.put(id, status="paused")).json()
    assert (paused["status"], paused["status_reason"]) == ("paused", StatusReason.PAUSED)
    await publish_event(services)
    subscriber = await harness.create_subscriber(balance="5.00")  # causes a ledger event
    await harness.deposit(subscriber["id"], "1.00")
    await harness.post(f"{ENDPOINTS_URL}/{id}/test", auth=endpoints_driver.admin)
    await attempt_due_deliveries(services)
    assert receiver.received == []
    queued = await endpoints_driver.list_deliveries(id)
    assert {delivery["status"] for delivery in queued} == {"pending"}
    assert {delivery["attempts"] for delivery in queued} == {0}
    assert {delivery["event"] for delivery in queued} >= {"card.linked", "webhook.test"}
    resumed = (await endpoints_driver.put(id, status="active")).json()
    assert (resumed["status"], resumed["status_reason"]) == ("active", None)
    await attempt_due_deliveries(services, EVENT_RECORD_LOADERS)
    assert {webhook.id for webhook in receiver.received} == {delivery["id"] for delivery in queued}
    changes = [
        entry["changes"]
        for entry in await harness.list_audit_entries(id, "webhook_endpoint.updated")
    ]
    assert [change["status"] for change in changes] == [["active", "paused"], ["paused", "active"]]


async def test_redelivery_to_a_paused_endpoint_is_sent_when_it_is_resumed(
    endpoints_driver: EndpointsDriver, harness: Harness, receiver: WebhookReceiver
) -> None:
    id = await endpoints_driver.create(receiver.url)
    await publish_event(harness.services)
    await attempt_due_deliveries(harness.services)
    (delivery,) = await endpoints_driver.list_deliveries(id)
    await endpoints_driver.put(id, status="paused")
    path = f"{ENDPOINTS_URL}/{id}/deliveries/{delivery['id']}/redeliver"
    assert (await harness.post(path, auth=endpoints_driver.admin)).json()["status"] == "pending"
    await attempt_due_deliveries(harness.services)
    assert len(receiver.received) == 1
    await endpoints_driver.put(id, status="active")
    await attempt_due_deliveries(harness.services)
    assert [webhook.id for webhook in receiver.received] == [delivery["id"]] * 2


async def test_410_disables_the_endpoint_until_it_is_reactivated(
    endpoints_driver: EndpointsDriver, harness: Harness, receiver: WebhookReceiver
) -> None:
    services = harness.services
    id = await endpoints_driver.create(f"{receiver.url}/hook?password=hunter2", "*")
    for _ in range(3):
        await publish_event(services)
    await services.database.execute(
        "UPDATE deliveries SET next_attempt_at = $1 WHERE id <> (SELECT min(id) FROM deliveries)",
        datetime(2999, 1, 1, tzinfo=UTC),
    )
    receiver.enqueue_statuses(410)
    await attempt_due_deliveries(services)
    disabled = await endpoints_driver.get(id)
    assert (disabled["status"], disabled["status_reason"]) == ("disabled", StatusReason.GONE)
    *pending, failed = await endpoints_driver.list_deliveries(id)
    assert (failed["status"], failed["attempts"], failed["last_status"]) == ("failed", 1, 410)
    await publish_event(services)  # not queued
    await endpoints_driver.make_all_due()
    await attempt_due_deliveries(services)
    assert len(receiver.received) == 1
    assert [delivery["status"] for delivery in await endpoints_driver.list_deliveries(id)] == [
        "pending",
        "pending",
        "failed",
    ]
    (entry,) = await harness.list_audit_entries(id, "webhook_endpoint.disabled")
    assert (entry["actor"]["type"], entry["reason"]) == ("system", StatusReason.GONE)
    assert entry["changes"] == {"status": ["active", "disabled"]}

    assert (await endpoints_driver.put(id, status="active")).json()["status"] == "active"
    await publish_event(services)
    await attempt_due_deliveries(services)
    received_ids = {webhook.id for webhook in receiver.received[1:]}
    assert received_ids > {delivery["id"] for delivery in pending} and len(received_ids) == 3


async def test_disabled_event_is_sent_to_subscribed_endpoints_without_the_url(
    endpoints_driver: EndpointsDriver, harness: Harness, receiver: WebhookReceiver
) -> None:
    services = harness.services
    disabled_id = await endpoints_driver.create(
        f"{receiver.url}/gone?password=hunter2", "card.linked", "*"
    )
    await endpoints_driver.create(f"{receiver.url}/watch", "webhook_endpoint.disabled")
    await endpoints_driver.create(f"{receiver.url}/cards", "card.blocked")
    receiver.enqueue_statuses(410)
    await publish_event(services)
    await attempt_due_deliveries(services)
    await attempt_due_deliveries(services)
    webhooks = receiver.received[1:]
    expected = [("/watch", "webhook_endpoint.disabled")]
    assert [(webhook.path, webhook.content["type"]) for webhook in webhooks] == expected
    record = await endpoints_driver.get(disabled_id)
    fields = ("id", "status", "status_reason", "status_changed_at")
    assert webhooks[0].content["data"] == {name: record[name] for name in fields}


async def test_ledger_events_are_not_stored_for_a_disabled_endpoint(
    endpoints_driver: EndpointsDriver, harness: Harness
) -> None:
    """The ledger stores an event only if an endpoint that is not disabled subscribes to it."""
    services = harness.services
    subscriber = await harness.create_subscriber(balance="5.00")
    id = await endpoints_driver.create("http://127.0.0.1:9/", "transaction.completed")
    await services.database.execute("UPDATE webhook_endpoints SET status = 'disabled'")
    await harness.deposit(subscriber["id"], "1.00")
    assert await services.database.fetchval("SELECT count(*) FROM events") == 0
    await endpoints_driver.put(id, status="active")
    await harness.deposit(subscriber["id"], "1.00")
    assert await services.database.fetchval("SELECT count(*) FROM events") == 1
    await endpoints_driver.put(id, events=["card.linked"])
    await harness.deposit(subscriber["id"], "1.00")
    assert await services.database.fetchval("SELECT count(*) FROM events") == 1


async def test_five_days_of_failures_disable_the_endpoint(
    endpoints_driver: EndpointsDriver, harness: Harness, receiver: WebhookReceiver
) -> None:
    services = harness.services
    id = await endpoints_driver.create(receiver.url)
    receiver.enqueue_statuses(*[500] * 50)
    for day in range(6):
        await publish_event(services)
        await attempt_due_deliveries(services)
        status = (await endpoints_driver.get(id))["status"]
        assert status == ("disabled" if day == 5 else "active"), day
        harness.advance_clock(days=1)
    assert (await endpoints_driver.get(id))["status_reason"] == StatusReason.FAILING
    sent = len(receiver.received)
    await endpoints_driver.make_all_due()
    await attempt_due_deliveries(services)
    assert len(receiver.received) == sent
    assert len(await harness.list_audit_entries(id, "webhook_endpoint.disabled")) == 1


@pytest.mark.parametrize("change", ["success", "url", "pause"])
async def test_failure_period_restarts_after_a_success_or_change(
    endpoints_driver: EndpointsDriver, harness: Harness, receiver: WebhookReceiver, change: str
) -> None:
    services = harness.services
    id = await endpoints_driver.create(receiver.url)

    async def attempt(status: int) -> None:
        receiver.enqueue_statuses(status)
        await publish_event(services)
        await services.database.execute(
            "UPDATE deliveries SET next_attempt_at = $1 WHERE attempts > 0 AND status = 'pending'",
            datetime(2999, 1, 1, tzinfo=UTC),
        )
        await attempt_due_deliveries(services)

    await attempt(500)
    harness.advance_clock(days=4)
    if change == "success":
        await attempt(200)
    elif change == "url":
        await endpoints_driver.put(id, url=f"{receiver.url}/other")
    else:
        await endpoints_driver.put(id, status="paused")
        await endpoints_driver.put(id, status="active")
    harness.advance_clock(days=2)
    await attempt(500)
    assert (await endpoints_driver.get(id))["status"] == "active"
    for _ in range(5):
        harness.advance_clock(days=1)
        await attempt(500)
    assert (await endpoints_driver.get(id))["status"] == "disabled"


async def test_failure_period_restarts_after_a_week_without_attempts(
    endpoints_driver: EndpointsDriver, harness: Harness, receiver: WebhookReceiver
) -> None:
    services = harness.services
    id = await endpoints_driver.create(receiver.url)
    receiver.enqueue_statuses(*[500] * 50)
    await publish_event(services)
    for _ in range(len(retry_schedule.RETRY_DELAYS_SECONDS) + 1):
        await endpoints_driver.make_all_due()
        await attempt_due_deliveries(services)
    found = [delivery["status"] for delivery in await endpoints_driver.list_deliveries(id)]
    assert found == ["failed"]
    harness.advance_clock(days=7)
    for day in range(6):
        await publish_event(services)
        await attempt_due_deliveries(services)
        status = (await endpoints_driver.get(id))["status"]
        assert status == ("disabled" if day == 5 else "active"), day
        harness.advance_clock(days=1)


def test_longest_retry_delay_is_shorter_than_the_maximum_failure_gap() -> None:
    max_delay = timedelta(seconds=max(retry_schedule.RETRY_DELAYS_SECONDS) * 1.1)
    assert max(max_delay, MAX_RETRY_AFTER) < model.MAX_FAILURE_GAP


async def test_logged_responses_about_a_restricted_subscriber_are_hidden(
    endpoints_driver: EndpointsDriver, harness: Harness, receiver: WebhookReceiver
) -> None:
    services, client = harness.services, harness.client
    id = await endpoints_driver.create(receiver.url)
    subscriber = await harness.create_subscriber()
    await harness.deposit(subscriber["id"], "1.00")
    await client.post(f"{ENDPOINTS_URL}/{id}/test", auth=endpoints_driver.admin)
    await attempt_due_deliveries(services, EVENT_RECORD_LOADERS)
    await services.database.execute("UPDATE deliveries SET response = 'Hello Aminata'")
    visible = await endpoints_driver.list_deliveries(id)
    events = {"subscriber.created", "transaction.completed", "webhook.test"}
    assert {delivery["event"] for delivery in visible} == events
    assert {delivery["response"] for delivery in visible} == {"Hello Aminata"}
    await services.database.execute("UPDATE subscribers SET restricted = true")
    hidden = await endpoints_driver.list_deliveries(id)
    assert {delivery["event"] for delivery in hidden if delivery["response"]} == {"webhook.test"}
    path = f"{ENDPOINTS_URL}/{id}/deliveries/{hidden[-1]['id']}/redeliver"
    response = await client.post(path, auth=endpoints_driver.admin)
    assert (response.status_code, response.json()["response"]) == (200, None)
    url = f"/api/v1/subscribers/{subscriber['id']}/restricted-access"
    await client.post(url, auth=endpoints_driver.admin)
    code = await harness.get_pending_code(subscriber["phone_number"])
    await client.post(f"{url}/verify", json={"otp": code}, auth=endpoints_driver.admin)
    found = {delivery["response"] for delivery in await endpoints_driver.list_deliveries(id)}
    assert found == {"Hello Aminata"}


async def test_gateway_errors_do_not_count_as_endpoint_failures(
    endpoints_driver: EndpointsDriver,
    harness: Harness,
    receiver: WebhookReceiver,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    services = harness.services
    id = await endpoints_driver.create(receiver.url)

    def raise_vault_error(*_: object) -> bytes:
        raise VaultError

    monkeypatch.setattr(type(services.vault), "open", raise_vault_error)
    await publish_event(services)
    for _ in range(3):
        await endpoints_driver.make_all_due()
        await attempt_due_deliveries(services)
        harness.advance_clock(days=5)
    assert (await endpoints_driver.get(id))["status"] == "active"
    assert await services.database.fetchval("SELECT failing_since FROM webhook_endpoints") is None


def test_disable_reason_states_the_number_of_days() -> None:
    assert f"{model.DISABLE_AFTER.days} days" in StatusReason.FAILING
