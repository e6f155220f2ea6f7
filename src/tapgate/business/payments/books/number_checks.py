"""Compares new phone numbers with the other books, and reports those that another book has too."""

from typing import Final, NamedTuple, NoReturn

import asyncpg
import structlog

from tapgate.http.api.services import Services
from tapgate.runtime.background import do_for_each, run_periodically
from tapgate.runtime.store.work_queue import WorkQueue, compute_backoff
from tapgate_client import ids
from tapgate_client.errors import ApiError

_POLL_INTERVAL_SECONDS: Final = 5.0
_LEASED: Final = 16
_MAX_PAUSE_SECONDS: Final = 900.0

_log = structlog.get_logger()

_QUEUE: Final = WorkQueue("number_checks", "job.id, job.attempts, job.status", pending="")
#: The number, or NULL if the subscriber is closed: it pays and receives nothing.
_SELECT_NUMBER: Final = """
    SELECT s.phone_number FROM subscribers s JOIN accounts a ON a.id = s.account_id
    WHERE s.id = $1 AND a.status <> 'closed'"""
#: A number that has changed since the lease has another check, with fewer attempts.
_DELETE: Final = "DELETE FROM number_checks WHERE id = $1 AND attempts = $2"
_POSTPONE: Final = """
    UPDATE number_checks SET next_attempt_at = $3, status = coalesce($4, status),
           book = coalesce($5, book)
    WHERE id = $1 AND attempts = $2"""


class _Check(NamedTuple):
    id: int
    attempts: int
    status: str


class NumberCheckWorker:
    """Background worker. Any number of processes may run it."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._database = services.queue_database

    async def run(self) -> NoReturn:
        await run_periodically(
            self.check_due, every=_POLL_INTERVAL_SECONDS, name="book_numbers.check"
        )

    async def check_due(self) -> None:
        """Check due numbers, unless this process knows no other book."""
        if not self._services.book_peers.codes:
            return
        while len(await self._check_batch()) == _LEASED:
            pass

    async def _check_batch(self) -> list[asyncpg.Record]:
        rows = await _QUEUE.lease(self._database, now=self._services.clock(), limit=_LEASED)
        await do_for_each((_Check(*row) for row in rows), self._check)
        return rows

    async def _check(self, check: _Check) -> None:
        number = await self._database.fetchval(_SELECT_NUMBER, check.id)
        if number is None:
            await self._database.execute(_DELETE, check.id, check.attempts)
            return
        try:
            customer = await self._services.book_peers.find_customer(("phone_number", number))
        except ApiError:
            await self._postpone(check)
            return
        if customer is None:
            await self._database.execute(_DELETE, check.id, check.attempts)
            return
        if check.status != "conflict":
            subscriber_id = ids.encode(ids.SUBSCRIBER, check.id)
            _log.warning("book_numbers.conflict", subscriber=subscriber_id, book=customer.book)
        await self._postpone(check, status="conflict", book=customer.book)

    async def _postpone(
        self, check: _Check, *, status: str | None = None, book: str | None = None
    ) -> None:
        pause = compute_backoff(check.attempts, max_seconds=_MAX_PAUSE_SECONDS)
        due_at = self._services.clock() + pause
        await self._database.execute(_POSTPONE, check.id, check.attempts, due_at, status, book)
