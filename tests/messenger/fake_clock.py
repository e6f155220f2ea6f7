from datetime import UTC, datetime, timedelta


class FakeClock:
    """Clock that advances only when a test calls `advance`."""

    def __init__(self) -> None:
        self.now = datetime(2026, 1, 31, 12, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now

    def advance(self, **delta: float) -> None:
        self.now += timedelta(**delta)
