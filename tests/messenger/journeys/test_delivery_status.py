"""The provider's reports, from the webhook to what support staff see."""

import asyncio
import json
from typing import Any

import httpx2

from messenger.journeys.phone import WEBHOOK
from messenger.journeys.town import Messenger, Town
from messenger.set_clock import SetClock
from tapgate.client import NO_RETRIES, AsyncTapgateClient, ServiceSecret
from tapgate.gateway import create_app
from tapgate.messenger.outbox import claims
from tapgate.messenger.outbox.status_reporter import LEASE_DURATION, StatusReporter
from tapgate.notifications.messages import SERVICE_NAME


async def code_to(
    town: Town, messenger: Messenger, record: dict[str, Any], channel_id: str = "wamid.code"
) -> None:
    """The gateway sends a code, the messenger takes it, and the provider accepts it."""
    world = town.world
    url = f"/api/v1/subscribers/{record['id']}/reset-pin"
    assert (await world.client.post(url, auth=world.service())).status_code == 200
    message_id = (await shown(town, record))["message_id"]
    answer = await messenger.client.post(
        "/api/v1/messages/template",
        json={"to": record["phone_number"], "template": "one_time_code", "parameters": ["1"]},
        headers={"Idempotency-Key": message_id},
        auth=world.service(SERVICE_NAME),
    )
    assert answer.status_code == 202
    services = messenger.services
    (claim,) = await claims.claim(services.database, now=services.clock(), limit=1)
    await claims.complete(services.database, claim, [channel_id], services.clock(), keep=False)


async def shown(town: Town, record: dict[str, Any]) -> dict[str, Any]:
    answer = await town.gateway.get(
        f"/api/v1/subscribers/{record['id']}/messages", auth=await town.world.admin("S")
    )
    found: dict[str, Any] = answer.json()["data"][0]
    return found


async def until(town: Town, record: dict[str, Any], status: str) -> dict[str, Any]:
    async with asyncio.timeout(30):
        while (found := await shown(town, record))["status"] != status:
            await asyncio.sleep(0.05)
    return found


async def deliver(messenger: Messenger, status: str, **fields: Any) -> None:
    report = {"id": "wamid.code", "status": status, "timestamp": "1749416383", **fields}
    body = {"entry": [{"changes": [{"field": "messages", "value": {"statuses": [report]}}]}]}
    answer = await messenger.client.post(WEBHOOK, content=json.dumps(body))
    assert answer.status_code == 200


async def test_a_failed_code_is_visible_to_support_staff(town: Town, messenger: Messenger) -> None:
    record = await town.world.subscriber()
    await code_to(town, messenger, record)
    await until(town, record, "sent")
    await deliver(messenger, "failed", errors=[{"code": 131026, "title": "Undeliverable"}])
    assert (await until(town, record, "failed"))["error_code"] == "131026"
    await deliver(messenger, "sent")
    await deliver(messenger, "delivered")
    assert (await until(town, record, "delivered"))["error_code"] is None
    assert (
        await messenger.services.database.fetchval("SELECT count(*) FROM messenger.received") == 0
    )


async def test_a_report_is_repeated_until_the_gateway_has_it(
    town: Town, messenger: Messenger
) -> None:
    record = await town.world.subscriber()
    clock = SetClock()
    clock.now = messenger.services.clock()
    away = httpx2.MockTransport(lambda _: httpx2.Response(503))
    here = httpx2.ASGITransport(create_app(town.world.services))
    secret = ServiceSecret("messenger", town.world.services.settings.service_secrets["messenger"])
    await code_to(town, messenger, record)
    await until(town, record, "sent")  # by the messenger's own reporter, which is stopped then
    database = town.world.services.database
    await database.execute("UPDATE messages SET delivery = NULL")
    await database.execute(
        "UPDATE messenger.outbox SET report_at = $1", clock() + LEASE_DURATION * 100
    )
    clock.now += LEASE_DURATION * 100
    for transport, status in ((away, "queued"), (here, "queued")):
        async with AsyncTapgateClient(
            "http://gateway", secret, retries=NO_RETRIES, http=transport
        ) as gateway:
            await StatusReporter(database, gateway, clock).report_due()
        assert (await shown(town, record))["status"] == status
    clock.now += LEASE_DURATION
    async with AsyncTapgateClient("http://gateway", secret, http=here) as gateway:
        await StatusReporter(database, gateway, clock).report_due()
    assert (await shown(town, record))["status"] == "sent"
    assert await database.fetchval("SELECT report_at FROM messenger.outbox") is None


async def test_a_refused_report_does_not_hold_up_the_others(
    town: Town, messenger: Messenger
) -> None:
    bad, good = await town.world.subscriber(), await town.world.subscriber()
    clock = SetClock()
    clock.now = messenger.services.clock() + LEASE_DURATION * 100
    secret = ServiceSecret("messenger", town.world.services.settings.service_secrets["messenger"])
    for record, channel_id in ((bad, "wamid.bad"), (good, "wamid.good")):
        await code_to(town, messenger, record, channel_id)
        await until(town, record, "sent")
    database = town.world.services.database
    await database.execute("UPDATE messages SET delivery = NULL")
    await database.execute(
        """UPDATE messenger.statuses SET status = 'failed', error_code = ' '
           WHERE channel_message_id = 'wamid.bad'"""
    )
    await database.execute("UPDATE messenger.outbox SET report_at = $1", clock())
    here = httpx2.ASGITransport(create_app(town.world.services))
    async with AsyncTapgateClient("http://gateway", secret, http=here) as gateway:
        await StatusReporter(database, gateway, clock).report_due()
    assert (await shown(town, good))["status"] == "sent"
    assert (await shown(town, bad))["status"] == "queued"
    assert set(await database.fetch("SELECT report_at FROM messenger.outbox")) == {(None,)}
