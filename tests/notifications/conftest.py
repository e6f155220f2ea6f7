import dataclasses
from collections.abc import AsyncIterator

import pytest

from notifications.builders import FakeClock
from notifications.webhook_receiver import WebhookReceiver
from tapgate.edge.services import Services
from tapgate.notifications import messages
from tapgate.notifications.webhooks import sender, worker
from tapgate.store import signals


@pytest.fixture(autouse=True)
def _patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Raise timeouts, because a slow machine would log connection losses that tests count."""
    monkeypatch.setattr(signals, "_QUERY_TIMEOUT_SECONDS", 30.0)
    monkeypatch.setattr(sender, "RESPONSE_TIMEOUT_SECONDS", 30.0)
    monkeypatch.setattr(sender, "_CONNECT_TIMEOUT_SECONDS", 30.0)
    monkeypatch.setattr(worker, "_SHUTDOWN_TIMEOUT_SECONDS", 30.0)
    monkeypatch.setattr(messages, "_REQUEST_TIMEOUT_SECONDS", 30.0)


@pytest.fixture
def set_clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def timed(services: Services, set_clock: FakeClock) -> Services:
    """Services that use the test's clock."""
    return dataclasses.replace(services, clock=set_clock)


@pytest.fixture
async def receiver() -> AsyncIterator[WebhookReceiver]:
    receiver = WebhookReceiver()
    async with receiver.listen():
        yield receiver
