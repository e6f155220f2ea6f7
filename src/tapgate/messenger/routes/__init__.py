"""Everything that the messenger answers to, in one table."""

from typing import Final

from tapgate.messenger.routes import bridge, messages, simulator, system, webhook
from tapgate.messenger.routes.access import ANYBODY, BRIDGE, CHANNEL, FLOW, HANDSHAKE, SERVICE
from tapgate.messenger.routes.route import KIBIBYTE, MEBIBYTE, Parameter, Route

_WEBHOOK: Final = "/api/v1/webhooks/messaging"
_SIMULATOR: Final = "/api/v1/simulator"

ROUTES: Final = (
    Route(
        method="POST",
        path="/api/v1/external/messaging",
        handler=bridge.receive_bridge_message,
        access=BRIDGE,
        body=bridge.BridgeMessage,
        body_limit=8 * MEBIBYTE,  # a picture may be in it
        answers={200: bridge.BridgeAnswer, 500: bridge.BridgeFailure},
    ),
    Route(
        method="GET",
        path=_WEBHOOK,
        handler=webhook.verify_webhook,
        access=HANDSHAKE,
        parameters=(
            Parameter(name="hub.mode", sentence="`subscribe`"),
            Parameter(name="hub.verify_token", sentence="TAPGATE_MESSENGER_VERIFY_TOKEN"),
            Parameter(
                name="hub.challenge",
                sentence="Is answered as it is",
                schema={
                    "type": "string",
                    "minLength": 1,
                    "maxLength": webhook.LONGEST_CHALLENGE,
                },
            ),
        ),
        answers={200: str, 400: None},
    ),
    Route(
        method="POST",
        path=_WEBHOOK,
        handler=webhook.receive_delivery,
        access=CHANNEL,
        body=webhook.DELIVERY,
        body_limit=3 * MEBIBYTE,  # the largest delivery that the provider sends
        answers={200: webhook.Acknowledged},
    ),
    Route(
        method="POST",
        path=f"{_WEBHOOK}/flows",
        handler=webhook.exchange_flow_data,
        access=FLOW,
        body=webhook.FLOW_DATA,
        answers={200: str, 400: str, 421: str, 427: str, 503: str},
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
                place="header",
                sentence="Makes it happen once",
                required=False,
                schema={"type": "string", "minLength": 1, "maxLength": messages.LONGEST_KEY},
            ),
        ),
        answers={202: messages.Accepted, 422: None},
    ),
    Route(
        method="GET",
        path="/api/v1/messages/outbox",
        handler=messages.list_outbox_messages,
        access=SERVICE,
        parameters=(Parameter(name="to", sentence="A phone number in E.164 form"),),
        answers={200: messages.Outbox, 400: None},
        in_production=False,
    ),
    Route(
        method="POST",
        path=f"{_SIMULATOR}/deliveries",
        handler=simulator.receive_simulated_delivery,
        access=SERVICE,
        body=webhook.DELIVERY,
        body_limit=8 * MEBIBYTE,  # a picture may be in it
        answers={200: webhook.Acknowledged},
        in_production=False,
    ),
    Route(
        method="POST",
        path=f"{_SIMULATOR}/flows",
        handler=simulator.exchange_simulated_flow_data,
        access=SERVICE,
        body=webhook.FLOW_DATA,
        answers={200: str, 400: str, 421: str, 427: str, 503: str},
        in_production=False,
    ),
    Route(
        method="GET",
        path=f"{_SIMULATOR}/form-key",
        handler=simulator.get_form_key,
        access=SERVICE,
        answers={200: simulator.FormKey},
        in_production=False,
    ),
    Route(
        method="GET",
        path="/health",
        handler=system.get_health,
        access=ANYBODY,
        answers={200: system.Health, 503: system.Health},
    ),
)
