"""Endpoints for simulated phones, where an internal service takes the provider's role.

No account at the provider is needed. Simulated deliveries are parsed, stored and handled like those
of the provider. Not available in production.
"""

import msgspec

from tapgate.http.endpoint import MEBIBYTE, Endpoints, Reply
from tapgate.messenger.routes import webhook
from tapgate.messenger.routes.access import SERVICE
from tapgate.messenger.web import RequestContext

endpoints = Endpoints("Simulator")


class FormKey(msgspec.Struct, frozen=True, kw_only=True):
    """Public key that encrypts form data, in PEM format; null if forms are disabled."""

    public_pem: str | None


@endpoints.post(
    "/api/v1/simulator/deliveries",
    access=SERVICE,
    body_schema=webhook.DELIVERY_CONTENT,
    body_limit=8 * MEBIBYTE,  # may contain an image
    in_production=False,
)
async def receive_simulated_delivery(
    request: RequestContext, body: bytes
) -> webhook.DeliveryResponse:
    """Receive a delivery from a simulated phone, in the provider's format.

    An image can be sent inline: `image.data` is a data URI that replaces `image.id`. Not available
    in production.
    """
    return await webhook.store_delivery(request, has_inline_images=True)


@endpoints.post(
    "/api/v1/simulator/flows",
    access=SERVICE,
    body_schema=webhook.FLOW_DATA_CONTENT,
    media=webhook.FLOW_MEDIA,
    other_statuses=webhook.FLOW_STATUSES,
    in_production=False,
)
async def exchange_simulated_flow_data(request: RequestContext, body: bytes) -> Reply[bytes]:
    """Exchange form data with a simulated phone.

    The request and the response are encrypted as for the provider. Not available in production.
    """
    return await webhook.handle_flow_data(request)


@endpoints.get("/api/v1/simulator/form-key", access=SERVICE, in_production=False)
async def get_form_key(request: RequestContext) -> FormKey:
    """Return the public key for encrypting form data.

    Not available in production.
    """
    key = request.services.flow_key
    return FormKey(public_pem=None if key is None else key.public_pem)
