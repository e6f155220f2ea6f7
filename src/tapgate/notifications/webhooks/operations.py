"""Operations on webhook endpoints: each change with its audit entry, in one transaction."""

import asyncio
from datetime import datetime, timedelta

import asyncpg

from tapgate import ids, signing
from tapgate.audit.changes import diff_records
from tapgate.audit.trail import AuditTrail, Changes, record
from tapgate.edge.origin import SYSTEM_ORIGIN
from tapgate.edge.request_context import RequestContext
from tapgate.edge.services import Services
from tapgate.errors import invalid_field
from tapgate.ledger import rules
from tapgate.notifications.events import ENDPOINT_DISABLED, publish
from tapgate.notifications.webhooks import model, outbox, queries
from tapgate.notifications.webhooks.model import (
    Due,
    NewWebhookEndpoint,
    StatusReason,
    WebhookEndpointRecord,
    WebhookEndpointUpdate,
    WebhookEndpointWithSecret,
)
from tapgate.notifications.webhooks.targets import (
    RefusedError,
    require_public,
    resolve_by_system,
)
from tapgate.store.signals import Ticket

#: Signal: an endpoint's URL, secret or status changed, or it was deleted.
CHANGED = "webhook_endpoints"

_RESOURCE = "webhook_endpoint"
_of_endpoints = AuditTrail(_RESOURCE)
_of_deliveries = AuditTrail("webhook_delivery")

_LOOK_UP_SECONDS = 2.0


async def create(call: RequestContext, new: NewWebhookEndpoint) -> WebhookEndpointWithSecret:
    services = call.services
    if services.settings.is_production:
        await _require_public(new.url)
    endpoint_id, secret = services.new_id(), signing.new_standard_secret()
    async with services.database.transaction() as tx:
        row = await queries.insert(
            tx,
            endpoint_id=endpoint_id,
            url=new.url,
            events=_without_repeats(new.events),
            secret=_seal(services, endpoint_id, secret),
            now=services.clock(),
        )
        await _record(
            tx,
            call,
            endpoint_id,
            "created",
            {"url": (None, model.without_query(row["url"])), "events": (None, row["events"])},
        )
        ticket = await _announce(tx, services)
    # Every process publishes to the new endpoint before the response is sent.
    await services.signals.wait_for_acks(ticket)
    return model.endpoint_with_secret(row, secret)


async def update(
    call: RequestContext, endpoint_id: int, update: WebhookEndpointUpdate
) -> WebhookEndpointRecord:
    """Return once every process sends by the new settings."""
    services = call.services
    if update.url is not None and services.settings.is_production:
        await _require_public(update.url)
    async with services.database.transaction() as tx:
        before = await queries.lock(tx, endpoint_id)
        url = before["url"] if update.url is None else update.url
        events = before["events"] if update.events is None else _without_repeats(update.events)
        status = before["status"] if update.status is None else update.status
        if (url, events, status) == (before["url"], before["events"], before["status"]):
            return model.endpoint(before)
        reason = StatusReason.PAUSED if status == model.Status.PAUSED else None
        after = await queries.save(
            tx,
            endpoint_id,
            url=url,
            events=events,
            status=status,
            reason=before["status_reason"] if status == before["status"] else reason,
            now=services.clock(),
        )
        changes = diff_records(
            model.endpoint_without_query(before), model.endpoint_without_query(after)
        )
        await _record(tx, call, endpoint_id, "updated", changes)
        ticket = await _announce(tx, services)
    await services.signals.wait_for_acks(ticket)
    return model.endpoint(after)


async def rotate_secret(
    call: RequestContext, endpoint_id: int, grace_seconds: int
) -> WebhookEndpointWithSecret:
    """Replace the secret. The old one signs too until the grace ends; an older one ends now."""
    services = call.services
    secret, now = signing.new_standard_secret(), services.clock()
    async with services.database.transaction() as tx:
        row = await queries.rotate_secret(
            tx,
            endpoint_id,
            secret=_seal(services, endpoint_id, secret),
            previous_expires_at=_end_of_grace(now, grace_seconds),
        )
        changes = {"grace_seconds": (None, grace_seconds)}
        await _record(tx, call, endpoint_id, "secret_rotated", changes)
        ticket = await services.signals.publish(tx, CHANGED, "")
    await services.signals.wait_for_acks(ticket)
    return model.endpoint_with_secret(row, secret)


