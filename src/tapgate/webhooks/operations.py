"""Operations on webhook endpoints. A change and its audit entry share a database transaction."""

import asyncio
from datetime import datetime, timedelta

import asyncpg

from tapgate import ids, signing
from tapgate.api.request_context import RequestContext
from tapgate.api.services import Services
from tapgate.audit.changes import diff_records
from tapgate.audit.trail import AuditTrail, Changes, record
from tapgate.auth.actors import SYSTEM_ACTOR
from tapgate.errors import invalid_field
from tapgate.ledger import rules
from tapgate.notifications.events import publish
from tapgate.schemas.urls import TargetRejectedError
from tapgate.schemas.webhooks import (
    ENDPOINT_DISABLED,
    TEST_EVENT,
    EndpointStatus,
    NewWebhookEndpoint,
    WebhookEndpointRecord,
    WebhookEndpointUpdate,
    WebhookEndpointWithSecret,
)
from tapgate.store.signals import Ticket
from tapgate.webhooks import delivery_queue, model, queries
from tapgate.webhooks.model import ClaimedDelivery, StatusReason
from tapgate.webhooks.target_urls import (
    require_public,
    resolve_with_system,
)

#: Signal that an endpoint was created, changed or deleted, or that its secret was rotated.
ENDPOINTS_CHANGED = "webhook_endpoints"

_RESOURCE_TYPE = "webhook_endpoint"
_endpoint_trail = AuditTrail(_RESOURCE_TYPE)
_delivery_trail = AuditTrail("webhook_delivery")

_LOOKUP_TIMEOUT_SECONDS = 2.0


async def create(request: RequestContext, new: NewWebhookEndpoint) -> WebhookEndpointWithSecret:
    services = request.services
    if services.settings.is_production:
        await _require_public_url(new.url)
    endpoint_id, secret = services.new_id(), signing.new_standard_secret()
    async with services.transaction() as tx:
        row = await queries.insert(
            tx,
            endpoint_id=endpoint_id,
            url=new.url,
            events=_remove_duplicates(new.events),
            secret=_seal_secret(services, endpoint_id, secret),
            now=services.clock(),
        )
        await _record_audit_entry(
            tx,
            request,
            endpoint_id,
            "created",
            {"url": (None, model.strip_query(row["url"])), "events": (None, row["events"])},
        )
        ticket = await _signal_change(tx, services)
    # Wait up to one second for every process to start publishing events to the new endpoint.
    await services.signals.wait_for_acks(ticket)
    return model.to_record_with_secret(row, secret)


async def update(
    request: RequestContext, endpoint_id: int, update: WebhookEndpointUpdate
) -> WebhookEndpointRecord:
    """Update the endpoint. Waits up to one second for every process to apply the change."""
    services = request.services
    if update.url is not None and services.settings.is_production:
        await _require_public_url(update.url)
    async with services.transaction() as tx:
        before = await queries.lock(tx, endpoint_id)
        url = before["url"] if update.url is None else update.url
        events = before["events"] if update.events is None else _remove_duplicates(update.events)
        status = before["status"] if update.status is None else update.status
        if (url, events, status) == (before["url"], before["events"], before["status"]):
            return model.to_record(before)
        reason = StatusReason.PAUSED if status == EndpointStatus.PAUSED else None
        after = await queries.save(
            tx,
            endpoint_id,
            url=url,
            events=events,
            status=status,
            reason=before["status_reason"] if status == before["status"] else reason,
            now=services.clock(),
        )
        changes = diff_records(model.to_audit_record(before), model.to_audit_record(after))
        await _record_audit_entry(tx, request, endpoint_id, "updated", changes)
        ticket = await _signal_change(tx, services)
    await services.signals.wait_for_acks(ticket)
    return model.to_record(after)


async def rotate_secret(
    request: RequestContext, endpoint_id: int, grace_seconds: int
) -> WebhookEndpointWithSecret:
    """Replace the secret and return the endpoint with the new secret.

    Until the grace period ends, requests are signed with both the new and the previous secret.
    Older secrets are no longer used. Waits up to one second for every process to apply the change.
    """
    services = request.services
    secret, now = signing.new_standard_secret(), services.clock()
    async with services.transaction() as tx:
        row = await queries.rotate_secret(
            tx,
            endpoint_id,
            secret=_seal_secret(services, endpoint_id, secret),
            previous_expires_at=_get_grace_end(now, grace_seconds),
        )
        changes = {"grace_seconds": (None, grace_seconds)}
        await _record_audit_entry(tx, request, endpoint_id, "secret_rotated", changes)
        ticket = await services.signals.publish(tx, ENDPOINTS_CHANGED, "")
    await services.signals.wait_for_acks(ticket)
    return model.to_record_with_secret(row, secret)


