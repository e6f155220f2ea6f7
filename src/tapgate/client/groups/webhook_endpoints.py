"""Webhook endpoints."""

from collections.abc import Sequence

from tapgate.client.operation import Group, Listing, M, Operation, act, delete, operation, put, read
from tapgate.client.pages import listed, listing
from tapgate.client.records.webhook_endpoints import (
    Delivery,
    WebhookEndpoint,
    WebhookEndpointWithSecret,
)
from tapgate.client.values import given

_ALL = "/api/v1/admin/webhook-endpoints"
_ONE = f"{_ALL}/{{id}}"
_DELIVERIES = f"{_ONE}/deliveries"


class WebhookEndpoints(Group[M]):
    @operation
    def create(self, *, url: str, events: Sequence[str]) -> Operation[WebhookEndpointWithSecret]:
        """Only this response contains the secret."""
        return act(_ALL, WebhookEndpointWithSecret, given(url=url, events=events))

    @listing
    def list(self, *, limit: int | None = None) -> Listing[WebhookEndpoint]:
        return listed(_ALL, WebhookEndpoint, given(limit=limit))

    @operation
    def get(self, id: str) -> Operation[WebhookEndpoint]:
        return read(_ONE, WebhookEndpoint, id=id)

    @operation
    def update(
        self,
        id: str,
        *,
        url: str | None = None,
        events: Sequence[str] | None = None,
        status: str | None = None,
    ) -> Operation[WebhookEndpoint]:
        """Change the given fields; `status` is `active` or `paused`."""
        return put(_ONE, WebhookEndpoint, given(url=url, events=events, status=status), id=id)

    @operation
    def rotate_secret(
        self, id: str, *, grace_seconds: int | None = None
    ) -> Operation[WebhookEndpointWithSecret]:
        """Only this response contains the new secret. The old one signs too during the grace."""
        body = given(grace_seconds=grace_seconds)
        return act(f"{_ONE}/rotate-secret", WebhookEndpointWithSecret, body, id=id)

    @operation
    def test(self, id: str) -> Operation[Delivery]:
        """Send `webhook.test` to the endpoint, whatever it subscribes to."""
        return act(f"{_ONE}/test", Delivery, id=id)

    @operation
    def delete(self, id: str) -> Operation[None]:
        return delete(_ONE, id=id)

    @listing
    def list_deliveries(self, id: str, *, limit: int | None = None) -> Listing[Delivery]:
        return listed(_DELIVERIES, Delivery, given(limit=limit), id=id)

    @operation
    def redeliver(self, id: str, delivery_id: str) -> Operation[Delivery]:
        """Send the event again under the same id."""
        template = f"{_DELIVERIES}/{{delivery_id}}/redeliver"
        return act(template, Delivery, id=id, delivery_id=delivery_id)