async def disable(
    services: Services,
    due: Due,
    reason: StatusReason,
    *,
    if_failing_since: datetime | None = None,
) -> bool:
    """Disable the endpoint of a failed attempt, unless it has changed since the attempt."""
    async with services.database.transaction() as tx:
        row = await outbox.disable(
            tx, due, reason, services.clock(), if_failing_since=if_failing_since
        )
        if row is None:
            return False
        disabled = model.disabled_endpoint(row)
        await record(
            tx,
            services,
            SYSTEM_ORIGIN,
            event=f"{_RESOURCE}.disabled",
            resource_type=_RESOURCE,
            resource_id=disabled.id,
            reason=reason,
            changes={"status": (model.Status.ACTIVE, disabled.status)},
        )
        await publish(tx, services, ENDPOINT_DISABLED, disabled)
        ticket = await _announce(tx, services)
    await services.signals.wait_for_acks(ticket)
    return True


async def delete(call: RequestContext, endpoint_id: int) -> None:
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
            {"url": (model.without_query(row["url"]), None), "events": (row["events"], None)},
        )
        ticket = await _announce(tx, services)
    await services.signals.wait_for_acks(ticket)


async def send_test(call: RequestContext, endpoint_id: int) -> asyncpg.Record:
    """Queue a test event for one endpoint, whatever it subscribes to."""
    services = call.services
    async with services.database.transaction() as tx:
        await queries.one(tx, endpoint_id)
        row = await queries.insert_event_for(
            tx,
            endpoint_id,
            event_id=services.new_id(),
            event=model.TEST,
            data={"webhook_endpoint_id": ids.encode(ids.WEBHOOK_ENDPOINT, endpoint_id)},
            now=services.clock(),
        )
        await _record(tx, call, endpoint_id, "tested", {})
    return row


async def redeliver(call: RequestContext, endpoint_id: int, delivery_id: int) -> asyncpg.Record:
    """Make a delivery due now, under the same id and with the whole retry schedule."""
    services = call.services
    async with services.database.transaction() as tx:
        await queries.one(tx, endpoint_id)
        before = await queries.lock_delivery(tx, endpoint_id, delivery_id)
        row = await queries.make_due(tx, delivery_id, services.clock())
        await _of_deliveries.record(
            tx,
            call,
            ids.encode(ids.DELIVERY, delivery_id),
            "redelivered",
            changes={"status": (before["status"], row["status"])},
        )
    return row


async def _announce(tx: asyncpg.Connection, services: Services) -> Ticket:
    """Signal a change of what is sent where: to the deliverers and to the ledger's publisher."""
    await services.signals.publish(tx, CHANGED, "")
    return await services.signals.publish(tx, rules.RULES_CHANGED, "")


async def _require_public(url: str) -> None:
    """Refuse a non-public address. A name that does not resolve yet is accepted: it is resolved
    again for every attempt."""
    try:
        async with asyncio.timeout(_LOOK_UP_SECONDS):
            await require_public(url, resolve_by_system)
    except RefusedError as refusal:
        raise invalid_field("url", str(refusal)) from None
    except OSError:  # a timeout is one of these too
        return


async def _record(
    tx: asyncpg.Connection, call: RequestContext, endpoint_id: int, action: str, changes: Changes
) -> None:
    await _of_endpoints.record(
        tx,
        call,
        ids.encode(ids.WEBHOOK_ENDPOINT, endpoint_id),
        action,
        changes=changes,
    )


def _seal(services: Services, endpoint_id: int, secret: str) -> bytes:
    return services.vault.seal(secret.encode(), model.secret_context(endpoint_id))


def _end_of_grace(now: datetime, grace_seconds: int) -> datetime | None:
    return now + timedelta(seconds=grace_seconds) if grace_seconds else None


def _without_repeats(events: list[str]) -> list[str]:
    return list(dict.fromkeys(events))
