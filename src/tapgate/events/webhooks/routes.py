"""Admin API for webhook endpoints and their deliveries."""

from datetime import datetime, timedelta
from operator import itemgetter
from typing import Final

import msgspec

from tapgate.auth.owners import WEBHOOK_ENDPOINTS
from tapgate.core.pagination import paginate
from tapgate.core.records import DeliveryId, WebhookEndpointId
from tapgate.events.webhooks import delivery_queue, model, operations, queries
from tapgate.events.webhooks.event_data import find_hidden_responses, load_event_data
from tapgate.http.api.access import Access
from tapgate.http.api.guards import Guard, Proposal, Unguarded
from tapgate.http.api.object_access import ObjectAccess
from tapgate.http.api.owner_access import Binding, OwnerAccess
from tapgate.http.api.request_context import GuardedRequest, RequestContext
from tapgate.http.endpoint import Endpoints
from tapgate.runtime.store.transaction import Transaction
from tapgate_client.errors import Code, invalid_field
from tapgate_client.schemas.approvals import Operation
from tapgate_client.schemas.pagination import Page
from tapgate_client.schemas.periods import parse_period_end, parse_period_start
from tapgate_client.schemas.webhooks import (
    NewWebhookEndpoint,
    PeriodRedelivery,
    PeriodRedeliveryResult,
    SecretRotation,
    WebhookDelivery,
    WebhookDeliveryDetails,
    WebhookDeliveryFilters,
    WebhookDeliveryStatus,
    WebhookEndpointFilters,
    WebhookEndpointRecord,
    WebhookEndpointStatus,
    WebhookEndpointUpdate,
    WebhookEndpointWithSecret,
)

_MAX_REDELIVERY_PERIOD: Final = timedelta(days=31)

endpoints = Endpoints(
    "Webhooks",
    "/api/v1/admin/webhook-endpoints",
    access=Access(roles="A"),
    objects=ObjectAccess.ANY,
    owners=OwnerAccess(binding=Binding.ROW, roles="MP", rows=WEBHOOK_ENDPOINTS, key_roles=""),
)


async def _describe_creation(request: GuardedRequest, body: NewWebhookEndpoint) -> Proposal:
    return Proposal(
        operations=(Operation.WEBHOOK_ENDPOINTS,), summary=f"Create webhook endpoint {body.url}"
    )


async def _describe_update(
    request: GuardedRequest, id: int, body: WebhookEndpointUpdate
) -> Proposal | None:
    endpoint = model.to_record(await queries.get(request.services.database, id))
    before = msgspec.to_builtins(endpoint)
    changed = {
        name: value
        for name, value in msgspec.to_builtins(body).items()
        if value is not None and value != before.get(name)
    }
    if changed in ({}, {"status": WebhookEndpointStatus.PAUSED}):
        return None  # pausing never waits
    return Proposal(
        operations=(Operation.WEBHOOK_ENDPOINTS,),
        summary=f"Change webhook endpoint {endpoint.url}",
        resource_id=endpoint.id,
        before=before,
    )


async def _describe_rotation(request: GuardedRequest, id: int, body: SecretRotation) -> Proposal:
    endpoint = model.to_record(await queries.get(request.services.database, id))
    return Proposal(
        operations=(Operation.WEBHOOK_ENDPOINTS,),
        summary=f"Rotate the secret of webhook endpoint {endpoint.url}",
        resource_id=endpoint.id,
    )


async def _require_public_url(
    request: GuardedRequest, body: NewWebhookEndpoint | WebhookEndpointUpdate, id: int | None = None
) -> None:
    if body.url is not None and request.services.settings.is_production:
        await operations.require_public_url(body.url)


