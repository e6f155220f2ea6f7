"""Background tasks of the gateway."""

import asyncio

import pytest
from structlog.testing import capture_logs

from tapgate import gateway
from tapgate.api.services import Services
from tapgate.notifications.messages import MessageSender


async def test_failed_background_task_is_logged(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(self: MessageSender) -> None:
        raise OSError("no certificates here")

    monkeypatch.setattr(MessageSender, "run", fail)
    with capture_logs() as lines:
        async with gateway._start_background_tasks(services):
            async with asyncio.timeout(30):
                while not any(line["event"] == "background.task_failed" for line in lines):
                    await asyncio.sleep(0.01)
    (line,) = [line for line in lines if line["event"] == "background.task_failed"]
    assert line["log_level"] == "error"
    assert line["failure"]["types"] == ["builtins.OSError"]
    assert "certificates" not in str(line)
