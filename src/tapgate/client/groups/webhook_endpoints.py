"""Where events are sent."""

from collections.abc import Sequence

from tapgate.client.operation import Group, Listing, M, Operation, act, delete, operation
from tapgate.client.pages import listed, listing
from tapgate.client.records.webhook_endpoints import (
    Delivery,
    WebhookEndpoint,
    WebhookEndpointCreated,
)
from tapgate.client.values import given

_ALL = "/api/v1/admin/webhook-endpoints"
_DELIVERIES = f"{_ALL}/{{id}}/deliveries"


class WebhookEndpoints(Group[M]):
    @operation
    def create(self, *, url: str, events: Sequence[str]) -> Operation[WebhookEndpointCreated]:
        """The secret to verify events with is shown this once."""
        return act(_ALL, WebhookEndpointCreated, given(url=url, events=events))

    @listing
    def list(self, *, limit: int | None = None) -> Listing[WebhookEndpoint]:
        return listed(_ALL, WebhookEndpoint, given(limit=limit))

    @operation
    def delete(self, id: str) -> Operation[None]:
        return delete(f"{_ALL}/{{id}}", id=id)

    @listing
    def list_deliveries(self, id: str, *, limit: int | None = None) -> Listing[Delivery]:
        return listed(_DELIVERIES, Delivery, given(limit=limit), id=id)

    @operation
    def redeliver(self, id: str, delivery_id: str) -> Operation[Delivery]:
        """Under the same id as before."""
        template = f"{_DELIVERIES}/{{delivery_id}}/redeliver"
        return act(template, Delivery, id=id, delivery_id=delivery_id)
