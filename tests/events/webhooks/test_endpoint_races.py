"""Changes to endpoints while workers are sending.

Once a change is confirmed, no process sends with the old settings.
"""

import asyncio
import itertools
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import httpx2
import pytest
from structlog.testing import capture_logs

from drivers.webhooks import (
    ENDPOINTS_URL,
    ReceivedWebhook,
    WebhookReceiver,
    attempt_due_deliveries,
    list_deliveries,
    publish_event,
    wait_until_equal,
)
from harness import BearerAuth, Harness
from tapgate.events.webhooks import delivery_queue
from tapgate.events.webhooks.sender import WebhookSender
from tapgate.events.webhooks.worker import WebhookWorker
from tapgate.runtime.store.signals import Signals
from tapgate.runtime.store.work_queue import LEASE_DURATION
from tapgate_client.errors import ApiError, Code


class BlockingResolver:
    """Resolver that blocks each attempt between leasing the delivery and connecting."""

    def __init__(self) -> None:
        self.reached = 0
        self.resume = asyncio.Event()

    async def __call__(self, host: str) -> Sequence[str]:
        self.reached += 1
        await self.resume.wait()
        return ["127.0.0.1"]


class LeasedDeliveries:
    """An endpoint with leased deliveries that have not been sent yet."""

    def __init__(self, harness: Harness, admin: BearerAuth, receiver: WebhookReceiver) -> None:
        self.harness, self.admin, self.receiver = harness, admin, receiver
        self.resolver = BlockingResolver()
        self.url = f"http://hook.test:{receiver.port}"
        self.created: dict[str, Any] = {}

    @property
    def path(self) -> str:
        return f"{ENDPOINTS_URL}/{self.created['id']}"

    @property
    def sender(self) -> WebhookSender:
        return WebhookSender(public_only=False, resolve=self.resolver)

    async def lease_deliveries(self, count: int = 3) -> WebhookWorker:
        body = {"url": f"{self.url}/old", "events": ["*"]}
        response = await self.harness.post(ENDPOINTS_URL, json=body, auth=self.admin)
        self.created = response.json()
        for _ in range(count):
            await publish_event(self.harness.services)
        worker = WebhookWorker(self.harness.services, {}, self.sender)
        await worker.start_due_attempts()
        await wait_until_equal(self._count_reached, count)
        return worker

    async def _count_reached(self) -> int:
        return self.resolver.reached

    async def finish_deliveries(self, worker: WebhookWorker) -> None:
        self.resolver.resume.set()
        await worker.wait_until_idle()


@pytest.fixture
async def leased_deliveries(harness: Harness, receiver: WebhookReceiver) -> LeasedDeliveries:
    return LeasedDeliveries(harness, await harness.create_admin("A"), receiver)


