"""Operations on webhook endpoints. A change and its audit entry share a database transaction.

After the commit, changes wait up to one second for every process to apply them.
"""

import asyncio
from datetime import datetime

import asyncpg

from tapgate.auth import owner_limits
from tapgate.auth.actors import SYSTEM_ACTOR, Actor
from tapgate.auth.owners import parse_owner, require_not_terminated
from tapgate.core.vault import Vault
from tapgate.events.audit.trail import AuditTrail, Changes, diff_records
from tapgate.events.webhooks import delivery_queue, model, queries
from tapgate.events.webhooks.model import LeasedDelivery, StatusReason
from tapgate.events.webhooks.target_urls import require_public, resolve_with_system
from tapgate.events.webhooks.webhook_events import publish
from tapgate.ledger.rules import loaded_rules
from tapgate.runtime.store.signals import Signals
from tapgate.runtime.store.transaction import Transaction
from tapgate_client import ids, signing
from tapgate_client.clock import format_rfc3339
from tapgate_client.errors import invalid_field
from tapgate_client.schemas.urls import TargetRejectedError
from tapgate_client.schemas.webhooks import (
    ENDPOINT_DISABLED,
    TEST_EVENT,
    NewWebhookEndpoint,
    WebhookEndpointRecord,
    WebhookEndpointStatus,
    WebhookEndpointUpdate,
    WebhookEndpointWithSecret,
)

#: Signal that an endpoint was created, changed or deleted, or that its secret was rotated.
ENDPOINTS_CHANGED = "webhook_endpoints"

_trail = AuditTrail("webhook_endpoint")
_delivery_trail = AuditTrail("webhook_delivery")

LOOKUP_TIMEOUT_SECONDS = 2.0
#: Deliveries that one request makes due, in one database transaction.
MAX_REDELIVERIES = 1_000


async def create(
    tx: Transaction, actor: Actor, new: NewWebhookEndpoint, *, vault: Vault, signals: Signals
) -> WebhookEndpointWithSecret:
    endpoint_id, secret = tx.new_id(), signing.new_standard_secret()
    owner = None if new.owner_id is None else parse_owner(new.owner_id)
    if owner is None:
        await owner_limits.require_room(tx, owner_limits.PLATFORM_WEBHOOK_ENDPOINTS, None)
    else:
        await require_not_terminated(tx, owner)
        await owner_limits.require_room(tx, owner_limits.WEBHOOK_ENDPOINTS, owner)
    row = await queries.insert(
        tx,
        endpoint_id=endpoint_id,
        url=new.url,
        events=_remove_duplicates(new.events),
        secret=_seal_secret(vault, endpoint_id, secret),
        created_by=actor.admin_id,
        owner=owner,
    )
    changes = {"url": (None, model.strip_query(row["url"])), "events": (None, row["events"])}
    if owner is not None:
        changes["owner_id"] = (None, owner.public_id)
    await _record_change(tx, actor, endpoint_id, "created", changes, signals=signals)
    return model.to_record_with_secret(row, secret)


async def update(
    tx: Transaction,
    actor: Actor,
    endpoint_id: int,
    update: WebhookEndpointUpdate,
    *,
    signals: Signals,
) -> WebhookEndpointRecord:
    before = await queries.lock(tx, endpoint_id)
    url = before["url"] if update.url is None else update.url
    events = before["events"] if update.events is None else _remove_duplicates(update.events)
    status = before["status"] if update.status is None else update.status
    if (url, events, status) == (before["url"], before["events"], before["status"]):
        return model.to_record(before)
    reason = StatusReason.PAUSED if status == WebhookEndpointStatus.PAUSED else None
    after = await queries.save(
        tx,
        endpoint_id,
        url=url,
        events=events,
        status=status,
        reason=before["status_reason"] if status == before["status"] else reason,
    )
    changes = diff_records(model.to_audit_record(before), model.to_audit_record(after))
    await _record_change(tx, actor, endpoint_id, "updated", changes, signals=signals)
    return model.to_record(after)


async def rotate_secret(
    tx: Transaction,
    actor: Actor,
    endpoint_id: int,
    grace_seconds: int,
    *,
    vault: Vault,
    signals: Signals,
) -> WebhookEndpointWithSecret:
    """Replace the secret and return the endpoint with the new secret.

    Until the grace period ends, requests are signed with both the new and the previous secret.
    Older secrets are no longer used.
    """
    secret = signing.new_standard_secret()
    sealed = _seal_secret(vault, endpoint_id, secret)
    row = await queries.rotate_secret(
        tx, endpoint_id, sealed, grace_seconds, rotated_by=actor.admin_id
    )
    changes = {"grace_seconds": (None, grace_seconds)}
    await _trail.record(tx, actor, _encode_id(endpoint_id), "secret_rotated", changes=changes)
    await signals.publish_and_wait(tx, ENDPOINTS_CHANGED)
    return model.to_record_with_secret(row, secret)


