"""Simulated clock that moves only when advanced, so that months can be simulated in seconds."""

from datetime import UTC, datetime, timedelta
from typing import Final

_TICK: Final = timedelta(milliseconds=1)


class SimulatedClock:
    def __init__(self, moment: datetime) -> None:
        self._now = moment.astimezone(UTC)

    def __call__(self) -> datetime:
        return self._now

    def advance_to(self, moment: datetime) -> None:
        """Advance to a time, but by at least one tick."""
        self._now = max(moment.astimezone(UTC), self._now + _TICK)
