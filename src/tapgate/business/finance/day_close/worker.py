"""Closes each day automatically, 15 minutes after it ends."""

from datetime import date, timedelta
from typing import Final, NoReturn

from tapgate.auth.actors import Actor
from tapgate.business.finance.day_close import queries
from tapgate.business.finance.day_close.model import get_day_end
from tapgate.business.finance.day_close.operations import DayCloser
from tapgate.core.settings.business import DayClose
from tapgate.http.api.services import Services
from tapgate.runtime.background import run_periodically
from tapgate_client.clock import get_platform_day

_INTERVAL_SECONDS: Final = 30.0
_DELAY: Final = timedelta(minutes=15)
SYSTEM_ACTOR: Final = Actor(record={"type": "system", "id": "day close"})


class DayCloseWorker:
    """Background worker. Every process runs it; the first one closes the day for all."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._closed: date | None = None

    async def run(self) -> NoReturn:
        await run_periodically(self.close_due_days, every=_INTERVAL_SECONDS, name="day.close")

    async def close_due_days(self) -> None:
        services = self._services
        if services.settings.day_close != DayClose.AUTO:
            return
        last = get_platform_day(services.clock() - _DELAY, services.settings.timezone)
        day = last - timedelta(days=1)
        if day == self._closed:
            return
        end = get_day_end(day, services.settings.timezone)
        if await queries.has_entries_before(services.database, end):
            await build_closer(services).close(day, SYSTEM_ACTOR)
        self._closed = day


def build_closer(services: Services) -> DayCloser:
    return DayCloser(
        services.database, services.vault, services.settings, services.clock, services.new_id
    )
