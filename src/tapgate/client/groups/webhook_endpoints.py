"""Where events are sent."""

from collections.abc import Sequence

from tapgate.client.operation import Group, Listing, M, Operation, act, delete, operation, read
from tapgate.client.pages import listed, listing
from tapgate.client.records.webhook_endpoints import (
    Delivery,
    WebhookEndpoint,
    WebhookEndpointCreated,
)
from tapgate.client.values import given

_ALL = "/api/v1/admin/webhook-endpoints"
_ONE = f"{_ALL}/{{id}}"
_DELIVERIES = f"{_ONE}/deliveries"


class WebhookEndpoints(Group[M]):
    @operation
    def create(self, *, url: str, events: Sequence[str]) -> Operation[WebhookEndpointCreated]:
        """The secret to verify events with is shown this once."""
        return act(_ALL, WebhookEndpointCreated, given(url=url, events=events))

    @listing
    def list(self, *, limit: int | None = None) -> Listing[WebhookEndpoint]:
        return listed(_ALL, WebhookEndpoint, given(limit=limit))

    @operation
    def get(self, id: str) -> Operation[WebhookEndpoint]:
        return read(_ONE, WebhookEndpoint, id=id)

    @operation
    def test(self, id: str) -> Operation[Delivery]:
        """Sends `webhook.test` there, whatever it asked to be told."""
        return act(f"{_ONE}/test", Delivery, id=id)

    @operation
    def delete(self, id: str) -> Operation[None]:
        return delete(_ONE, id=id)

    @listing
    def list_deliveries(self, id: str, *, limit: int | None = None) -> Listing[Delivery]:
        return listed(_DELIVERIES, Delivery, given(limit=limit), id=id)

    @operation
    def redeliver(self, id: str, delivery_id: str) -> Operation[Delivery]:
        """Under the same id as before."""
        template = f"{_DELIVERIES}/{{delivery_id}}/redeliver"
        return act(template, Delivery, id=id, delivery_id=delivery_id)