@pytest.fixture(params=["listening", "not listening"])
def _with_and_without_signals(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Run the test in a process that receives signals and in one that does not."""
    if request.param == "not listening":
        monkeypatch.setattr(Signals, "is_listening", False)


ChangeEndpoint = Callable[[LeasedDeliveries], Awaitable[Any]]


async def pause_endpoint(deliveries: LeasedDeliveries) -> Any:
    return await deliveries.harness.put(
        deliveries.path, json={"status": "paused"}, auth=deliveries.admin
    )


async def delete_endpoint(deliveries: LeasedDeliveries) -> Any:
    return await deliveries.harness.delete(deliveries.path, auth=deliveries.admin)


async def disable_by_410(deliveries: LeasedDeliveries) -> Any:
    """Disable the endpoint by having another worker get 410 for another delivery."""
    deliveries.receiver.enqueue_statuses(410)
    await publish_event(deliveries.harness.services)
    resolver = BlockingResolver()
    resolver.resume.set()
    await attempt_due_deliveries(
        deliveries.harness.services, sender=WebhookSender(public_only=False, resolve=resolver)
    )
    deliveries.receiver.received.clear()


@pytest.mark.parametrize(
    ("change", "status"),
    [(pause_endpoint, "pending"), (delete_endpoint, "failed"), (disable_by_410, "pending")],
)
@pytest.mark.usefixtures("_with_and_without_signals")
async def test_leased_deliveries_are_not_sent_to_a_paused_deleted_or_disabled_endpoint(
    leased_deliveries: LeasedDeliveries,
    receiver: WebhookReceiver,
    change: ChangeEndpoint,
    status: str,
) -> None:
    worker = await leased_deliveries.lease_deliveries()
    leased = {row["id"] for row in await list_deliveries(leased_deliveries.harness.services)}
    await change(leased_deliveries)
    await leased_deliveries.finish_deliveries(worker)
    assert receiver.received == []
    rows = [
        row
        for row in await list_deliveries(leased_deliveries.harness.services)
        if row["id"] in leased
    ]
    assert {row["status"] for row in rows} == {status}
    if status == "pending":
        assert {row["attempts"] for row in rows} == {0}
        await leased_deliveries.harness.put(
            leased_deliveries.path, json={"status": "active"}, auth=leased_deliveries.admin
        )
        await attempt_due_deliveries(
            leased_deliveries.harness.services, sender=leased_deliveries.sender
        )
        assert len(receiver.received) == len(leased)


@pytest.mark.usefixtures("_with_and_without_signals")
async def test_leased_deliveries_are_signed_only_with_the_new_secret(
    leased_deliveries: LeasedDeliveries, receiver: WebhookReceiver
) -> None:
    worker = await leased_deliveries.lease_deliveries()
    response = await leased_deliveries.harness.post(
        f"{leased_deliveries.path}/rotate-secret", auth=leased_deliveries.admin
    )
    await leased_deliveries.finish_deliveries(worker)
    await attempt_due_deliveries(
        leased_deliveries.harness.services, sender=leased_deliveries.sender
    )
    assert len(receiver.received) == 3
    assert all(webhook.is_signed_with(response.json()["secret"]) for webhook in receiver.received)
    found = any(
        received.is_signed_with(leased_deliveries.created["secret"])
        for received in receiver.received
    )
    assert not found


@pytest.mark.usefixtures("_with_and_without_signals")
async def test_leased_deliveries_are_sent_to_the_new_url(
    leased_deliveries: LeasedDeliveries, receiver: WebhookReceiver
) -> None:
    worker = await leased_deliveries.lease_deliveries()
    await leased_deliveries.harness.put(
        leased_deliveries.path,
        json={"url": f"{leased_deliveries.url}/new"},
        auth=leased_deliveries.admin,
    )
    await leased_deliveries.finish_deliveries(worker)
    await attempt_due_deliveries(
        leased_deliveries.harness.services, sender=leased_deliveries.sender
    )
    assert [webhook.path for webhook in receiver.received] == ["/new"] * 3


async def test_lease_that_cannot_be_released_expires(
    leased_deliveries: LeasedDeliveries,
    harness: Harness,
    receiver: WebhookReceiver,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def fail_to_release(*_: object) -> None:
        raise ApiError(Code.SERVICE_UNAVAILABLE)

    worker = await leased_deliveries.lease_deliveries(count=1)
    await pause_endpoint(leased_deliveries)
    with monkeypatch.context() as patch, capture_logs() as lines:
        patch.setattr(delivery_queue, "release", fail_to_release)
        await leased_deliveries.finish_deliveries(worker)
    assert [line["event"] for line in lines] == ["webhooks.attempt_not_recorded"]
    await harness.put(
        leased_deliveries.path, json={"status": "active"}, auth=leased_deliveries.admin
    )
    harness.advance_clock(seconds=LEASE_DURATION.total_seconds())
    await attempt_due_deliveries(harness.services, sender=leased_deliveries.sender)
    assert len(receiver.received) == 1


@pytest.mark.parametrize(("status", "endpoint_status"), [(500, "active"), (410, "disabled")])
async def test_redelivery_during_a_failing_attempt_stays_due_and_the_attempt_is_logged(
    harness: Harness, receiver: WebhookReceiver, status: int, endpoint_status: str
) -> None:
    admin, services = await harness.create_admin("A"), harness.services
    body = {"url": f"{receiver.url}/slow", "events": ["*"]}
    created = (await harness.post(ENDPOINTS_URL, json=body, auth=admin)).json()
    path = f"{ENDPOINTS_URL}/{created['id']}"
    receiver.enqueue_statuses(status)
    await publish_event(services)
    worker = WebhookWorker(services, {})
    await worker.start_due_attempts()

    async def count_received() -> int:
        return len(receiver.received)

    await wait_until_equal(count_received, 1)
    (listed,) = (await harness.get(f"{path}/deliveries", auth=admin)).json()["data"]
    redeliver_url = f"{path}/deliveries/{listed['id']}/redeliver"
    assert (await harness.post(redeliver_url, auth=admin)).status_code == 200
    receiver.allow_responses.set()
    await worker.wait_until_idle()
    (row,) = await list_deliveries(services)
    assert (row["status"], row["last_status"]) == ("pending", status)
    assert row["next_attempt_at"] <= services.clock()
    assert (await harness.get(path, auth=admin)).json()["status"] == endpoint_status

    receiver.enqueue_statuses(204)
    await harness.put(path, json={"status": "active"}, auth=admin)
    await attempt_due_deliveries(services)
    (row,) = await list_deliveries(services)
    assert (row["status"], row["attempts"]) == ("delivered", 2)


@pytest.mark.parametrize("change", [{"url": "http://127.0.0.1:9/"}, {"status": "paused"}])
async def test_late_410_does_not_disable_a_changed_endpoint(
    harness: Harness, receiver: WebhookReceiver, change: dict[str, str]
) -> None:
    admin, services = await harness.create_admin("A"), harness.services
    body = {"url": f"{receiver.url}/slow", "events": ["*"]}
    created = (await harness.post(ENDPOINTS_URL, json=body, auth=admin)).json()
    path = f"{ENDPOINTS_URL}/{created['id']}"
    receiver.enqueue_statuses(410)
    await publish_event(services)
    worker = WebhookWorker(services, {})
    await worker.start_due_attempts()

    async def count_received() -> int:
        return len(receiver.received)

    await wait_until_equal(count_received, 1)
    changed = (await harness.put(path, json=change, auth=admin)).json()
    receiver.allow_responses.set()
    await worker.wait_until_idle()
    assert (await harness.get(path, auth=admin)).json() == changed
    (row,) = await list_deliveries(services)
    assert (row["status"], row["last_status"]) == ("pending", 410)


async def test_concurrent_410_responses_disable_the_endpoint_once(
    harness: Harness, receiver: WebhookReceiver
) -> None:
    admin, services = await harness.create_admin("A"), harness.services
    endpoints = [
        (await harness.post(ENDPOINTS_URL, json=body, auth=admin)).json()["id"]
        for body in (
            {"url": f"{receiver.url}/slow", "events": ["card.linked"]},
            {"url": "http://127.0.0.1:9/", "events": ["webhook_endpoint.disabled"]},
        )
    ]
    receiver.enqueue_statuses(*[410] * 4)
    workers = [WebhookWorker(services, {}) for _ in range(2)]
    for worker in workers:
        await publish_event(services)
        await worker.start_due_attempts()

    async def count_received() -> int:
        return len(receiver.received)

    await wait_until_equal(count_received, 2)
    receiver.allow_responses.set()
    for worker in workers:
        await worker.wait_until_idle()
    disabled = await harness.get(f"{ENDPOINTS_URL}/{endpoints[0]}", auth=admin)
    assert disabled.json()["status"] == "disabled"
    entries = await harness.list_audit_entries(endpoints[0], "webhook_endpoint.disabled")
    events = await harness.get(f"{ENDPOINTS_URL}/{endpoints[1]}/deliveries", auth=admin)
    assert (len(entries), len(events.json()["data"])) == (1, 1)


class GoneReceiver(WebhookReceiver):
    """Once `expected` requests are in flight, returns 410 to the first.

    The others wait for `allow_responses` and then get `responses`.
    """

    def __init__(self, expected: int) -> None:
        super().__init__()
        self._expected = expected
        self._all_received = asyncio.Event()

    async def respond(self, request: ReceivedWebhook) -> bytes:
        self.received.append(request)
        is_first = len(self.received) == 1
        if len(self.received) == self._expected:
            self._all_received.set()
        await self._all_received.wait()
        if is_first:
            return b"HTTP/1.1 410 X\r\nContent-Length: 0\r\n\r\n"
        await self.allow_responses.wait()
        return self.responses.pop(0) if self.responses else b"HTTP/1.1 204 X\r\n\r\n"


async def test_deliveries_in_flight_are_cancelled_when_the_endpoint_is_disabled(
    harness: Harness,
) -> None:
    admin, services, receiver = await harness.create_admin("A"), harness.services, GoneReceiver(5)
    async with receiver.listen():
        body = {"url": receiver.url, "events": ["card.linked"]}
        created = (await harness.post(ENDPOINTS_URL, json=body, auth=admin)).json()
        path = f"{ENDPOINTS_URL}/{created['id']}"
        workers = [WebhookWorker(services, {}) for _ in range(2)]
        for worker, count in zip(workers, (3, 2), strict=True):
            for _ in range(count):
                await publish_event(services)
            await worker.start_due_attempts()
        for _ in range(2):  # these wait
            await publish_event(services)

        async def get_status() -> str:
            return str((await harness.get(path, auth=admin)).json()["status"])

        await wait_until_equal(get_status, "disabled")
        receiver.enqueue_statuses(500, 410, 204)
        receiver.responses.append(b"")  # closes the connection
        receiver.allow_responses.set()
        await asyncio.gather(*(worker.wait_until_idle() for worker in workers))
        rows = await list_deliveries(services)
        assert sorted(row["status"] for row in rows[:5]) == [
            "cancelled", "cancelled", "cancelled", "delivered", "failed",
        ]  # fmt: skip
        assert [(row["status"], row["attempts"]) for row in rows[5:]] == [("pending", 0)] * 2
        listed = await harness.get(f"{path}/deliveries?status=cancelled", auth=admin)
        cancelled = listed.json()["data"]
        assert [item["next_attempt_at"] for item in cancelled] == [None] * 3
        assert all(item["last_error"] for item in cancelled)

        await harness.put(path, json={"status": "active"}, auth=admin)
        redelivery = f"{path}/deliveries/{cancelled[0]['id']}/redeliver"
        assert (await harness.post(redelivery, auth=admin)).json()["status"] == "pending"
        await attempt_due_deliveries(services)
        statuses = Counter(row["status"] for row in await list_deliveries(services))
        assert statuses == {"cancelled": 2, "delivered": 4, "failed": 1}


async def test_delivery_in_flight_is_retried_after_a_pause(
    harness: Harness, receiver: WebhookReceiver
) -> None:
    admin, services = await harness.create_admin("A"), harness.services
    body = {"url": f"{receiver.url}/slow", "events": ["*"]}
    created = (await harness.post(ENDPOINTS_URL, json=body, auth=admin)).json()
    path = f"{ENDPOINTS_URL}/{created['id']}"
    receiver.enqueue_statuses(500)
    await publish_event(services)
    worker = WebhookWorker(services, {})
    await worker.start_due_attempts()

    async def count_received() -> int:
        return len(receiver.received)

    await wait_until_equal(count_received, 1)
    await harness.put(path, json={"status": "paused"}, auth=admin)
    receiver.allow_responses.set()
    await worker.wait_until_idle()
    (row,) = await list_deliveries(services)
    assert (row["status"], row["last_status"]) == ("pending", 500)


async def test_concurrent_rotations_and_updates_leave_a_consistent_endpoint_and_audit_log(
    harness: Harness,
) -> None:
    admin = await harness.create_admin("A")
    body = {"url": "https://shop.example.com", "events": ["*"]}
    created = (await harness.post(ENDPOINTS_URL, json=body, auth=admin)).json()
    path = f"{ENDPOINTS_URL}/{created['id']}"

    async def update(status: str) -> httpx2.Response:
        """Repeat an update whose endpoint others have changed since its guard saw it."""
        while True:
            response = await harness.put(path, json={"status": status}, auth=admin)
            if response.status_code != 503:
                return response

    rotations, updates = await asyncio.gather(
        asyncio.gather(
            *(
                harness.post(f"{path}/rotate-secret", json={"grace_seconds": 60}, auth=admin)
                for _ in range(8)
            )
        ),
        asyncio.gather(*(update(status) for status in ("paused", "active") * 4)),
    )
    assert {response.status_code for response in (*rotations, *updates)} == {200}
    secrets = {response.json()["secret"] for response in rotations}
    row = await harness.database.fetchrow("SELECT * FROM webhook_endpoints")
    assert row is not None

    def open_secret(column: str) -> str:
        context = b"webhook endpoint %d" % row["id"]
        return harness.services.vault.open(row[column], context).decode()

    assert len(secrets) == 8
    assert open_secret("secret") != open_secret("previous_secret")
    assert {open_secret("secret"), open_secret("previous_secret")} < secrets
    statuses = [
        entry["changes"]["status"]
        for entry in await harness.list_audit_entries(created["id"], "webhook_endpoint.updated")
    ]
    statuses = [before for before, _ in statuses] + [row["status"]]
    assert all(before != after for before, after in itertools.pairwise(statuses))
