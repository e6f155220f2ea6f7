"""Webhook endpoint routes: subscriptions, the delivery log and redelivery."""

import asyncio
import base64
from datetime import timedelta
from typing import Any

import httpx2
import pytest

from cases import each
from drivers.webhooks import WebhookReceiver, attempt_due_deliveries, publish_event
from harness import BearerAuth, Harness
from tapgate.events.webhooks import operations, retry_schedule
from tapgate.events.webhooks.worker import WebhookWorker
from tapgate.http.api.services import Services
from tapgate.ledger.rules.loaded_rules import EVENT_TYPES
from tapgate_client import ids
from tapgate_client.schemas.webhooks import WEBHOOK_EVENT_TYPES

ENDPOINTS_URL = "/api/v1/admin/webhook-endpoints"
UNKNOWN_ENDPOINT_ID = ids.encode(ids.WEBHOOK_ENDPOINT, 1)
UNKNOWN_DELIVERY_ID = ids.encode(ids.DELIVERY, 2**62)


@pytest.fixture
async def admin(harness: Harness) -> BearerAuth:
    return await harness.create_admin("A")


async def create_endpoint(
    client: httpx2.AsyncClient,
    admin: BearerAuth,
    url: str = "https://shop.example.com/hook",
    events: tuple[str, ...] = ("*",),
) -> dict[str, Any]:
    response = await client.post(ENDPOINTS_URL, json={"url": url, "events": events}, auth=admin)
    assert response.status_code == 201, response.text
    created: dict[str, Any] = response.json()
    return created


def drop_secret(created: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in created.items() if name != "secret"}


def use_production_settings(services: Services) -> None:
    services.settings = services.settings.replace(environment="production")


async def test_endpoint_secret_is_shown_once_and_stored_sealed(
    harness: Harness, admin: BearerAuth
) -> None:
    created = await create_endpoint(
        harness.client, admin, events=("card.linked", "alert.created", "card.linked")
    )
    assert created.keys() == {
        "id", "url", "events", "owner_id", "status", "status_reason", "status_changed_at",
        "failing_since",
        "last_failure_at", "created_by", "created_by_name", "rotated_by", "rotated_by_name",
        "rotated_at", "secret",
    }  # fmt: skip
    assert (created["status"], created["status_reason"]) == ("active", None)
    assert created["events"] == ["card.linked", "alert.created"]
    assert created["id"].startswith("whk_")
    prefix, _, encoded = created["secret"].partition("_")
    assert (prefix, len(base64.b64decode(encoded, validate=True))) == ("whsec", 32)
    listed = (await harness.get(ENDPOINTS_URL, auth=admin)).json()
    assert listed["data"] == [drop_secret(created)]
    stored = await harness.database.fetch(
        "SELECT webhook_endpoints::text AS row FROM webhook_endpoints"
    )
    assert created["secret"] not in str(stored)
    assert encoded.encode().hex() not in str(stored)
    other = await create_endpoint(harness.client, admin)
    assert other["secret"] != created["secret"]


async def test_endpoint_creation_and_deletion_are_audited_without_secrets(
    harness: Harness, admin: BearerAuth
) -> None:
    created = await create_endpoint(
        harness.client, admin, "https://shop.example.com/hook?password=hunter2"
    )
    await harness.delete(f"{ENDPOINTS_URL}/{created['id']}", auth=admin)
    (creation,) = await harness.list_audit_entries(created["id"], "webhook_endpoint.created")
    assert creation["actor"]["id"] == admin.id
    assert creation["changes"] == {
        "url": [None, "https://shop.example.com/hook"],
        "events": [None, ["*"]],
    }
    (deletion,) = await harness.list_audit_entries(created["id"], "webhook_endpoint.deleted")
    assert deletion["changes"]["events"] == [["*"], None]
    logged = await harness.database.fetch("SELECT audit_entries::text FROM audit_entries")
    assert created["secret"] not in str(logged)
    assert "hunter2" not in str(logged)


@each("events", [[], ["card.lost"], ["card.linked", ""], ["card.*"]])
async def test_empty_event_list_or_unknown_event_is_rejected(
    client: httpx2.AsyncClient, admin: BearerAuth, events: list[str]
) -> None:
    body = {"url": "https://shop.example.com", "events": events}
    response = await client.post(ENDPOINTS_URL, json=body, auth=admin)
    assert (response.status_code, response.json()["code"]) == (422, "VALIDATION_FAILED")
    (field,) = response.json()["details"]["fields"]
    assert field.startswith("events")