async def disable(
    services: Services,
    delivery: ClaimedDelivery,
    reason: StatusReason,
    *,
    if_failing_since: datetime | None = None,
) -> bool:
    """Disable the endpoint of a failed attempt, and return whether it was disabled.

    An endpoint whose URL or status has changed since the claim is not disabled. If
    `if_failing_since` is set, the failure streak must also have started at that time.
    """
    async with services.transaction() as tx:
        row = await delivery_queue.disable_endpoint(
            tx, delivery, reason, services.clock(), if_failing_since=if_failing_since
        )
        if row is None:
            return False
        disabled = model.to_disabled_endpoint(row)
        await record(
            tx,
            SYSTEM_ACTOR,
            event=f"{_RESOURCE_TYPE}.disabled",
            resource_type=_RESOURCE_TYPE,
            resource_id=disabled.id,
            reason=reason,
            changes={"status": (EndpointStatus.ACTIVE, disabled.status)},
        )
        await publish(tx, ENDPOINT_DISABLED, disabled)
        ticket = await _signal_change(tx, services)
    await services.signals.wait_for_acks(ticket)
    return True


async def delete(request: RequestContext, endpoint_id: int) -> None:
    services = request.services
    async with services.transaction() as tx:
        now = services.clock()
        row = await queries.delete(tx, endpoint_id, now)
        await delivery_queue.fail_for_deleted_endpoints(tx, now)
        await _record_audit_entry(
            tx,
            request,
            endpoint_id,
            "deleted",
            {"url": (model.strip_query(row["url"]), None), "events": (row["events"], None)},
        )
        ticket = await _signal_change(tx, services)
    await services.signals.wait_for_acks(ticket)


async def send_test_event(request: RequestContext, endpoint_id: int) -> asyncpg.Record:
    """Enqueue a test event for one endpoint, regardless of its subscriptions."""
    services = request.services
    async with services.transaction() as tx:
        await queries.get(tx, endpoint_id)
        row = await queries.insert_event(
            tx,
            endpoint_id,
            event_id=services.new_id(),
            event=TEST_EVENT,
            data={"webhook_endpoint_id": ids.encode(ids.WEBHOOK_ENDPOINT, endpoint_id)},
            now=services.clock(),
        )
        await _record_audit_entry(tx, request, endpoint_id, "tested", {})
    return row


async def redeliver(request: RequestContext, endpoint_id: int, delivery_id: int) -> asyncpg.Record:
    """Make a delivery due now, with the same id and a restarted retry schedule."""
    services = request.services
    async with services.transaction() as tx:
        await queries.get(tx, endpoint_id)
        before = await queries.lock_delivery(tx, endpoint_id, delivery_id)
        row = await queries.requeue(tx, delivery_id, services.clock())
        await _delivery_trail.record(
            tx,
            request.actor,
            ids.encode(ids.DELIVERY, delivery_id),
            "redelivered",
            changes={"status": (before["status"], row["status"])},
        )
    return row


async def _signal_change(tx: asyncpg.Connection, services: Services) -> Ticket:
    """Signal the change to webhook workers and to the ledger, which caches subscriptions."""
    await services.signals.publish(tx, ENDPOINTS_CHANGED, "")
    return await services.signals.publish(tx, rules.RULES_CHANGED, "")


async def _require_public_url(url: str) -> None:
    """Reject a URL without HTTPS, or whose host is local or resolves to a non-public address.

    A host name that does not resolve in time is accepted, because every attempt resolves it again.
    """
    try:
        async with asyncio.timeout(_LOOKUP_TIMEOUT_SECONDS):
            await require_public(url, resolve_with_system)
    except TargetRejectedError as error:
        raise invalid_field("url", str(error)) from None
    except OSError:  # includes TimeoutError
        return


async def _record_audit_entry(
    tx: asyncpg.Connection, request: RequestContext, endpoint_id: int, action: str, changes: Changes
) -> None:
    await _endpoint_trail.record(
        tx,
        request.actor,
        ids.encode(ids.WEBHOOK_ENDPOINT, endpoint_id),
        action,
        changes=changes,
    )


def _seal_secret(services: Services, endpoint_id: int, secret: str) -> bytes:
    return services.vault.seal(secret.encode(), model.build_secret_context(endpoint_id))


def _get_grace_end(now: datetime, grace_seconds: int) -> datetime | None:
    return now + timedelta(seconds=grace_seconds) if grace_seconds else None


def _remove_duplicates(events: list[str]) -> list[str]:
    return list(dict.fromkeys(events))
