import dataclasses
from collections.abc import AsyncIterator

import pytest

from builders.auth import FakeClock
from drivers.webhooks import WebhookReceiver
from tapgate.core.id_generator import IdGenerator
from tapgate.events.notifications import notification_messages
from tapgate.events.webhooks import sender, worker
from tapgate.http.api.services import Services
from tapgate.runtime.store import signals


@pytest.fixture(autouse=True)
def _raise_timeouts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Raise timeouts that a slow machine might exceed, which would change results and logs."""
    monkeypatch.setattr(signals, "QUERY_TIMEOUT_SECONDS", 30.0)
    monkeypatch.setattr(sender, "RESPONSE_TIMEOUT_SECONDS", 30.0)
    monkeypatch.setattr(sender, "CONNECT_TIMEOUT_SECONDS", 30.0)
    monkeypatch.setattr(worker, "SHUTDOWN_TIMEOUT_SECONDS", 30.0)
    monkeypatch.setattr(notification_messages, "REQUEST_TIMEOUT_SECONDS", 30.0)


@pytest.fixture
def fake_clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def services_with_fake_clock(services: Services, fake_clock: FakeClock) -> Services:
    """Return services that use the test's clock, also for the time in IDs."""
    new_id = IdGenerator(998, lambda: int(fake_clock().timestamp() * 1000))
    return dataclasses.replace(services, clock=fake_clock, new_id=new_id)


@pytest.fixture
async def receiver() -> AsyncIterator[WebhookReceiver]:
    receiver = WebhookReceiver()
    async with receiver.listen():
        yield receiver
