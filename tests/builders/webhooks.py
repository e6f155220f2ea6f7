"""Helpers for webhook tests: a fake clock, endpoints, events and their deliveries."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import asyncpg
import msgspec

from tapgate import ids, signing
from tapgate.api.services import Services
from tapgate.notifications.events import publish
from tapgate.webhooks import model
from tapgate.webhooks.sender import WebhookSender
from tapgate.webhooks.worker import WebhookWorker

ENDPOINTS_URL = "/api/v1/admin/webhook-endpoints"


class CardRecord(msgspec.Struct):
    serial: str = "TAP-000001"
    status: str = "ACTIVE"
    holder_name: str | None = "Amïnata"


class TransactionRecord(msgspec.Struct):
    id: str
    status: str = "completed"
    amount: str = "10.00"
    refunded_amount: str = "0.00"
    currency: str = "SLE"
    failure_code: str | None = None
    completed_at: str | None = "2026-01-31T12:00:00.000Z"


async def create_endpoint(services: Services, url: str, *events: str) -> tuple[int, str]:
    """Insert an endpoint directly into the database and return its id and secret."""
    endpoint_id, secret = services.new_id(), signing.new_standard_secret()
    await services.database.execute(
        """INSERT INTO webhook_endpoints (id, url, events, secret, created_at, status_changed_at)
           VALUES ($1, $2, $3, $4, $5, $5)""",
        endpoint_id,
        url,
        list(events or ("*",)),
        services.vault.seal(secret.encode(), model.build_secret_context(endpoint_id)),
        services.clock(),
    )
    return endpoint_id, secret


async def publish_event(services: Services, event: str = "card.linked") -> None:
    async with services.transaction() as tx:
        await publish(tx, event, CardRecord())


async def publish_ledger_event(services: Services, event: str, subject_id: int) -> None:
    """Insert an event as the ledger does: with a subject ID instead of data."""
    await services.database.execute(
        """WITH event AS (
               INSERT INTO events (id, type, subject_id, occurred_at) VALUES ($1, $2, $3, $4)
               RETURNING id)
           INSERT INTO deliveries (event_id, endpoint_id, next_attempt_at, created_at)
           SELECT event.id, webhook_endpoints.id, $4, $4 FROM event, webhook_endpoints""",
        services.new_id(),
        event,
        subject_id,
        services.clock(),
    )


async def attempt_due_deliveries(
    services: Services, records: Any = None, sender: WebhookSender | None = None
) -> None:
    """Start all due attempts that a new worker may run concurrently, and wait for them."""
    worker = WebhookWorker(services, records or {}, sender)
    await worker.start_due_attempts()
    await worker.wait_until_idle()


async def list_deliveries(services: Services) -> list[asyncpg.Record]:
    return await services.database.fetch("SELECT * FROM deliveries ORDER BY id")


async def get_only_delivery(services: Services) -> asyncpg.Record:
    (row,) = await list_deliveries(services)
    return row


async def wait_until_equal(read: Callable[[], Awaitable[Any]], expected: object) -> None:
    async with asyncio.timeout(60):
        while await read() != expected:
            await asyncio.sleep(0.01)


def encode_delivery_id(row: asyncpg.Record) -> str:
    return ids.encode(ids.DELIVERY, row["id"])