@endpoints.post(
    "",
    status=201,
    step_up=True,
    guard=Guard(_describe_creation, Operation.WEBHOOK_ENDPOINTS),
    errors=(Code.PROCESSOR_NOT_FOUND, Code.PARTNER_NOT_FOUND, Code.AGENT_NOT_FOUND),
    objects=ObjectAccess.NO_OBJECT,
    owners=OwnerAccess(binding=Binding.BODY, roles="MP", parameter="owner_id", key_roles=""),
    prepare=_require_public_url,
)
async def create_webhook_endpoint(
    request: GuardedRequest, tx: Transaction, body: NewWebhookEndpoint
) -> WebhookEndpointWithSecret:
    """Create a webhook endpoint.

    The response contains the signing secret, which cannot be retrieved later. `*` subscribes to
    all events. In production, the URL must begin with https:// and its host must not resolve to a
    private address.

    With `owner_id`, the endpoint receives only events that name this processor, partner or agent:
    its transactions, payouts and disputes, its status and its float. Other events never fire.
    """
    services = request.services
    return await operations.create(
        tx, request.actor, body, vault=services.vault, signals=services.signals
    )


@endpoints.get(
    "",
    owners=OwnerAccess(binding=Binding.LIST, roles="MP", rows=WEBHOOK_ENDPOINTS, key_roles=""),
)
async def list_webhook_endpoints(
    request: RequestContext, query: WebhookEndpointFilters
) -> Page[WebhookEndpointRecord]:
    """List webhook endpoints, newest first.

    With `failing=true`, only endpoints that are disabled or whose last attempt failed.
    """
    rows = await queries.list_page(request.services.database, query, request.owner_view)
    return paginate(rows, query, model.to_record, itemgetter("id"))


@endpoints.get("/{id}")
async def get_webhook_endpoint(
    request: RequestContext, id: WebhookEndpointId
) -> WebhookEndpointRecord:
    """Get a webhook endpoint."""
    return model.to_record(await queries.get(request.services.database, id))


@endpoints.put(
    "/{id}",
    step_up=True,
    guard=Guard(_describe_update, Operation.WEBHOOK_ENDPOINTS),
    prepare=_require_public_url,
)
async def update_webhook_endpoint(
    request: GuardedRequest, tx: Transaction, id: WebhookEndpointId, body: WebhookEndpointUpdate
) -> WebhookEndpointRecord:
    """Update, pause or reactivate a webhook endpoint.

    Absent fields keep their values. While the status is `paused`, events are queued and not sent.
    Setting the status to `active` resumes a paused endpoint and re-enables a disabled one. After
    the response, normally only requests already in flight still use the old settings.
    """
    return await operations.update(tx, request.actor, id, body, signals=request.services.signals)


@endpoints.post(
    "/{id}/rotate-secret",
    step_up=True,
    guard=Guard(_describe_rotation, Operation.WEBHOOK_ENDPOINTS),
)
async def rotate_webhook_secret(
    request: GuardedRequest, tx: Transaction, id: WebhookEndpointId, body: SecretRotation
) -> WebhookEndpointWithSecret:
    """Rotate a webhook endpoint's secret.

    The response contains the new secret, which cannot be retrieved later. For `grace_seconds`,
    each request is signed with both the new and the old secret. After another rotation during this
    period, the oldest secret is no longer used.
    """
    services = request.services
    return await operations.rotate_secret(
        tx,
        request.actor,
        id,
        body.grace_seconds,
        vault=services.vault,
        signals=services.signals,
    )


@endpoints.post("/{id}/test", status=201, unguarded=Unguarded.NO_EFFECT)
async def send_test_event(
    request: RequestContext, tx: Transaction, id: WebhookEndpointId
) -> WebhookDelivery:
    """Send a test event to a webhook endpoint.

    `webhook.test` is sent to this endpoint only, regardless of its subscriptions. It is signed,
    retried and listed among the deliveries like any other event.
    """
    return model.to_delivery(await operations.send_test_event(tx, request.actor, id))


@endpoints.delete("/{id}", unguarded=Unguarded.NO_EFFECT)
async def delete_webhook_endpoint(
    request: RequestContext, tx: Transaction, id: WebhookEndpointId
) -> None:
    """Delete a webhook endpoint.

    Pending deliveries fail without further attempts.
    """
    await operations.delete(tx, request.actor, id, signals=request.services.signals)


