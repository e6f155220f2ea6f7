"""Endpoints for simulated phones, where an internal service takes the provider's role.

No account at the provider is needed. Simulated deliveries are parsed, stored and handled like those
of the provider. Not available in production.
"""

import msgspec

from tapgate.http.messages import Response
from tapgate.messenger import runner
from tapgate.messenger.flows import data_endpoint
from tapgate.messenger.routes.route import Request, render_json, render_text
from tapgate.messenger.routes.webhook import store_delivery


class FormKey(msgspec.Struct, frozen=True, kw_only=True):
    """Public key that encrypts form data, in PEM format; null if forms are disabled."""

    public_pem: str | None


async def receive_simulated_delivery(request: Request) -> Response:
    """Receive a delivery from a simulated phone, in the provider's format.

    An image can be sent inline: `image.data` is a data URI that replaces `image.id`. Not available
    in production.
    """
    return await store_delivery(request, has_inline_images=True)


async def exchange_simulated_flow_data(request: Request) -> Response:
    """Exchange form data with a simulated phone.

    The request and the response are encrypted as for the provider. Not available in production.
    """
    status, body = await data_endpoint.handle(request.services, request.body, runner.submit_form)
    return render_text(status, body)


async def get_form_key(request: Request) -> Response:
    """Return the public key for encrypting form data.

    Not available in production.
    """
    key = request.services.flow_key
    return render_json(200, FormKey(public_pem=None if key is None else key.public_pem))
