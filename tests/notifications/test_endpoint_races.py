"""Endpoints that change while workers are sending.

Once a change is confirmed, no process sends with the old settings.
"""

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import httpx2
import pytest
from structlog.testing import capture_logs

from gateway.processes import ADMIN, run_gateway
from harness import BearerAuth, Harness
from notifications.builders import (
    ENDPOINTS_URL,
    deliver_due,
    list_deliveries,
    publish_event,
    wait_until_equal,
)
from notifications.webhook_receiver import WebhookReceiver
from tapgate.edge.services import Services
from tapgate.errors import ApiError, Code
from tapgate.notifications import work_queue
from tapgate.notifications.webhooks import delivery_queue
from tapgate.notifications.webhooks.sender import WebhookSender
from tapgate.notifications.webhooks.worker import WebhookWorker
from tapgate.store.signals import Signals

#: Time for a request that is already on the wire to arrive.
NETWORK_DELAY_SECONDS = 0.5


class BlockingResolver:
    """A resolver that holds attempts between the claim and the connection."""

    def __init__(self) -> None:
        self.reached = 0
        self.opened = asyncio.Event()

    async def __call__(self, host: str) -> Sequence[str]:
        self.reached += 1
        await self.opened.wait()
        return ["127.0.0.1"]


class ClaimedDeliveries:
    """An endpoint with claimed deliveries that have not been sent yet."""

    def __init__(self, world: Harness, admin: BearerAuth, receiver: WebhookReceiver) -> None:
        self.harness, self.admin, self.receiver = world, admin, receiver
        self.gate = BlockingResolver()
        self.url = f"http://hook.test:{receiver.port}"
        self.created: dict[str, Any] = {}

    @property
    def path(self) -> str:
        return f"{ENDPOINTS_URL}/{self.created['id']}"

    @property
    def build_sender(self) -> WebhookSender:
        return WebhookSender(public_only=False, resolve=self.gate)

    async def claim_deliveries(self, count: int = 3) -> WebhookWorker:
        body = {"url": f"{self.url}/old", "events": ["*"]}
        answer = await self.harness.client.post(ENDPOINTS_URL, json=body, auth=self.admin)
        self.created = answer.json()
        for _ in range(count):
            await publish_event(self.harness.services)
        work = WebhookWorker(self.harness.services, {}, self.build_sender)
        await work.start_due_attempts()
        await wait_until_equal(self._count_reached, count)
        return work

    async def _count_reached(self) -> int:
        return self.gate.reached

    async def finish_deliveries(self, work: WebhookWorker) -> None:
        self.gate.opened.set()
        await work.wait_until_idle()


@pytest.fixture
async def held(world: Harness, receiver: WebhookReceiver) -> ClaimedDeliveries:
    return ClaimedDeliveries(world, await world.create_admin("A"), receiver)


