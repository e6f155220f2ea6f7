"""Operations on webhook endpoints and their deliveries."""

from collections.abc import Sequence

from tapgate_client.declaration import M, OperationGroup, acts, lists, reads, sets
from tapgate_client.schemas.pagination import Page
from tapgate_client.schemas.webhooks import (
    WebhookDelivery,
    WebhookDeliveryDetails,
    WebhookEndpointRecord,
    WebhookEndpointWithSecret,
)


class WebhookEndpoints(OperationGroup[M]):
    @acts("POST /api/v1/admin/webhook-endpoints")
    def create(self, *, url: str, events: Sequence[str]) -> WebhookEndpointWithSecret:
        """Create a webhook endpoint. Only this response contains the secret."""

    @lists("GET /api/v1/admin/webhook-endpoints")
    def list(
        self, *, failing: bool | None = None, limit: int | None = None
    ) -> Page[WebhookEndpointRecord]:
        """List endpoints. With `failing`, those that are disabled or whose last attempt failed."""

    @reads("GET /api/v1/admin/webhook-endpoints/{id}")
    def get(self, id: str) -> WebhookEndpointRecord: ...

    @sets("PUT /api/v1/admin/webhook-endpoints/{id}")
    def update(
        self,
        id: str,
        *,
        url: str | None = None,
        events: Sequence[str] | None = None,
        status: str | None = None,
    ) -> WebhookEndpointRecord:
        """Update the given fields. `status` is `active` or `paused`."""

    @acts("POST /api/v1/admin/webhook-endpoints/{id}/rotate-secret")
    def rotate_secret(
        self, id: str, *, grace_seconds: int | None = None
    ) -> WebhookEndpointWithSecret:
        """Rotate the secret. Only this response contains the new secret.

        Until the grace period ends, deliveries are signed with both secrets.
        """

    @acts("POST /api/v1/admin/webhook-endpoints/{id}/test")
    def test(self, id: str) -> WebhookDelivery:
        """Send a `webhook.test` event to the endpoint, regardless of its subscriptions."""

    @sets("DELETE /api/v1/admin/webhook-endpoints/{id}")
    def delete(self, id: str) -> None: ...

    @lists("GET /api/v1/admin/webhook-endpoints/{id}/deliveries")
    def list_deliveries(
        self, id: str, *, status: str | None = None, limit: int | None = None
    ) -> Page[WebhookDelivery]:
        """List deliveries, newest first. `status` is `pending`, `delivered` or `failed`."""

    @reads("GET /api/v1/admin/webhook-endpoints/{id}/deliveries/{delivery_id}")
    def get_delivery(self, id: str, delivery_id: str) -> WebhookDeliveryDetails: ...

    @acts("POST /api/v1/admin/webhook-endpoints/{id}/deliveries/{delivery_id}/redeliver")
    def redeliver(self, id: str, delivery_id: str) -> WebhookDelivery:
        """Redeliver an event under the same ID."""
