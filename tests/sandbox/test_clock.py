"""The files that shift the sandbox's clock."""

from datetime import timedelta
from pathlib import Path
from typing import Any

from tapgate.core.settings import load_settings
from tapgate.runtime.health import HealthMonitor
from tapgate.runtime.store.server_status import ServerStatus
from tapgate_client.clock import system_clock
from tapgate_client.schemas.health import Replication, ReplicationMode
from tapgate_sandbox import clock


def test_file_shifts_the_clock_while_it_runs(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(clock, "READ_INTERVAL_SECONDS", 0)
    file = tmp_path / clock.FILE_NAME
    file.write_text("0")
    shifted = clock.choose_clock(load_settings({"TAPGATE_DATA_DIR": str(tmp_path)}))
    for offset in (0, 86_400, -60.5):
        file.write_text(str(offset))
        difference = shifted() - system_clock()
        assert abs(difference - timedelta(seconds=offset)) < timedelta(seconds=5)


async def test_health_check_sees_a_clock_error_and_no_offset(
    tmp_path: Path, monkeypatch: Any
) -> None:
    monkeypatch.setattr(clock, "READ_INTERVAL_SECONDS", 0)
    clock.write_offset(tmp_path / clock.FILE_NAME, 86_400)
    clock.write_offset(tmp_path / clock.ERROR_FILE_NAME, 0)
    settings = load_settings({"TAPGATE_DATA_DIR": str(tmp_path)})
    health = HealthMonitor(settings, clock.wrap_probe(settings, _probe))
    assert (await health.get_readiness()).ready
    clock.write_offset(tmp_path / clock.ERROR_FILE_NAME, 90)
    health = HealthMonitor(settings, health.probe)
    reasons = (await health.get_readiness()).reasons
    assert [reason.code for reason in reasons] == ["clock_offset"]
    difference = clock.choose_clock(settings)() - system_clock()
    assert abs(difference - timedelta(seconds=86_490)) < timedelta(seconds=5)


async def _probe() -> ServerStatus:
    replication = Replication(mode=ReplicationMode.NONE)
    return ServerStatus(is_read_only=False, clock_offset=0.0, replication=replication)


def test_without_a_file_the_clock_is_the_system_clock(tmp_path: Path) -> None:
    settings = load_settings({"TAPGATE_DATA_DIR": str(tmp_path)})
    assert clock.choose_clock(settings) is system_clock