@pytest.fixture(params=["listening", "not listening"])
def signals(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run with and without the connection that notifies this process of changes."""
    if request.param == "not listening":
        monkeypatch.setattr(Signals, "is_listening", False)


ChangeEndpoint = Callable[[ClaimedDeliveries], Awaitable[Any]]


async def pause_endpoint(held: ClaimedDeliveries) -> Any:
    return await held.harness.client.put(held.path, json={"status": "paused"}, auth=held.admin)


async def delete_endpoint(held: ClaimedDeliveries) -> Any:
    return await held.harness.client.delete(held.path, auth=held.admin)


async def disable_by_410(held: ClaimedDeliveries) -> Any:
    """Another process gets a 410 for another delivery."""
    held.receiver.enqueue_statuses(410)
    await publish_event(held.harness.services)
    gate = BlockingResolver()
    gate.opened.set()
    await deliver_due(held.harness.services, sender=WebhookSender(public_only=False, resolve=gate))
    held.receiver.received.clear()


@pytest.mark.parametrize(
    ("change", "status"),
    [(pause_endpoint, "pending"), (delete_endpoint, "failed"), (disable_by_410, "pending")],
)
@pytest.mark.usefixtures("signals")
async def test_claimed_deliveries_are_not_sent_after_the_endpoint_is_closed(
    held: ClaimedDeliveries, receiver: WebhookReceiver, change: ChangeEndpoint, status: str
) -> None:
    work = await held.claim_deliveries()
    claimed = {row["id"] for row in await list_deliveries(held.harness.services)}
    await change(held)
    await held.finish_deliveries(work)
    assert receiver.received == []
    rows = [row for row in await list_deliveries(held.harness.services) if row["id"] in claimed]
    assert {row["status"] for row in rows} == {status}
    if status == "pending":
        assert {row["attempts"] for row in rows} == {0}
        await held.harness.client.put(held.path, json={"status": "active"}, auth=held.admin)
        await deliver_due(held.harness.services, sender=held.build_sender)
        assert len(receiver.received) == len(claimed)


@pytest.mark.usefixtures("signals")
async def test_claimed_deliveries_are_signed_with_the_new_secret(
    held: ClaimedDeliveries, receiver: WebhookReceiver
) -> None:
    work = await held.claim_deliveries()
    answer = await held.harness.client.post(f"{held.path}/rotate-secret", auth=held.admin)
    await held.finish_deliveries(work)
    await deliver_due(held.harness.services, sender=held.build_sender)
    assert len(receiver.received) == 3
    assert all(one.is_signed_with(answer.json()["secret"]) for one in receiver.received)
    assert not any(one.is_signed_with(held.created["secret"]) for one in receiver.received)


@pytest.mark.usefixtures("signals")
async def test_claimed_deliveries_go_to_the_new_url(
    held: ClaimedDeliveries, receiver: WebhookReceiver
) -> None:
    work = await held.claim_deliveries()
    await held.harness.client.put(held.path, json={"url": f"{held.url}/new"}, auth=held.admin)
    await held.finish_deliveries(work)
    await deliver_due(held.harness.services, sender=held.build_sender)
    assert [one.path for one in receiver.received] == ["/new"] * 3


async def test_claim_that_cannot_be_released_expires(
    held: ClaimedDeliveries,
    world: Harness,
    receiver: WebhookReceiver,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def lost(*_: object) -> None:
        raise ApiError(Code.SERVICE_UNAVAILABLE)

    work = await held.claim_deliveries(count=1)
    await pause_endpoint(held)
    with monkeypatch.context() as patch, capture_logs() as lines:
        patch.setattr(delivery_queue, "release", lost)
        await held.finish_deliveries(work)
    assert [line["event"] for line in lines] == ["webhooks.attempt_not_recorded"]
    await world.client.put(held.path, json={"status": "active"}, auth=held.admin)
    world.advance_clock(seconds=work_queue.LEASE_DURATION.total_seconds())
    await deliver_due(world.services, sender=held.build_sender)
    assert len(receiver.received) == 1


@pytest.mark.parametrize(("status", "endpoint_status"), [(500, "active"), (410, "disabled")])
async def test_redelivery_during_a_failing_attempt_stays_due_and_the_attempt_is_logged(
    world: Harness, receiver: WebhookReceiver, status: int, endpoint_status: str
) -> None:
    admin, services = await world.create_admin("A"), world.services
    body = {"url": f"{receiver.url}/slow", "events": ["*"]}
    created = (await world.client.post(ENDPOINTS_URL, json=body, auth=admin)).json()
    path = f"{ENDPOINTS_URL}/{created['id']}"
    receiver.enqueue_statuses(status)
    await publish_event(services)
    work = WebhookWorker(services, {})
    await work.start_due_attempts()

    async def received() -> int:
        return len(receiver.received)

    await wait_until_equal(received, 1)
    (listed,) = (await world.client.get(f"{path}/deliveries", auth=admin)).json()["data"]
    again = f"{path}/deliveries/{listed['id']}/redeliver"
    assert (await world.client.post(again, auth=admin)).status_code == 200
    receiver.release_slow.set()
    await work.wait_until_idle()
    (row,) = await list_deliveries(services)
    assert (row["status"], row["last_status"]) == ("pending", status)
    assert row["next_attempt_at"] <= services.clock()
    assert (await world.client.get(path, auth=admin)).json()["status"] == endpoint_status

    receiver.enqueue_statuses(204)
    await world.client.put(path, json={"status": "active"}, auth=admin)
    await deliver_due(services)
    (row,) = await list_deliveries(services)
    assert (row["status"], row["attempts"]) == ("delivered", 2)


@pytest.mark.parametrize("change", [{"url": "http://127.0.0.1:9/"}, {"status": "paused"}])
async def test_late_410_does_not_disable_a_changed_endpoint(
    world: Harness, receiver: WebhookReceiver, change: dict[str, str]
) -> None:
    admin, services = await world.create_admin("A"), world.services
    body = {"url": f"{receiver.url}/slow", "events": ["*"]}
    created = (await world.client.post(ENDPOINTS_URL, json=body, auth=admin)).json()
    path = f"{ENDPOINTS_URL}/{created['id']}"
    receiver.enqueue_statuses(410)
    await publish_event(services)
    work = WebhookWorker(services, {})
    await work.start_due_attempts()

    async def received() -> int:
        return len(receiver.received)

    await wait_until_equal(received, 1)
    changed = (await world.client.put(path, json=change, auth=admin)).json()
    receiver.release_slow.set()
    await work.wait_until_idle()
    assert (await world.client.get(path, auth=admin)).json() == changed
    (row,) = await list_deliveries(services)
    assert (row["status"], row["last_status"]) == ("pending", 410)


async def test_concurrent_changes_are_all_audited_and_leave_a_consistent_state(
    world: Harness, services: Services
) -> None:
    admin = await world.create_admin("A")
    body = {"url": "https://shop.example.com", "events": ["*"]}
    created = (await world.client.post(ENDPOINTS_URL, json=body, auth=admin)).json()
    path = f"{ENDPOINTS_URL}/{created['id']}"
    rotations, updates = await asyncio.gather(
        asyncio.gather(
            *(
                world.client.post(f"{path}/rotate-secret", json={"grace_seconds": 60}, auth=admin)
                for _ in range(8)
            )
        ),
        asyncio.gather(
            *(
                world.client.put(path, json={"status": status}, auth=admin)
                for status in ("paused", "active") * 4
            )
        ),
    )
    assert {answer.status_code for answer in (*rotations, *updates)} == {200}
    secrets = {answer.json()["secret"] for answer in rotations}
    row = await services.database.fetchrow("SELECT * FROM webhook_endpoints")
    assert row is not None

    def unsealed(column: str) -> str:
        context = b"webhook endpoint %d" % row["id"]
        return services.vault.open(row[column], context).decode()

    assert len(secrets) == 8
    assert unsealed("secret") != unsealed("previous_secret")
    assert {unsealed("secret"), unsealed("previous_secret")} < secrets
    states = [
        entry["changes"]["status"]
        for entry in await world.list_audit_entries(created["id"], "webhook_endpoint.updated")
    ]
    states = [before for before, _ in states] + [row["status"]]
    assert all(one != other for one, other in itertools.pairwise(states))


class RunningEndpoint:
    """Several gateway processes, an endpoint, and a continuous stream of events."""

    def __init__(
        self, client: httpx2.AsyncClient, services: Services, receiver: WebhookReceiver
    ) -> None:
        self.client, self.services, self.receiver = client, services, receiver
        self.path = ""
        self.secret = ""

    async def create_endpoint(self, url: str, *events: str) -> dict[str, Any]:
        answer = await self.client.post(ENDPOINTS_URL, json={"url": url, "events": list(events)})
        assert answer.status_code == 201, answer.text
        created: dict[str, Any] = answer.json()
        return created

    async def set_status(self, status: str) -> None:
        answer = await self.client.put(self.path, json={"status": status})
        assert answer.status_code == 200, answer.text

    async def publish_event(self) -> None:
        while True:
            await asyncio.gather(*(publish_event(self.services) for _ in range(5)))
            await asyncio.sleep(0.1)

    async def wait_for_deliveries(self, more: int) -> None:
        wanted = len(self.receiver.received) + more

        async def enough() -> bool:
            return len(self.receiver.received) >= wanted

        await wait_until_equal(enough, True)

    async def require_no_deliveries(self) -> None:
        await asyncio.sleep(NETWORK_DELAY_SECONDS)
        received = len(self.receiver.received)
        await asyncio.sleep(3 * NETWORK_DELAY_SECONDS)  # several polls of every process
        assert len(self.receiver.received) == received


async def log_in(client: httpx2.AsyncClient) -> None:
    login = await client.post("/api/v1/admin/login", json=ADMIN)
    client.headers["Authorization"] = f"Bearer {login.json()['token']}"


async def test_all_processes_apply_pause_resume_rotation_and_deletion(
    folder: Path, services: Services, database_url: str, receiver: WebhookReceiver
) -> None:
    async with (
        run_gateway(folder, database_url, workers=3) as address,
        httpx2.AsyncClient(base_url=address, trust_env=False, timeout=30) as client,
    ):
        await log_in(client)
        running = RunningEndpoint(client, services, receiver)
        created = await running.create_endpoint(receiver.url, "card.linked")
        running.path = f"{ENDPOINTS_URL}/{created['id']}"
        publishing = asyncio.create_task(running.publish_event())
        try:
            for _ in range(2):
                await running.wait_for_deliveries(20)
                await running.set_status("paused")
                await running.require_no_deliveries()
                await running.set_status("active")
                await running.wait_for_deliveries(20)
                rotated = await client.post(f"{running.path}/rotate-secret")
                await asyncio.sleep(NETWORK_DELAY_SECONDS)
                start = len(receiver.received)
                await running.wait_for_deliveries(20)
                secret = rotated.json()["secret"]
                assert all(one.is_signed_with(secret) for one in receiver.received[start:])
            assert (await client.delete(running.path)).status_code == 204
            await running.require_no_deliveries()
        finally:
            publishing.cancel()
            await asyncio.wait([publishing])
        numbers = [one.id for one in receiver.received]
        assert len(set(numbers)) == len(numbers), "sent twice"


async def test_410_in_several_processes_disables_the_endpoint_once(
    folder: Path, services: Services, database_url: str, receiver: WebhookReceiver
) -> None:
    async with (
        run_gateway(folder, database_url, workers=3) as address,
        httpx2.AsyncClient(base_url=address, trust_env=False, timeout=30) as client,
    ):
        await log_in(client)
        running = RunningEndpoint(client, services, receiver)
        created = await running.create_endpoint(f"{receiver.url}/slow", "card.linked")
        watch = await running.create_endpoint(
            "http://127.0.0.1:9/watch", "webhook_endpoint.disabled"
        )
        receiver.enqueue_statuses(*[410] * 1000)
        await asyncio.gather(*(publish_event(services) for _ in range(60)))
        await running.wait_for_deliveries(20)
        receiver.release_slow.set()
        running.path = f"{ENDPOINTS_URL}/{created['id']}"

        async def status() -> str:
            return str((await client.get(running.path)).json()["status"])

        await wait_until_equal(status, "disabled")
        await running.require_no_deliveries()
        announced = await client.get(f"{ENDPOINTS_URL}/{watch['id']}/deliveries")
        assert len(announced.json()["data"]) == 1
        logged = {"resource_id": created["id"], "event": "webhook_endpoint.disabled"}
        entries = (await client.get("/api/v1/audit/logs", params=logged)).json()["data"]
        assert len(entries) == 1
