"""Webhook of the channel's provider: handshake, deliveries and flow data exchange."""

from typing import Any, ClassVar, Final

import msgspec

from tapgate.http.messages import Response
from tapgate.messenger import inbox, runner
from tapgate.messenger.channel import delivery_parser
from tapgate.messenger.channel.delivery_parser import MalformedDeliveryError
from tapgate.messenger.flows import data_endpoint
from tapgate.messenger.outbox import statuses
from tapgate.messenger.routes import parsing
from tapgate.messenger.routes.route import (
    HttpError,
    Request,
    SuccessStatus,
    render_json,
    render_text,
)

MAX_CHALLENGE_LENGTH: Final = 1024


_STRING_SCHEMA: Final = {"type": "string"}


def _build_object_schema(**members: Any) -> dict[str, Any]:
    return {"type": "object", "properties": members}


def _build_array_schema(items: Any) -> dict[str, Any]:
    return {"type": "array", "items": items}


#: Main fields of a delivery, for the OpenAPI document; `delivery_parser` reads further fields.
DELIVERY_SCHEMA: Final = _build_object_schema(
    object=_STRING_SCHEMA,
    entry=_build_array_schema(
        _build_object_schema(
            id=_STRING_SCHEMA,
            changes=_build_array_schema(
                _build_object_schema(
                    value=_build_object_schema(
                        messaging_product=_STRING_SCHEMA,
                        metadata=_build_object_schema(
                            display_phone_number=_STRING_SCHEMA, phone_number_id=_STRING_SCHEMA
                        ),
                        contacts=_build_array_schema(
                            _build_object_schema(
                                profile=_build_object_schema(name=_STRING_SCHEMA),
                                wa_id=_STRING_SCHEMA,
                            )
                        ),
                        messages=_build_array_schema(
                            _build_object_schema(
                                **{"from": _STRING_SCHEMA},
                                id=_STRING_SCHEMA,
                                timestamp=_STRING_SCHEMA,
                                type=_STRING_SCHEMA,
                                text=_build_object_schema(body=_STRING_SCHEMA),
                            )
                        ),
                    )
                )
            ),
        )
    ),
)
FLOW_DATA_SCHEMA: Final = _build_object_schema(
    encrypted_flow_data=_STRING_SCHEMA,
    encrypted_aes_key=_STRING_SCHEMA,
    initial_vector=_STRING_SCHEMA,
)


class DeliveryResponse(msgspec.Struct, frozen=True, kw_only=True):
    EXAMPLE: ClassVar = {"status": "success"}

    status: SuccessStatus


async def verify_webhook(request: Request) -> Response:
    """Complete the provider's webhook handshake by returning its challenge."""
    challenge = parsing.parse_query(request.query).get("hub.challenge", "")
    if not challenge:
        raise HttpError(400, "hub.challenge is required")
    if len(challenge) > MAX_CHALLENGE_LENGTH:
        raise HttpError(400, f"hub.challenge must have at most {MAX_CHALLENGE_LENGTH} characters")
    return render_text(200, challenge)


async def receive_delivery(request: Request) -> Response:
    """Receive messages and status reports from the provider.

    Returns once the messages and reports are stored. Each message is handled once afterwards, even
    if it is delivered several times. Messages over the sender's rate limit are acknowledged but not
    handled.
    """
    return await store_delivery(request)


async def store_delivery(request: Request, *, has_inline_images: bool = False) -> Response:
    """Store the messages and status reports of a delivery."""
    services = request.services
    try:
        delivery = delivery_parser.parse_delivery(
            request.body,
            has_inline_images=has_inline_images,
            phone_number_id=services.settings.messenger_phone_number_id,
        )
    except MalformedDeliveryError:
        raise HttpError(400, "The body must be a JSON object") from None
    await inbox.store_messages(services, delivery.messages)
    await statuses.record(services.database, delivery.statuses, services.clock())
    return render_json(200, DeliveryResponse(status="success"))


async def exchange_flow_data(request: Request) -> Response:
    """Exchange encrypted flow data with the provider.

    Returns 421 if the data cannot be decrypted, so that the provider fetches the public key again,
    and 427 if the form can no longer be used.
    """
    status, body = await data_endpoint.handle(request.services, request.body, runner.submit_form)
    return render_text(status, body)
