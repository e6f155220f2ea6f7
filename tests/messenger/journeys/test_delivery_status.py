"""Delivery status reports, from the provider's webhook to the support view."""

import asyncio
import json
from typing import Any

import httpx2

from builders.auth import FakeClock
from drivers.in_process import AppTransport
from drivers.messenger import WEBHOOK_PATH, MessengerDriver, ServicesDriver
from tapgate.events.notifications.notification_messages import SERVICE_NAME
from tapgate.messenger.outbox import leases
from tapgate.messenger.outbox.status_reporter import StatusReporter
from tapgate.runtime.store.work_queue import LEASE_DURATION
from tapgate.server.gateway import create_app
from tapgate_client import NO_RETRIES, AsyncTapgateClient, ServiceSecret


async def send_code(
    services_driver: ServicesDriver,
    messenger: MessengerDriver,
    record: dict[str, Any],
    channel_id: str = "wamid.code",
) -> None:
    """Request a code, pass it to the messenger as the gateway does, and mark it as sent."""
    harness = services_driver.harness
    url = f"/api/v1/subscribers/{record['id']}/reset-pin"
    assert (await harness.post(url, auth=harness.get_service_auth())).status_code == 200
    message_id = (await get_message(services_driver, record))["message_id"]
    response = await messenger.client.post(
        "/api/v1/messages/template",
        json={"to": record["phone_number"], "template": "one_time_code", "parameters": ["1"]},
        headers={"Idempotency-Key": message_id},
        auth=harness.get_service_auth(SERVICE_NAME),
    )
    assert response.status_code == 202
    services = messenger.services
    (leased,) = await leases.lease(services.database, now=services.clock(), limit=1)
    await leases.complete(
        services.database, leased, [channel_id], services.clock(), keep_content=False
    )


async def get_message(services_driver: ServicesDriver, record: dict[str, Any]) -> dict[str, Any]:
    response = await services_driver.gateway.get(
        f"/api/v1/subscribers/{record['id']}/messages",
        auth=await services_driver.harness.create_admin("S"),
    )
    found: dict[str, Any] = response.json()["data"][0]
    return found


async def wait_for_status(
    services_driver: ServicesDriver, record: dict[str, Any], status: str
) -> dict[str, Any]:
    async with asyncio.timeout(30):
        while (found := await get_message(services_driver, record))["status"] != status:
            await asyncio.sleep(0.05)
    return found


async def deliver_status(messenger: MessengerDriver, status: str, **fields: Any) -> None:
    report = {"id": "wamid.code", "status": status, "timestamp": "1749416383", **fields}
    body = {"entry": [{"changes": [{"field": "messages", "value": {"statuses": [report]}}]}]}
    response = await messenger.client.post(WEBHOOK_PATH, content=json.dumps(body))
    assert response.status_code == 200


async def test_support_users_see_the_delivery_status_of_a_code(
    services_driver: ServicesDriver, messenger: MessengerDriver
) -> None:
    record = await services_driver.harness.create_subscriber()
    await send_code(services_driver, messenger, record)
    await wait_for_status(services_driver, record, "sent")
    await deliver_status(messenger, "failed", errors=[{"code": 131026, "title": "Undeliverable"}])
    assert (await wait_for_status(services_driver, record, "failed"))["error_code"] == "131026"
    await deliver_status(messenger, "sent")
    await deliver_status(messenger, "delivered")
    assert (await wait_for_status(services_driver, record, "delivered"))["error_code"] is None
    stored = await messenger.services.database.fetchval("SELECT count(*) FROM messenger.received")
    assert stored == 0


async def test_status_report_is_retried_until_the_gateway_accepts_it(
    services_driver: ServicesDriver, messenger: MessengerDriver
) -> None:
    record = await services_driver.harness.create_subscriber()
    clock = FakeClock()
    clock.now = messenger.services.clock()
    unavailable = httpx2.MockTransport(lambda _: httpx2.Response(503))
    available = AppTransport(create_app(services_driver.harness.services))
    secret = ServiceSecret(
        "messenger", services_driver.harness.services.settings.service_secrets["messenger"]
    )
    await send_code(services_driver, messenger, record)
    await wait_for_status(
        services_driver, record, "sent"
    )  # reported by the messenger's own reporter, which the updates below keep idle
    database = services_driver.harness.database
    await database.execute("UPDATE messages SET delivery = NULL")
    await database.execute(
        "UPDATE messenger.outbox SET report_at = $1", clock() + LEASE_DURATION * 100
    )
    clock.now += LEASE_DURATION * 100
    for transport, status in ((unavailable, "queued"), (available, "queued")):
        async with AsyncTapgateClient(
            "http://gateway", secret, retries=NO_RETRIES, http=transport
        ) as gateway:
            await StatusReporter(database, gateway, clock).report_due()
        assert (await get_message(services_driver, record))["status"] == status
    clock.now += LEASE_DURATION
    async with AsyncTapgateClient("http://gateway", secret, http=available) as gateway:
        await StatusReporter(database, gateway, clock).report_due()
    assert (await get_message(services_driver, record))["status"] == "sent"
    assert await database.fetchval("SELECT report_at FROM messenger.outbox") is None


async def test_rejected_status_report_does_not_block_other_reports(
    services_driver: ServicesDriver, messenger: MessengerDriver
) -> None:
    rejected = await services_driver.harness.create_subscriber()
    accepted = await services_driver.harness.create_subscriber()
    clock = FakeClock()
    clock.now = messenger.services.clock() + LEASE_DURATION * 100
    secret = ServiceSecret(
        "messenger", services_driver.harness.services.settings.service_secrets["messenger"]
    )
    for record, channel_id in ((rejected, "wamid.bad"), (accepted, "wamid.good")):
        await send_code(services_driver, messenger, record, channel_id)
        await wait_for_status(services_driver, record, "sent")
    database = services_driver.harness.database
    await database.execute("UPDATE messages SET delivery = NULL")
    await database.execute(
        """UPDATE messenger.statuses SET status = 'failed', error_code = ' '
           WHERE channel_message_id = 'wamid.bad'"""
    )
    await database.execute("UPDATE messenger.outbox SET report_at = $1", clock())
    transport = AppTransport(create_app(services_driver.harness.services))
    async with AsyncTapgateClient("http://gateway", secret, http=transport) as gateway:
        await StatusReporter(database, gateway, clock).report_due()
    assert (await get_message(services_driver, accepted))["status"] == "sent"
    assert (await get_message(services_driver, rejected))["status"] == "queued"
    assert set(await database.fetch("SELECT report_at FROM messenger.outbox")) == {(None,)}
