"""Operations on webhook endpoints and their deliveries."""

from collections.abc import Sequence

from tapgate.client.encoding import omit_none
from tapgate.client.operation import (
    ListOperation,
    M,
    Operation,
    OperationGroup,
    build_delete,
    build_get,
    build_post,
    build_put,
    operation,
)
from tapgate.client.pagination import build_list, list_operation
from tapgate.client.records.webhook_endpoints import (
    Delivery,
    WebhookEndpoint,
    WebhookEndpointWithSecret,
)

_COLLECTION_PATH = "/api/v1/admin/webhook-endpoints"
_RESOURCE_PATH = f"{_COLLECTION_PATH}/{{id}}"
_DELIVERIES_PATH = f"{_RESOURCE_PATH}/deliveries"


class WebhookEndpoints(OperationGroup[M]):
    @operation
    def create(self, *, url: str, events: Sequence[str]) -> Operation[WebhookEndpointWithSecret]:
        """Create a webhook endpoint. Only this response contains the secret."""
        return build_post(
            _COLLECTION_PATH, WebhookEndpointWithSecret, omit_none(url=url, events=events)
        )

    @list_operation
    def list(self, *, limit: int | None = None) -> ListOperation[WebhookEndpoint]:
        return build_list(_COLLECTION_PATH, WebhookEndpoint, omit_none(limit=limit))

    @operation
    def get(self, id: str) -> Operation[WebhookEndpoint]:
        return build_get(_RESOURCE_PATH, WebhookEndpoint, id=id)

    @operation
    def update(
        self,
        id: str,
        *,
        url: str | None = None,
        events: Sequence[str] | None = None,
        status: str | None = None,
    ) -> Operation[WebhookEndpoint]:
        """Update the given fields. `status` is `active` or `paused`."""
        return build_put(
            _RESOURCE_PATH, WebhookEndpoint, omit_none(url=url, events=events, status=status), id=id
        )

    @operation
    def rotate_secret(
        self, id: str, *, grace_seconds: int | None = None
    ) -> Operation[WebhookEndpointWithSecret]:
        """Rotate the secret. Only this response contains the new secret.

        Until the grace period ends, deliveries are signed with both secrets.
        """
        body = omit_none(grace_seconds=grace_seconds)
        return build_post(f"{_RESOURCE_PATH}/rotate-secret", WebhookEndpointWithSecret, body, id=id)

    @operation
    def test(self, id: str) -> Operation[Delivery]:
        """Send a `webhook.test` event to the endpoint, regardless of its subscriptions."""
        return build_post(f"{_RESOURCE_PATH}/test", Delivery, id=id)

    @operation
    def delete(self, id: str) -> Operation[None]:
        return build_delete(_RESOURCE_PATH, id=id)

    @list_operation
    def list_deliveries(self, id: str, *, limit: int | None = None) -> ListOperation[Delivery]:
        return build_list(_DELIVERIES_PATH, Delivery, omit_none(limit=limit), id=id)

    @operation
    def redeliver(self, id: str, delivery_id: str) -> Operation[Delivery]:
        """Redeliver an event under the same ID."""
        template = f"{_DELIVERIES_PATH}/{{delivery_id}}/redeliver"
        return build_post(template, Delivery, id=id, delivery_id=delivery_id)
