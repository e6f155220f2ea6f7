"""Provider webhook: handshake, deliveries and flow data exchange."""

from typing import Any, ClassVar, Final

import msgspec

from tapgate.http.endpoint import JSON_MEDIA_TYPE, MEBIBYTE, Endpoints, Parameter, Reply
from tapgate.messenger import inbox, runner
from tapgate.messenger.channel import delivery_parser
from tapgate.messenger.channel.delivery_parser import MalformedDeliveryError
from tapgate.messenger.flows import data_endpoint
from tapgate.messenger.gateway_requests import client_request
from tapgate.messenger.model import GatewayUnreachable
from tapgate.messenger.outbox import statuses
from tapgate.messenger.routes.access import CHANNEL, FLOW, HANDSHAKE
from tapgate.messenger.services import Services
from tapgate.messenger.web import (
    TEXT_MEDIA_TYPE,
    RequestContext,
    SuccessStatus,
    invalid,
    parse_query,
)
from tapgate_client.errors import ApiError, Code
from tapgate_client.schemas.provider_warnings import MAX_WARNINGS, ProviderReport

MAX_CHALLENGE_LENGTH: Final = 1024

endpoints = Endpoints("Provider", any_query="The provider may add parameters.")

_PATH: Final = "/api/v1/webhooks/messaging"


def _build_content(example: dict[str, Any]) -> dict[str, Any]:
    """Return OpenAPI content for a body in the provider's format, from an empty example."""
    return {JSON_MEDIA_TYPE: {"schema": _describe(example)}}


def _describe(value: Any) -> dict[str, Any]:
    if isinstance(value, dict):
        members = {name: _describe(member) for name, member in value.items()}
        return {"type": "object", "properties": members}
    if isinstance(value, list):
        return {"type": "array", "items": _describe(value[0])}
    return {"type": "string"}


_MESSAGE: Final = {"from": "", "id": "", "timestamp": "", "type": "", "text": {"body": ""}}
_VALUE: Final = {
    "messaging_product": "",
    "metadata": {"display_phone_number": "", "phone_number_id": ""},
    "contacts": [{"profile": {"name": ""}, "wa_id": ""}],
    "messages": [_MESSAGE],
}
#: Main delivery fields, for the OpenAPI document; `delivery_parser` reads further fields.
DELIVERY_CONTENT: Final = _build_content(
    {"object": "", "entry": [{"id": "", "changes": [{"value": _VALUE}]}]}
)
FLOW_DATA_CONTENT: Final = _build_content(
    {"encrypted_flow_data": "", "encrypted_aes_key": "", "initial_vector": ""}
)
FLOW_MEDIA: Final = ("text/plain",)
#: Statuses of flow data exchanges with a text body, in addition to 200.
FLOW_STATUSES: Final = (400, 421, 427, 503)


class DeliveryResponse(msgspec.Struct, frozen=True, kw_only=True):
    EXAMPLE: ClassVar = {"status": "success"}

    status: SuccessStatus


@endpoints.get(
    _PATH,
    access=HANDSHAKE,
    parameters=(
        Parameter(name="hub.mode", description="Must be `subscribe`"),
        Parameter(
            name="hub.verify_token", description="The value of TAPGATE_MESSENGER_VERIFY_TOKEN"
        ),
        Parameter(
            name="hub.challenge",
            description="Returned unchanged",
            schema={"type": "string", "minLength": 1, "maxLength": MAX_CHALLENGE_LENGTH},
        ),
    ),
    media=("text/plain",),
    errors=(Code.INVALID_REQUEST,),
)
async def verify_webhook(request: RequestContext) -> Reply[bytes]:
    """Complete the provider's webhook handshake by returning its challenge."""
    challenge = parse_query(request.query).get("hub.challenge", "")
    if not challenge:
        raise invalid("hub.challenge is required")
    if len(challenge) > MAX_CHALLENGE_LENGTH:
        raise invalid(f"hub.challenge must have at most {MAX_CHALLENGE_LENGTH} characters")
    return Reply(challenge.encode(), content_type=TEXT_MEDIA_TYPE)


@endpoints.post(
    _PATH,
    access=CHANNEL,
    body_schema=DELIVERY_CONTENT,
    body_limit=3 * MEBIBYTE,  # the largest delivery that the provider sends
)
async def receive_delivery(request: RequestContext, body: bytes) -> DeliveryResponse:
    """Receive messages and status reports from the provider.

    Returns once the messages and reports are stored, and the gateway has stored warnings about
    templates, the account and the phone number. Each message is handled once afterwards, even
    if it is delivered several times. Messages over the sender's rate limit are acknowledged but not
    handled.
    """
    return await store_delivery(request)


async def store_delivery(
    request: RequestContext, *, has_inline_images: bool = False
) -> DeliveryResponse:
    """Store a delivery's messages and status reports."""
    services = request.services
    try:
        delivery = delivery_parser.parse_delivery(
            request.body,
            has_inline_images=has_inline_images,
            phone_number_id=services.settings.messenger_phone_number_id,
        )
    except MalformedDeliveryError:
        raise invalid("The body must be a JSON object") from None
    await inbox.store_messages(services, delivery.messages)
    await statuses.record(
        services.database,
        delivery.statuses,
        services.clock(),
        keep_content=not services.settings.is_production,
    )
    await _report_provider_warnings(services, delivery.provider_reports)
    return DeliveryResponse(status="success")


async def _report_provider_warnings(services: Services, reports: list[ProviderReport]) -> None:
    """Pass the provider's warnings on to the gateway.

    If the gateway does not store them, the response is 503, and the provider delivers them again
    for several days. A delivery with more warnings than one request takes is never a real one.
    """
    if not reports:
        return
    request = client_request("messages.report_provider_warnings", reports[-MAX_WARNINGS:])
    if isinstance(await services.perform_request(request), GatewayUnreachable):
        raise ApiError(Code.SERVICE_UNAVAILABLE)


@endpoints.post(
    f"{_PATH}/flows",
    access=FLOW,
    body_schema=FLOW_DATA_CONTENT,
    media=FLOW_MEDIA,
    other_statuses=FLOW_STATUSES,
)
async def exchange_flow_data(request: RequestContext, body: bytes) -> Reply[bytes]:
    """Exchange encrypted flow data with the provider.

    Returns 421 if the data cannot be decrypted, so that the provider fetches the public key again,
    and 427 if the form can no longer be used.
    """
    return await handle_flow_data(request)


async def handle_flow_data(request: RequestContext) -> Reply[bytes]:
    status, text = await data_endpoint.handle(request.services, request.body, runner.submit_form)
    return Reply(text.encode(), status=status, content_type=TEXT_MEDIA_TYPE)
