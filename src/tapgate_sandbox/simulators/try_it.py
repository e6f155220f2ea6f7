"""Credentials and values of the demo for *Try it* in the API reference, in development only."""

from typing import Any, Final

from tapgate.core.settings.nodes import Environment
from tapgate.http.endpoint import Reply
from tapgate.sites.console.page_request import PageRequest
from tapgate.sites.console.site import Pages
from tapgate_client.errors import ApiError, Code
from tapgate_sandbox.demo.examples import load_example_keys, load_example_people

pages: Final = Pages()


@pages.get("/simulator/try-it")
async def load_try_it_values(request: PageRequest) -> Reply[bytes]:
    """Return the demo's credentials by kind, and values for fields by name.

    Only admins who may create such keys get them. A value of None removes an optional field.
    """
    await request.require_access("POST /api/v1/admin/api-keys")
    settings = request.context.services.settings
    keys = load_example_keys(settings.data_dir)
    people = load_example_people(settings.data_dir)
    if settings.environment != Environment.DEVELOPMENT or keys is None or len(people) < 2:
        raise ApiError(Code.NOT_FOUND)
    payer, recipient = people[:2]
    signing_key = {"keyId": keys.signing_key_id, "secret": keys.signing_secret}
    values: dict[str, Any] = {
        "agent_id": keys.agent_id,
        "agent_pin": keys.agent_pin,
        "amount": "5.00",
        "card_identifier": payer.card,
        "card_proof": None,
        "card_serial": payer.card,
        "merchant_id": None,
        "merchant_name": None,
        "phone_number": payer.phone,
        "pin": payer.pin,
        "recipient_card_serial": recipient.card,
        "recipient_id": None,
        "recipient_phone": None,
        "sender_id": keys.subscriber_id,
        "serial": payer.card,
        "subscriber_id": keys.subscriber_id,
        "terminal_id": None,
        "user_id": keys.subscriber_id,
    }
    credentials = {"bearer": {"token": keys.api_key}, "pos": signing_key}
    return request.render_json({"credentials": credentials, "values": values})
