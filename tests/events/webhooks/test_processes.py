"""Delivery by real gateway processes: once, or again if the sending process is killed."""

import asyncio
from pathlib import Path
from typing import Any

import httpx2
import psutil

from drivers.processes import ADMIN, list_workers, run_gateway
from drivers.webhooks import WebhookReceiver, publish_event, wait_until_equal
from tapgate.http.api.services import Services

ENDPOINTS_URL = "/api/v1/admin/webhook-endpoints"


async def create_endpoint(client: httpx2.AsyncClient, url: str) -> dict[str, Any]:
    login = await client.post("/api/v1/admin/login", json=ADMIN)
    client.headers["Authorization"] = f"Bearer {login.json()['token']}"
    response = await client.post(ENDPOINTS_URL, json={"url": url, "events": ["card.linked"]})
    assert response.status_code == 201, response.text
    created: dict[str, Any] = response.json()
    return created


async def test_deliveries_are_sent_after_all_workers_were_killed(
    public_tmp_path: Path, services: Services, database_url: str, receiver: WebhookReceiver
) -> None:
    async def count_received() -> int:
        return len(receiver.received)

    async def list_statuses() -> set[str]:
        rows = await services.database.fetch("SELECT DISTINCT status FROM deliveries")
        return {row["status"] for row in rows}

    async with (
        run_gateway(public_tmp_path, database_url, workers=2) as address,
        httpx2.AsyncClient(base_url=address, trust_env=False, timeout=30) as client,
    ):
        created = await create_endpoint(client, f"{receiver.url}/slow")
        await publish_event(services)
        await wait_until_equal(count_received, 1)
        workers = list_workers(address)
        assert len(workers) == 2
        for worker in workers:
            worker.kill()
        await asyncio.to_thread(psutil.wait_procs, workers)
        receiver.allow_responses.set()
        # Expire the lease.
        await services.database.execute("UPDATE deliveries SET next_attempt_at = now()")
        await wait_until_equal(count_received, 2)
        for _ in range(30):
            await publish_event(services)
        await wait_until_equal(list_statuses, {"delivered"})
        assert await count_received() == 32
        webhook_ids = [webhook.id for webhook in receiver.received]
        assert webhook_ids[0] == webhook_ids[1]
        assert len(set(webhook_ids)) == 31
        assert all(webhook.is_signed_with(created["secret"]) for webhook in receiver.received)