@each("body", [{}, {"url": "https://a.example"}, {"url": 1, "events": ["*"]}])
async def test_missing_or_mistyped_field_is_an_invalid_request(
    client: httpx2.AsyncClient, admin: BearerAuth, body: dict[str, Any]
) -> None:
    response = await client.post(ENDPOINTS_URL, json=body, auth=admin)
    assert (response.status_code, response.json()["code"]) == (400, "INVALID_REQUEST")


def test_every_ledger_event_can_be_subscribed_to() -> None:
    assert set(WEBHOOK_EVENT_TYPES) >= EVENT_TYPES


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:8080/hook",
        "http://localhost/hook",
        "https://10.0.0.1/hook",
        "http://[::1]:9/",
        "https://shop.example.com",
    ],
)
async def test_local_addresses_and_plain_http_are_accepted_outside_production(
    client: httpx2.AsyncClient, admin: BearerAuth, url: str
) -> None:
    assert (await create_endpoint(client, admin, url))["url"] == url


@each(
    "url",
    [
        "http://shop.example.com/hook",
        "https://127.0.0.1/hook",
        "https://localhost/hook",
        "https://intranet/hook",
        "https://metadata.google.internal/",
        "https://169.254.169.254/latest/meta-data",
        "https://10.1.2.3/",
        "https://172.16.0.1/",
        "https://192.168.0.1/",
        "https://100.64.0.1/",
        "https://224.0.0.1/",
        "https://0.0.0.0/",
        "https://[::1]/",
        "https://[::]/",
        "https://[fe80::1]/",
        "https://[fd00:ec2::254]/",
        "https://[::ffff:127.0.0.1]/",
        "https://[::ffff:7f00:1]/",
        "https://[64:ff9b::7f00:1]/",
        "https://[2002:7f00:1::]/",
    ],
)
async def test_production_requires_https_and_a_public_address(
    client: httpx2.AsyncClient,
    services: Services,
    admin: BearerAuth,
    url: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # A URL is accepted if its name lookup times out, so a slow machine needs a longer timeout.
    monkeypatch.setattr(operations, "LOOKUP_TIMEOUT_SECONDS", 30.0)
    use_production_settings(services)
    valid = "https://93.184.215.14/hook"
    path = f"{ENDPOINTS_URL}/{(await create_endpoint(client, admin, valid))['id']}"
    for response in (
        await client.post(ENDPOINTS_URL, json={"url": url, "events": ["*"]}, auth=admin),
        await client.put(path, json={"url": url}, auth=admin),
    ):
        assert (response.status_code, response.json()["code"]) == (422, "VALIDATION_FAILED")
        assert response.json()["details"]["fields"].keys() == {"url"}
    assert (await client.get(path, auth=admin)).json()["url"] == valid


@pytest.mark.parametrize("url", ["https://hooks.invalid/tapgate", "https://93.184.215.14/hook"])
async def test_production_accepts_public_addresses_and_unresolved_names(
    client: httpx2.AsyncClient, services: Services, admin: BearerAuth, url: str
) -> None:
    use_production_settings(services)
    assert (await create_endpoint(client, admin, url))["url"] == url


async def test_deleted_and_unknown_endpoints_are_not_found(
    client: httpx2.AsyncClient, admin: BearerAuth
) -> None:
    deleted = (await create_endpoint(client, admin))["id"]
    response = await client.delete(f"{ENDPOINTS_URL}/{deleted}", auth=admin)
    assert (response.status_code, response.content) == (204, b"")
    for endpoint_id in (deleted, UNKNOWN_ENDPOINT_ID, "whk_", "1"):
        for method, path in (
            ("DELETE", f"{ENDPOINTS_URL}/{endpoint_id}"),
            ("GET", f"{ENDPOINTS_URL}/{endpoint_id}/deliveries"),
            ("POST", f"{ENDPOINTS_URL}/{endpoint_id}/deliveries/{UNKNOWN_DELIVERY_ID}/redeliver"),
        ):
            response = await client.request(method, path, auth=admin)
            assert (response.status_code, response.json()["code"]) == (404, "NOT_FOUND"), path
    assert (await client.get(ENDPOINTS_URL, auth=admin)).json()["data"] == []


async def test_concurrent_deletions_delete_the_endpoint_once(
    client: httpx2.AsyncClient, admin: BearerAuth
) -> None:
    path = f"{ENDPOINTS_URL}/{(await create_endpoint(client, admin))['id']}"
    responses = await asyncio.gather(*(client.delete(path, auth=admin) for _ in range(4)))
    assert sorted(response.status_code for response in responses) == [204, 404, 404, 404]


async def test_endpoints_and_deliveries_are_listed_newest_first_in_pages(
    client: httpx2.AsyncClient, services: Services, admin: BearerAuth
) -> None:
    created = [(await create_endpoint(client, admin))["id"] for _ in range(3)]
    first = (await client.get(f"{ENDPOINTS_URL}?limit=2", auth=admin)).json()
    assert [endpoint["id"] for endpoint in first["data"]] == [created[2], created[1]]
    rest = (
        await client.get(f"{ENDPOINTS_URL}?limit=2&cursor={first['next_cursor']}", auth=admin)
    ).json()
    assert ([endpoint["id"] for endpoint in rest["data"]], rest["has_more"]) == (
        [created[0]],
        False,
    )

    for _ in range(3):
        await publish_event(services)
    path = f"{ENDPOINTS_URL}/{created[0]}/deliveries"
    everything = (await client.get(path, auth=admin)).json()
    listed_ids = [delivery["id"] for delivery in everything["data"]]
    assert (len(listed_ids), listed_ids) == (3, sorted(listed_ids, reverse=True))
    first = (await client.get(f"{path}?limit=2", auth=admin)).json()
    rest = (await client.get(f"{path}?limit=2&cursor={first['next_cursor']}", auth=admin)).json()
    assert [delivery["id"] for delivery in (*first["data"], *rest["data"])] == listed_ids
    assert (await client.get(f"{path}?limit=0", auth=admin)).status_code == 422


async def test_delivery_shows_the_result_of_its_last_attempt(
    client: httpx2.AsyncClient, services: Services, admin: BearerAuth, receiver: WebhookReceiver
) -> None:
    path = (
        f"{ENDPOINTS_URL}/{(await create_endpoint(client, admin, receiver.url))['id']}/deliveries"
    )
    await publish_event(services)
    (before,) = (await client.get(path, auth=admin)).json()["data"]
    assert before == {
        "id": before["id"],
        "event": "card.linked",
        "status": "pending",
        "attempts": 0,
        "last_status": None,
        "last_error": None,
        "duration_ms": None,
        "response": None,
        "created_at": before["created_at"],
        "next_attempt_at": before["created_at"],
    }
    assert before["id"].startswith("dlv_")
    await attempt_due_deliveries(services)
    (after,) = (await client.get(path, auth=admin)).json()["data"]
    duration = after["duration_ms"]
    assert isinstance(duration, int) and duration >= 0
    assert after == before | {
        "status": "delivered", "attempts": 1, "last_status": 204, "duration_ms": duration,
        "next_attempt_at": None,
    }  # fmt: skip


async def test_redelivery_is_due_immediately_and_sends_the_same_body(
    services: Services, harness: Harness, admin: BearerAuth, receiver: WebhookReceiver
) -> None:
    created = await create_endpoint(harness.client, admin, receiver.url)
    path = f"{ENDPOINTS_URL}/{created['id']}/deliveries"
    await publish_event(services)
    await attempt_due_deliveries(services)
    (delivered,) = (await harness.get(path, auth=admin)).json()["data"]
    response = await harness.post(f"{path}/{delivered['id']}/redeliver", auth=admin)
    assert response.status_code == 200
    redelivered = response.json()
    assert redelivered.pop("next_attempt_at") is not None
    assert redelivered | {"next_attempt_at": None} == delivered | {"status": "pending"}
    await attempt_due_deliveries(services)
    first, second = receiver.received
    assert (first.id, first.body) == (second.id, second.body)
    assert second.is_signed_with(created["secret"])
    (again,) = (await harness.get(path, auth=admin)).json()["data"]
    assert (again["status"], again["attempts"]) == ("delivered", 2)
    (entry,) = await harness.list_audit_entries(delivered["id"], "webhook_delivery.redelivered")
    assert entry["changes"] == {"status": ["delivered", "pending"]}


async def test_redelivery_of_a_failed_delivery_restarts_the_retry_schedule(
    client: httpx2.AsyncClient, services: Services, admin: BearerAuth, receiver: WebhookReceiver
) -> None:
    path = (
        f"{ENDPOINTS_URL}/{(await create_endpoint(client, admin, receiver.url))['id']}/deliveries"
    )
    await publish_event(services)
    await services.database.execute(
        """UPDATE deliveries SET status = 'failed', attempts = 10, next_attempt_at = NULL,
                                 ended_at = now()"""
    )
    (failed,) = (await client.get(path, auth=admin)).json()["data"]
    receiver.enqueue_statuses(500)
    await client.post(f"{path}/{failed['id']}/redeliver", auth=admin)
    before = services.clock()
    await attempt_due_deliveries(services)
    after = services.clock()
    row = await services.database.fetchrow("SELECT * FROM deliveries")
    assert row is not None
    assert (row["status"], row["attempts"], row["last_status"]) == ("pending", 11, 500)
    first_delay = timedelta(seconds=retry_schedule.RETRY_DELAYS_SECONDS[0])
    assert before + 0.9 * first_delay <= row["next_attempt_at"] <= after + 1.1 * first_delay


async def test_redelivery_is_not_undone_by_an_attempt_in_progress(
    client: httpx2.AsyncClient, services: Services, admin: BearerAuth, receiver: WebhookReceiver
) -> None:
    created = await create_endpoint(client, admin, f"{receiver.url}/slow")
    path = f"{ENDPOINTS_URL}/{created['id']}/deliveries"
    await publish_event(services)
    receiver.enqueue_statuses(500)
    worker = WebhookWorker(services, {})
    await worker.start_due_attempts()
    while not receiver.received:
        await asyncio.sleep(0.01)
    (pending,) = (await client.get(path, auth=admin)).json()["data"]
    await client.post(f"{path}/{pending['id']}/redeliver", auth=admin)
    receiver.allow_responses.set()
    await worker.wait_until_idle()
    await attempt_due_deliveries(services)
    assert len(receiver.received) == 2
    (again,) = (await client.get(path, auth=admin)).json()["data"]
    assert again["status"] == "delivered"


async def test_delivery_is_found_only_under_its_own_endpoint(
    client: httpx2.AsyncClient, services: Services, admin: BearerAuth
) -> None:
    own_id = (await create_endpoint(client, admin))["id"]
    other_id = (await create_endpoint(client, admin))["id"]
    await publish_event(services)
    (delivery,) = (await client.get(f"{ENDPOINTS_URL}/{own_id}/deliveries", auth=admin)).json()[
        "data"
    ]
    for endpoint_id, delivery_id in (
        (other_id, delivery["id"]),
        (own_id, UNKNOWN_DELIVERY_ID),
        (own_id, "x"),
    ):
        response = await client.post(
            f"{ENDPOINTS_URL}/{endpoint_id}/deliveries/{delivery_id}/redeliver", auth=admin
        )
        assert (response.status_code, response.json()["code"]) == (404, "NOT_FOUND")


async def test_deleting_an_endpoint_fails_its_pending_deliveries(
    client: httpx2.AsyncClient, services: Services, admin: BearerAuth, receiver: WebhookReceiver
) -> None:
    kept = await create_endpoint(client, admin, f"{receiver.url}/kept")
    deleted = await create_endpoint(client, admin, f"{receiver.url}/gone")
    await publish_event(services)
    await client.delete(f"{ENDPOINTS_URL}/{deleted['id']}", auth=admin)
    rows = await services.database.fetch(
        "SELECT endpoint_id, status FROM deliveries ORDER BY endpoint_id"
    )
    assert [(ids.encode(ids.WEBHOOK_ENDPOINT, row[0]), row[1]) for row in rows] == [
        (kept["id"], "pending"),
        (deleted["id"], "failed"),
    ]
    await publish_event(services)
    await attempt_due_deliveries(services)
    assert {webhook.path for webhook in receiver.received} == {"/kept"}


async def test_ledger_events_are_stored_only_while_an_endpoint_subscribes_to_them(
    harness: Harness, admin: BearerAuth
) -> None:
    subscriber = await harness.create_subscriber(balance="5.00")
    created = await create_endpoint(harness.client, admin, events=("transaction.completed",))
    await harness.deposit(subscriber["id"], "1.00")
    await harness.delete(f"{ENDPOINTS_URL}/{created['id']}", auth=admin)
    await harness.deposit(subscriber["id"], "1.00")
    assert await harness.database.fetchval("SELECT count(*) FROM events") == 1


async def test_endpoint_is_returned_without_its_secret(
    client: httpx2.AsyncClient, admin: BearerAuth
) -> None:
    created = await create_endpoint(client, admin, events=("card.linked",))
    await create_endpoint(client, admin)
    returned = await client.get(f"{ENDPOINTS_URL}/{created['id']}", auth=admin)
    assert (returned.status_code, returned.json()) == (200, drop_secret(created))
    await client.delete(f"{ENDPOINTS_URL}/{created['id']}", auth=admin)
    for endpoint_id in (created["id"], UNKNOWN_ENDPOINT_ID, "x", "whk_x"):
        response = await client.get(f"{ENDPOINTS_URL}/{endpoint_id}", auth=admin)
        assert (response.status_code, response.json()["code"]) == (404, "NOT_FOUND")


async def test_test_event_is_sent_to_one_endpoint_regardless_of_its_subscriptions(
    services: Services, harness: Harness, admin: BearerAuth, receiver: WebhookReceiver
) -> None:
    other = await create_endpoint(harness.client, admin, receiver.url, events=("*",))
    tested = await create_endpoint(harness.client, admin, receiver.url, events=("card.linked",))
    url = f"{ENDPOINTS_URL}/{tested['id']}"
    response = await harness.post(f"{url}/test", auth=admin)
    assert response.status_code == 201
    delivery = response.json()
    created_at = delivery["created_at"]
    assert delivery == {
        "id": delivery["id"],
        "event": "webhook.test",
        "status": "pending",
        "attempts": 0,
        "last_status": None,
        "last_error": None,
        "duration_ms": None,
        "response": None,
        "created_at": created_at,
        "next_attempt_at": created_at,
    }
    receiver.enqueue_statuses(500)
    await attempt_due_deliveries(services)
    harness.advance_clock(minutes=1)
    await attempt_due_deliveries(services)
    first, second = receiver.received
    assert first.body == second.body
    assert second.id == delivery["id"] and second.is_signed_with(tested["secret"])
    assert second.content == {
        "type": "webhook.test",
        "timestamp": created_at,
        "data": {"webhook_endpoint_id": tested["id"]},
    }
    listed = (await harness.get(f"{url}/deliveries", auth=admin)).json()["data"]
    (after,) = listed
    assert (after["status"], after["attempts"], after["last_status"]) == ("delivered", 2, 204)
    response = await harness.get(f"{ENDPOINTS_URL}/{other['id']}/deliveries", auth=admin)
    assert response.json()["data"] == []
    (entry,) = await harness.list_audit_entries(tested["id"], "webhook_endpoint.tested")
    assert entry["actor"]["id"] == admin.id
    again = await harness.post(f"{url}/deliveries/{delivery['id']}/redeliver", auth=admin)
    assert again.json()["status"] == "pending"


async def test_test_event_for_a_missing_endpoint_is_not_found(
    client: httpx2.AsyncClient, services: Services, admin: BearerAuth
) -> None:
    created = await create_endpoint(client, admin)
    await client.delete(f"{ENDPOINTS_URL}/{created['id']}", auth=admin)
    for endpoint_id in (created["id"], UNKNOWN_ENDPOINT_ID, "x"):
        response = await client.post(f"{ENDPOINTS_URL}/{endpoint_id}/test", auth=admin)
        assert (response.status_code, response.json()["code"]) == (404, "NOT_FOUND")
    assert await services.database.fetchval("SELECT count(*) FROM events") == 0


async def test_test_event_cannot_be_subscribed_to(
    client: httpx2.AsyncClient, admin: BearerAuth
) -> None:
    body = {"url": "https://shop.example.com", "events": ["webhook.test"]}
    response = await client.post(ENDPOINTS_URL, json=body, auth=admin)
    assert (response.status_code, response.json()["code"]) == (422, "VALIDATION_FAILED")
