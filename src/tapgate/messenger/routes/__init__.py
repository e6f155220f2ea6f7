"""Endpoints of the messenger."""

from itertools import chain
from typing import Final

from tapgate.messenger.routes import bridge, messages, simulator, system, webhook

ENDPOINTS: Final = tuple(
    chain(
        bridge.endpoints,
        webhook.endpoints,
        messages.endpoints,
        simulator.endpoints,
        system.endpoints,
    )
)
