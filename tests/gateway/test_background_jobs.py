"""Background tasks of the gateway."""

import asyncio

import pytest
from structlog.testing import capture_logs

from tapgate import gateway
from tapgate.edge.services import Services
from tapgate.notifications.messages import MessageSender


async def test_failed_background_task_is_logged(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def raise_os_error(self: MessageSender) -> None:
        raise OSError("no certificates here")

    monkeypatch.setattr(MessageSender, "run", raise_os_error)
    with capture_logs() as log_entries:
        async with gateway._start_background_tasks(services):
            async with asyncio.timeout(30):
                while not any(
                    log_entry["event"] == "background.task_failed" for log_entry in log_entries
                ):
                    await asyncio.sleep(0.01)
    (log_entry,) = [
        log_entry for log_entry in log_entries if log_entry["event"] == "background.task_failed"
    ]
    assert log_entry["log_level"] == "error"
    assert log_entry["failure"]["types"] == ["builtins.OSError"]
    assert "certificates" not in str(log_entry)