@endpoints.get("/{id}/deliveries", heavy="status")
async def list_deliveries(
    request: RequestContext, id: WebhookEndpointId, query: WebhookDeliveryFilters
) -> Page[WebhookDelivery]:
    """List the deliveries to a webhook endpoint, newest first.

    `response` is null if no response text was received, or if the event concerns a restricted
    subscriber hidden from the caller.
    """
    database, now = request.services.database, request.services.clock()
    await queries.get(database, id)
    rows = await queries.list_deliveries(database, id, query)
    hidden = await find_hidden_responses(database, request.caller, now, rows)
    return paginate(
        rows,
        query,
        lambda row: model.to_delivery(row, hide_response=row["id"] in hidden),
        itemgetter("id"),
    )


@endpoints.get("/{id}/deliveries/{delivery_id}", objects=ObjectAccess.PARENT_IN_PATH)
async def get_delivery(
    request: RequestContext, id: WebhookEndpointId, delivery_id: DeliveryId
) -> WebhookDeliveryDetails:
    """Get a delivery to a webhook endpoint.

    `payload` is the request body as it would be sent now.
    """
    services = request.services
    await queries.get(services.database, id)
    row = await queries.get_delivery(services.database, id, delivery_id)
    delivery = await delivery_queue.get(services.database, delivery_id)
    loaded = await load_event_data(services, services.event_record_loaders, [delivery])
    data = loaded[delivery.event_id]
    body = (
        None
        if isinstance(data, Exception)
        else model.encode_body(delivery.event, delivery.occurred_at, data.sent)
    )
    hidden = await find_hidden_responses(services.database, request.caller, services.clock(), [row])
    return model.to_delivery_details(row, body, hide_response=delivery_id in hidden)


@endpoints.post(
    "/{id}/deliveries/{delivery_id}/redeliver",
    unguarded=Unguarded.NO_EFFECT,
    objects=ObjectAccess.PARENT_IN_PATH,
)
async def redeliver_event(
    request: RequestContext, tx: Transaction, id: WebhookEndpointId, delivery_id: DeliveryId
) -> WebhookDelivery:
    """Redeliver an event under the same delivery ID, regardless of the delivery status.

    If the endpoint is paused or disabled, the delivery stays queued until the endpoint is active.
    """
    row = await operations.redeliver(tx, request.actor, id, delivery_id)
    hidden = await find_hidden_responses(tx, request.caller, tx.now(), [row])
    return model.to_delivery(row, hide_response=delivery_id in hidden)


@endpoints.post("/{id}/redeliver", unguarded=Unguarded.NO_EFFECT)
async def redeliver_period(
    request: RequestContext, tx: Transaction, id: WebhookEndpointId, body: PeriodRedelivery
) -> PeriodRedeliveryResult:
    """Redeliver the events of a period under their delivery IDs, for example after an outage.

    The period is that of the deliveries' creation; `to` must not be in the future. A request makes
    at most 1,000 deliveries due: repeat it with the same values until `complete` is true. Further
    repetitions change nothing, so a request can be repeated safely after a timeout.
    """
    redelivery = _build_redelivery(request, id, body, tx.now())
    progress = await operations.redeliver_period(tx, request.actor, redelivery)
    return PeriodRedeliveryResult(redelivered=progress.redelivered, complete=progress.is_complete)


def _build_redelivery(
    request: RequestContext, endpoint_id: int, body: PeriodRedelivery, now: datetime
) -> queries.Redelivery:
    zone = request.services.settings.timezone
    start, end = parse_period_start(body.from_, zone), parse_period_end(body.to, zone)
    assert start is not None
    assert end is not None
    if body.status == WebhookDeliveryStatus.PENDING:
        raise invalid_field("status", "must not be pending: these deliveries are sent anyway")
    if end > now:
        raise invalid_field("to", "must not be in the future")
    if not start < end <= start + _MAX_REDELIVERY_PERIOD:
        raise invalid_field("to", "must be after from, by at most 31 days")
    return queries.Redelivery(endpoint_id, start, end, body.status)
