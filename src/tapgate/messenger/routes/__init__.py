"""The messenger's endpoints."""

from itertools import chain
from typing import Final

from tapgate.messenger.routes import (
    bridge,
    simulator,
    sms_reports,
    system,
    template_messages,
    webhook,
)

ENDPOINTS: Final = tuple(
    chain(
        bridge.endpoints,
        webhook.endpoints,
        template_messages.endpoints,
        sms_reports.endpoints,
        simulator.endpoints,
        system.endpoints,
    )
)
