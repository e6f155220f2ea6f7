"""Webhook endpoints over HTTP."""

from tapgate import ids
from tapgate.edge.call import Call
from tapgate.edge.endpoint import Access, Endpoints
from tapgate.edge.pages import Page, PageQuery, cut
from tapgate.errors import Code
from tapgate.notifications.webhooks import model, operations, queries
from tapgate.notifications.webhooks.model import CreatedEndpoint, Delivery, Endpoint, NewEndpoint

endpoints = Endpoints("Webhooks")

_SYSTEM_ADMIN = Access(roles="A")


@endpoints.post("/api/v1/admin/webhook-endpoints", access=_SYSTEM_ADMIN, status=201)
async def create_webhook_endpoint(call: Call, body: NewEndpoint) -> CreatedEndpoint:
    """Ask to be told about events at a URL. The secret is shown this once.

    `*` stands for all events. In production the URL begins with https:// and leads to a public
    address.
    """
    return await operations.create(call, body)


@endpoints.get("/api/v1/admin/webhook-endpoints", access=_SYSTEM_ADMIN)
async def list_webhook_endpoints(call: Call, query: PageQuery) -> Page[Endpoint]:
    """List the webhook endpoints that are not deleted, newest first."""
    rows = await queries.page(call.services.database, before=query.before, limit=query.limit + 1)
    return cut(rows, query.limit, lambda row: int(row["id"]), model.endpoint)


@endpoints.get(
    "/api/v1/admin/webhook-endpoints/{id}", access=_SYSTEM_ADMIN, errors=(Code.NOT_FOUND,)
)
async def get_webhook_endpoint(call: Call, id: str) -> Endpoint:
    """Get a webhook endpoint."""
    return model.endpoint(await queries.one(call.services.database, _endpoint_id(id)))


@endpoints.post(
    "/api/v1/admin/webhook-endpoints/{id}/test",
    access=_SYSTEM_ADMIN,
    status=201,
    errors=(Code.NOT_FOUND,),
)
async def send_test_event(call: Call, id: str) -> Delivery:
    """Send a test event to a webhook endpoint.

    `webhook.test` is sent to this one only, whatever it asked to be told, and signed, repeated and
    listed among the deliveries like any other event.
    """
    return model.delivery(await operations.send_test(call, _endpoint_id(id)))


@endpoints.delete(
    "/api/v1/admin/webhook-endpoints/{id}", access=_SYSTEM_ADMIN, errors=(Code.NOT_FOUND,)
)
async def delete_webhook_endpoint(call: Call, id: str) -> None:
    """Delete a webhook endpoint: what still waits for it is not sent any more."""
    await operations.delete(call, _endpoint_id(id))


@endpoints.get(
    "/api/v1/admin/webhook-endpoints/{id}/deliveries",
    access=_SYSTEM_ADMIN,
    errors=(Code.NOT_FOUND,),
)
async def list_deliveries(call: Call, id: str, query: PageQuery) -> Page[Delivery]:
    """List what was or will be sent to a webhook endpoint, newest first."""
    endpoint_id, database = _endpoint_id(id), call.services.database
    await queries.one(database, endpoint_id)
    rows = await queries.deliveries(
        database, endpoint_id, before=query.before, limit=query.limit + 1
    )
    return cut(rows, query.limit, lambda row: int(row["id"]), model.delivery)


@endpoints.post(
    "/api/v1/admin/webhook-endpoints/{id}/deliveries/{delivery_id}/redeliver",
    access=_SYSTEM_ADMIN,
    errors=(Code.NOT_FOUND,),
)
async def redeliver(call: Call, id: str, delivery_id: str) -> Delivery:
    """Send an event again, at once and under the same id, whatever came of it before."""
    number = ids.read(ids.DELIVERY, delivery_id)
    endpoint_id = _endpoint_id(id)
    if number is None:
        raise model.no_such_delivery()
    return model.delivery(await operations.redeliver(call, endpoint_id, number))


def _endpoint_id(shown: str) -> int:
    number = ids.read(ids.WEBHOOK_ENDPOINT, shown)
    if number is None:
        raise model.no_such_endpoint()
    return number
