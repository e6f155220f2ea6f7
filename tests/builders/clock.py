"""Clock that is set by tests."""

from datetime import UTC, datetime, timedelta


class FakeClock:
    """Clock that advances only when a test sets it."""

    def __init__(self, moment: datetime | None = None) -> None:
        self.now = moment or datetime(2026, 1, 31, 12, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now

    def milliseconds(self) -> int:
        return int(self.now.timestamp() * 1000)

    def advance(self, **delta: float) -> None:
        self.now += timedelta(**delta)
