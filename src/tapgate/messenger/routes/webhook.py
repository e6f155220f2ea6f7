"""The channel's webhook: its handshake, its deliveries, and the data exchange of its flows."""

from typing import Any, ClassVar, Final

import msgspec

from tapgate.messenger import inbox, runner
from tapgate.messenger.channel import incoming
from tapgate.messenger.channel.incoming import MalformedDelivery
from tapgate.messenger.flows import exchange
from tapgate.messenger.outbox import statuses
from tapgate.messenger.routes import reading
from tapgate.messenger.routes.route import Refusal, Request, Success, json_answer, text_answer
from tapgate.service.http import Response

LONGEST_CHALLENGE: Final = 1024


_TEXT: Final = {"type": "string"}


def _object(**members: Any) -> dict[str, Any]:
    return {"type": "object", "properties": members}


def _array(items: Any) -> dict[str, Any]:
    return {"type": "array", "items": items}


#: What is looked at in a delivery. All of it may be missing, and more may be there.
DELIVERY: Final = _object(
    object=_TEXT,
    entry=_array(
        _object(
            id=_TEXT,
            changes=_array(
                _object(
                    value=_object(
                        messaging_product=_TEXT,
                        metadata=_object(display_phone_number=_TEXT, phone_number_id=_TEXT),
                        contacts=_array(_object(profile=_object(name=_TEXT), wa_id=_TEXT)),
                        messages=_array(
                            _object(
                                **{"from": _TEXT},
                                id=_TEXT,
                                timestamp=_TEXT,
                                type=_TEXT,
                                text=_object(body=_TEXT),
                            )
                        ),
                    )
                )
            ),
        )
    ),
)
FLOW_DATA: Final = _object(encrypted_flow_data=_TEXT, encrypted_aes_key=_TEXT, initial_vector=_TEXT)


class Acknowledged(msgspec.Struct, frozen=True, kw_only=True):
    EXAMPLE: ClassVar = {"status": "success"}

    status: Success


async def verify_webhook(request: Request) -> Response:
    """Answer the provider's handshake with its challenge."""
    challenge = reading.query(request.query).get("hub.challenge", "")
    if not challenge:
        raise Refusal(400, "hub.challenge is required")
    if len(challenge) > LONGEST_CHALLENGE:
        raise Refusal(400, f"hub.challenge must have at most {LONGEST_CHALLENGE} characters")
    return text_answer(200, challenge)


async def receive_delivery(request: Request) -> Response:
    """Take in what the provider delivers.

    Answered as soon as all messages in it are stored; they are acted on afterwards, each once
    however often it is delivered. So too over the rate, but then the message is not acted on.
    """
    return await take_delivery(request)


async def take_delivery(request: Request, *, pictures_inside: bool = False) -> Response:
    """Store the messages and status reports of a delivery."""
    services = request.services
    try:
        delivery = incoming.read(
            request.body,
            pictures_inside=pictures_inside,
            phone_number_id=services.settings.messenger_phone_number_id,
        )
    except MalformedDelivery:
        raise Refusal(400, "The body is not a delivery in JSON") from None
    await inbox.take_in(services, delivery.messages)
    await statuses.record(services.database, delivery.statuses, services.clock())
    return json_answer(200, Acknowledged(status="success"))


async def exchange_flow_data(request: Request) -> Response:
    """Exchange a flow's data with the provider, encrypted both ways.

    421: it cannot be decrypted, the provider should fetch the public key again. 427: the form can
    no longer be used.
    """
    status, body = await exchange.handle(request.services, request.body, runner.enter)
    return text_answer(status, body)