async def disable(
    tx: Transaction,
    delivery: LeasedDelivery,
    reason: StatusReason,
    *,
    signals: Signals,
    if_failing_since: datetime | None = None,
) -> bool:
    """Disable a failed attempt's endpoint, and return whether it was disabled.

    An endpoint whose URL or status has changed since the lease is not disabled. If
    `if_failing_since` is set, the failure streak must also have started at that time.
    """
    row = await delivery_queue.disable_endpoint(
        tx, delivery, reason, tx.now(), if_failing_since=if_failing_since
    )
    if row is None:
        return False
    disabled = model.to_disabled_endpoint(row)
    await _trail.record(
        tx,
        SYSTEM_ACTOR,
        disabled.id,
        "disabled",
        reason=reason,
        changes={"status": (WebhookEndpointStatus.ACTIVE, disabled.status)},
    )
    await publish(tx, ENDPOINT_DISABLED, disabled)
    await _publish_change(tx, signals)
    return True


async def delete(tx: Transaction, actor: Actor, endpoint_id: int, *, signals: Signals) -> None:
    row = await queries.delete(tx, endpoint_id)
    await delivery_queue.fail_for_deleted_endpoints(tx, tx.now())
    changes = {"url": (model.strip_query(row["url"]), None), "events": (row["events"], None)}
    await _record_change(tx, actor, endpoint_id, "deleted", changes, signals=signals)


async def send_test_event(tx: Transaction, actor: Actor, endpoint_id: int) -> asyncpg.Record:
    """Enqueue a test event for one endpoint, regardless of its subscriptions."""
    await queries.get(tx, endpoint_id)
    data = {"webhook_endpoint_id": _encode_id(endpoint_id)}
    row = await queries.insert_event(tx, endpoint_id, event=TEST_EVENT, data=data)
    await _trail.record(tx, actor, _encode_id(endpoint_id), "tested", changes={})
    return row


async def redeliver(
    tx: Transaction, actor: Actor, endpoint_id: int, delivery_id: int
) -> asyncpg.Record:
    """Make a delivery due now, with the same id and a restarted retry schedule."""
    await queries.get(tx, endpoint_id)
    before = await queries.lock_delivery(tx, endpoint_id, delivery_id)
    row = await queries.requeue(tx, delivery_id)
    await _delivery_trail.record(
        tx,
        actor,
        ids.encode(ids.DELIVERY, delivery_id),
        "redelivered",
        changes={"status": (before["status"], row["status"])},
    )
    return row


async def redeliver_period(
    tx: Transaction, actor: Actor, redelivery: queries.Redelivery
) -> queries.RedeliveryProgress:
    """Make the next deliveries in a period due now, at most `MAX_REDELIVERIES` per call.

    A repeated call continues after the last delivery. Once the period is complete, it changes
    nothing.
    """
    await queries.get(tx, redelivery.endpoint_id)
    before = await queries.lock_redelivery(tx, redelivery)
    if before.is_complete:
        return before
    requeued = await queries.requeue_period(
        tx, redelivery, after=before.last_delivery_id, limit=MAX_REDELIVERIES
    )
    after = queries.RedeliveryProgress(
        requeued[-1] if requeued else before.last_delivery_id,
        before.redelivered + len(requeued),
        len(requeued) < MAX_REDELIVERIES,
    )
    await queries.save_redelivery(tx, redelivery, after)
    changes = {
        "from": (None, format_rfc3339(redelivery.start)),
        "to": (None, format_rfc3339(redelivery.end)),
        "delivery_status": (redelivery.status, "pending"),
        "deliveries": (before.redelivered, after.redelivered),
    }
    await _trail.record(
        tx, actor, _encode_id(redelivery.endpoint_id), "redelivered", changes=changes
    )
    return after


async def _record_change(
    tx: Transaction,
    actor: Actor,
    endpoint_id: int,
    action: str,
    changes: Changes,
    *,
    signals: Signals,
) -> None:
    await _trail.record(tx, actor, _encode_id(endpoint_id), action, changes=changes)
    await _publish_change(tx, signals)


async def _publish_change(tx: Transaction, signals: Signals) -> None:
    """Signal the change to webhook workers and to the ledger, which caches subscriptions."""
    await signals.publish(tx, ENDPOINTS_CHANGED, "")
    await signals.publish_and_wait(tx, loaded_rules.RULES_CHANGED)


def _encode_id(endpoint_id: int) -> str:
    return ids.encode(ids.WEBHOOK_ENDPOINT, endpoint_id)


async def require_public_url(url: str) -> None:
    """Reject a URL without HTTPS, or whose host is local or resolves to a non-public address.

    A host name that does not resolve in time is accepted, because every attempt resolves it again.
    """
    try:
        async with asyncio.timeout(LOOKUP_TIMEOUT_SECONDS):
            await require_public(url, resolve_with_system)
    except TargetRejectedError as error:
        raise invalid_field("url", str(error)) from None
    except OSError:  # includes TimeoutError
        return


def _seal_secret(vault: Vault, endpoint_id: int, secret: str) -> bytes:
    return vault.seal(secret.encode(), model.build_secret_context(endpoint_id))


def _remove_duplicates(events: list[str]) -> list[str]:
    return list(dict.fromkeys(events))
