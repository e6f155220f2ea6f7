"""Route table of the messenger."""

from typing import Final

from tapgate.messenger.routes import bridge, messages, simulator, system, webhook
from tapgate.messenger.routes.access import BRIDGE, CHANNEL, FLOW, HANDSHAKE, PUBLIC, SERVICE
from tapgate.messenger.routes.route import KIBIBYTE, MEBIBYTE, Parameter, Route

_WEBHOOK_PATH: Final = "/api/v1/webhooks/messaging"
_SIMULATOR_PATH: Final = "/api/v1/simulator"

ROUTES: Final = (
    Route(
        method="POST",
        path="/api/v1/external/messaging",
        handler=bridge.receive_bridge_message,
        access=BRIDGE,
        body=bridge.BridgeMessage,
        body_limit=8 * MEBIBYTE,  # may contain an image
        responses={200: bridge.BridgeResponse, 500: bridge.BridgeErrorResponse},
    ),
    Route(
        method="GET",
        path=_WEBHOOK_PATH,
        handler=webhook.verify_webhook,
        access=HANDSHAKE,
        parameters=(
            Parameter(name="hub.mode", description="Must be `subscribe`"),
            Parameter(
                name="hub.verify_token", description="The value of TAPGATE_MESSENGER_VERIFY_TOKEN"
            ),
            Parameter(
                name="hub.challenge",
                description="Returned unchanged",
                schema={
                    "type": "string",
                    "minLength": 1,
                    "maxLength": webhook.MAX_CHALLENGE_LENGTH,
                },
            ),
        ),
        responses={200: str, 400: None},
    ),
    Route(
        method="POST",
        path=_WEBHOOK_PATH,
        handler=webhook.receive_delivery,
        access=CHANNEL,
        body=webhook.DELIVERY_SCHEMA,
        body_limit=3 * MEBIBYTE,  # the largest delivery that the provider sends
        responses={200: webhook.DeliveryResponse},
    ),
    Route(
        method="POST",
        path=f"{_WEBHOOK_PATH}/flows",
        handler=webhook.exchange_flow_data,
        access=FLOW,
        body=webhook.FLOW_DATA_SCHEMA,
        responses={200: str, 400: str, 421: str, 427: str, 503: str},
    ),
    Route(
        method="POST",
        path="/api/v1/messages/template",
        handler=messages.send_template,
        access=SERVICE,
        body=messages.TemplateMessage,
        body_limit=256 * KIBIBYTE,  # all parameters at their maximum length, escaped
        parameters=(
            Parameter(
                name="Idempotency-Key",
                location="header",
                description="Repeating a key sends nothing and returns the ID of the first message",
                required=False,
                schema={"type": "string", "minLength": 1, "maxLength": messages.MAX_KEY_LENGTH},
            ),
        ),
        responses={202: messages.TemplateMessageResponse, 422: None},
    ),
    Route(
        method="GET",
        path="/api/v1/messages/outbox",
        handler=messages.list_outbox_messages,
        access=SERVICE,
        parameters=(Parameter(name="to", description="Phone number in E.164 format"),),
        responses={200: messages.OutboxResponse, 400: None},
        in_production=False,
    ),
    Route(
        method="POST",
        path=f"{_SIMULATOR_PATH}/deliveries",
        handler=simulator.receive_simulated_delivery,
        access=SERVICE,
        body=webhook.DELIVERY_SCHEMA,
        body_limit=8 * MEBIBYTE,  # may contain an image
        responses={200: webhook.DeliveryResponse},
        in_production=False,
    ),
    Route(
        method="POST",
        path=f"{_SIMULATOR_PATH}/flows",
        handler=simulator.exchange_simulated_flow_data,
        access=SERVICE,
        body=webhook.FLOW_DATA_SCHEMA,
        responses={200: str, 400: str, 421: str, 427: str, 503: str},
        in_production=False,
    ),
    Route(
        method="GET",
        path=f"{_SIMULATOR_PATH}/form-key",
        handler=simulator.get_form_key,
        access=SERVICE,
        responses={200: simulator.FormKey},
        in_production=False,
    ),
    Route(
        method="GET",
        path="/health",
        handler=system.get_health,
        access=PUBLIC,
        responses={200: system.Health, 503: system.Health},
    ),
)
