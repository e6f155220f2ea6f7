"""What can happen to webhook endpoints: each change with its audit entry, in one transaction."""

import asyncio
from urllib.parse import urlsplit

import asyncpg

from tapgate import ids, signing
from tapgate.audit.trail import Changes, Trail
from tapgate.edge.call import Call
from tapgate.errors import invalid_field
from tapgate.ledger import rules
from tapgate.notifications.webhooks import model, outbox, queries
from tapgate.notifications.webhooks.model import CreatedEndpoint, NewEndpoint
from tapgate.notifications.webhooks.targets import (
    RefusedError,
    require_public,
    resolve_by_system,
)

_of_endpoints = Trail("webhook_endpoint")
_of_deliveries = Trail("webhook_delivery")

_LOOK_UP_SECONDS = 2.0


async def create(call: Call, new: NewEndpoint) -> CreatedEndpoint:
    services = call.services
    if services.settings.production:
        await _require_public(new.url)
    endpoint_id, secret = services.new_id(), signing.new_standard_secret()
    async with services.database.transaction() as tx:
        row = await queries.insert(
            tx,
            endpoint_id=endpoint_id,
            url=new.url,
            events=list(dict.fromkeys(new.events)),
            secret=services.vault.seal(secret.encode(), model.secret_context(endpoint_id)),
            now=services.clock(),
        )
        await _record(
            tx,
            call,
            endpoint_id,
            "created",
            {"url": (None, _without_query(row["url"])), "events": (None, row["events"])},
        )
        ticket = await services.signals.publish(tx, rules.CHANGED, "")
    # What happens from now on is told, whichever process it happens in.
    await services.signals.settled(ticket)
    return model.created_endpoint(row, secret)


async def delete(call: Call, endpoint_id: int) -> None:
    services = call.services
    async with services.database.transaction() as tx:
        now = services.clock()
        row = await queries.delete(tx, endpoint_id, now)
        await outbox.end_for_deleted_endpoints(tx, now)
        await _record(
            tx,
            call,
            endpoint_id,
            "deleted",
            {"url": (_without_query(row["url"]), None), "events": (row["events"], None)},
        )
        ticket = await services.signals.publish(tx, rules.CHANGED, "")
    await services.signals.settled(ticket)


async def send_test(call: Call, endpoint_id: int) -> asyncpg.Record:
    """An event for one endpoint alone, to see whether and how it takes one."""
    services = call.services
    async with services.database.transaction() as tx:
        await queries.one(tx, endpoint_id)
        row = await queries.insert_event_for(
            tx,
            endpoint_id,
            event_id=services.new_id(),
            event=model.TEST,
            data={"webhook_endpoint_id": ids.show(ids.WEBHOOK_ENDPOINT, endpoint_id)},
            now=services.clock(),
        )
        await _record(tx, call, endpoint_id, "tested", {})
    return row


async def redeliver(call: Call, endpoint_id: int, delivery_id: int) -> asyncpg.Record:
    """Sent again at once, under the same id; if that fails, as patiently as the first time."""
    services = call.services
    async with services.database.transaction() as tx:
        await queries.one(tx, endpoint_id)
        before = await queries.lock_delivery(tx, endpoint_id, delivery_id)
        row = await queries.make_due(tx, delivery_id, services.clock())
        await _of_deliveries.record(
            tx,
            call,
            ids.show(ids.DELIVERY, delivery_id),
            "redelivered",
            changes={"status": (before["status"], row["status"])},
        )
    return row


async def _require_public(url: str) -> None:
    """A name that nobody knows yet is taken: it is looked up again whenever something is sent."""
    try:
        async with asyncio.timeout(_LOOK_UP_SECONDS):
            await require_public(url, resolve_by_system)
    except RefusedError as refusal:
        raise invalid_field("url", str(refusal)) from None
    except OSError:  # a timeout is one of these too
        return


async def _record(
    tx: asyncpg.Connection, call: Call, endpoint_id: int, action: str, changes: Changes
) -> None:
    await _of_endpoints.record(
        tx,
        call,
        ids.show(ids.WEBHOOK_ENDPOINT, endpoint_id),
        action,
        changes=changes,
    )


def _without_query(url: str) -> str:
    """A query may hold a password of the receiver's, which is nothing for a log."""
    return urlsplit(url)._replace(query="", fragment="").geturl()
