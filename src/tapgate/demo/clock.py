"""A clock that stands still until it is moved, so that months can be lived in seconds."""

from datetime import UTC, datetime, timedelta
from typing import Final

_TICK: Final = timedelta(milliseconds=1)


class SimulatedClock:
    def __init__(self, moment: datetime) -> None:
        self._now = moment.astimezone(UTC)

    def __call__(self) -> datetime:
        return self._now

    def advance_to(self, moment: datetime) -> None:
        """Forward; a moment that is over already becomes the next possible one."""
        self._now = max(moment.astimezone(UTC), self._now + _TICK)
