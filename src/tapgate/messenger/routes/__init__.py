"""The messenger's endpoints."""

from itertools import chain
from typing import Final

from tapgate.messenger.routes import bridge, simulator, system, template_messages, webhook

ENDPOINTS: Final = tuple(
    chain(
        bridge.endpoints,
        webhook.endpoints,
        template_messages.endpoints,
        simulator.endpoints,
        system.endpoints,
    )
)
