"""Progress reports from a long command whose output is not a terminal."""

import io

import pytest

from tapgate.runtime import progress
from tapgate.runtime.progress import LineProgress


class ClosedPipe(io.StringIO):
    def write(self, text: str) -> int:
        raise BrokenPipeError


def test_progress_is_printed_at_most_every_ten_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    now, output = 100.0, io.StringIO()
    monkeypatch.setattr(progress.time, "monotonic", lambda: now)
    line_progress = LineProgress("Saving", output)
    for seconds, percent in ((5.0, 10), (11.0, 20), (15.0, 30), (22.0, 40)):
        now = 100.0 + seconds
        line_progress.report(f"{percent}%")
    assert output.getvalue() == "Saving: 20%\nSaving: 40%\n"


def test_closed_output_does_not_abort_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    line_progress = LineProgress("Saving", ClosedPipe())
    monkeypatch.setattr(progress.time, "monotonic", lambda: float("inf"))
    line_progress.report("10%")
