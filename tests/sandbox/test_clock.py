"""The file that shifts the sandbox's clock."""

from datetime import timedelta
from pathlib import Path
from typing import Any

from tapgate.core.settings import load_settings
from tapgate_client.clock import system_clock
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


def test_without_a_file_the_clock_is_the_system_clock(tmp_path: Path) -> None:
    settings = load_settings({"TAPGATE_DATA_DIR": str(tmp_path)})
    assert clock.choose_clock(settings) is system_clock
