"""The provider's part, played by an internal service: how a phone is simulated without an account
at the provider. What comes in this way is read, stored, acted on and answered like the provider's
own deliveries. Not in production."""

import msgspec

from tapgate.messenger import runner
from tapgate.messenger.flows import data_endpoint
from tapgate.messenger.routes.route import Request, render_json, render_text
from tapgate.messenger.routes.webhook import store_delivery
from tapgate.service.http import Response


class FormKey(msgspec.Struct, frozen=True, kw_only=True):
    """In PEM; null where there are no forms."""

    public_pem: str | None


async def receive_simulated_delivery(request: Request) -> Response:
    """Take in what a simulated phone sends, in the shape of the provider's deliveries.

    A picture may come along: `image.data` is a data URI, in the place of `image.id`. Not in
    production.
    """
    return await store_delivery(request, pictures_inside=True)


async def exchange_simulated_flow_data(request: Request) -> Response:
    """Exchange the data of a form that is filled in on a simulated phone, encrypted both ways.

    As for the provider. Not in production.
    """
    status, body = await data_endpoint.handle(request.services, request.body, runner.submit_form)
    return render_text(status, body)


async def get_form_key(request: Request) -> Response:
    """Show the public key that forms are encrypted with.

    Not in production.
    """
    key = request.services.flow_key
    return render_json(200, FormKey(public_pem=None if key is None else key.public_pem))
