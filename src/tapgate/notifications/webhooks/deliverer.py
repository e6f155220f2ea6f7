"""Sends events to the endpoints that want them, in the background, until they got there.

Any number of processes may run one: a delivery is claimed by one at a time. A slow endpoint has a
few attempts under way at most, so that it holds up nobody but itself.
"""

import asyncio
from collections import Counter
from typing import Final, NoReturn

import structlog

from tapgate import ids
from tapgate.edge.services import Services
from tapgate.errors import ApiError
from tapgate.notifications.webhooks import model, outbox
from tapgate.notifications.webhooks.model import Due
from tapgate.notifications.webhooks.records import Records, as_it_was, disclosed, kind_of
from tapgate.notifications.webhooks.sending import NoAnswerError, Sender
from tapgate.service.background import repeat

TICK_SECONDS: Final = 0.5
AT_ONCE: Final = 200
AT_ONCE_TO_ONE_ENDPOINT: Final = 10
_FAREWELL_SECONDS: Final = 3.0

_log = structlog.get_logger()


class NoRecordError(Exception):
    """What an event is about cannot be looked up."""


class Deliverer:
    def __init__(self, services: Services, records: Records, sender: Sender | None = None) -> None:
        self._services = services
        self._database = services.database
        self._records = records
        self._sender = sender or Sender(public_only=services.settings.production)
        self._under_way: set[asyncio.Task[None]] = set()
        self._per_endpoint: Counter[int] = Counter()
        self._more_is_due = False
        self._room_again = asyncio.Event()

    async def run(self) -> NoReturn:
        """Delivers until it is cancelled; attempts under way then have a moment to end."""
        try:
            await repeat(
                self.start_due,
                every=TICK_SECONDS,
                name="webhooks.deliverer",
                wake=self._room_again,
            )
        finally:
            await self._finish(within=_FAREWELL_SECONDS)

    async def start_due(self) -> None:
        """Begins an attempt at everything that is due and that there is room for."""
        now = self._services.clock()
        await outbox.end_for_deleted_endpoints(self._database, now)
        self._more_is_due = False
        for endpoint_id in await outbox.due_endpoints(self._database, now):
            room = self._room_for(endpoint_id)
            claimed = (
                await outbox.claim(self._database, endpoint_id, now=now, limit=room)
                if room > 0
                else []
            )
            self._more_is_due |= len(claimed) == room
            for due in claimed:
                self._start(due)

    async def finish(self) -> None:
        """Returns when nothing is under way."""
        while self._under_way:
            await asyncio.wait(self._under_way)

    async def _finish(self, *, within: float) -> None:
        if self._under_way:
            await asyncio.wait(self._under_way, timeout=within)
        for attempt in self._under_way:
            attempt.cancel()
        await asyncio.gather(*self._under_way, return_exceptions=True)

    def _room_for(self, endpoint_id: int) -> int:
        return min(
            AT_ONCE - len(self._under_way),
            AT_ONCE_TO_ONE_ENDPOINT - self._per_endpoint[endpoint_id],
        )

    def _start(self, due: Due) -> None:
        attempt = asyncio.create_task(self._attempt(due))
        self._under_way.add(attempt)
        self._per_endpoint[due.endpoint_id] += 1

        def ended(attempt: asyncio.Task[None]) -> None:
            self._under_way.discard(attempt)
            self._per_endpoint[due.endpoint_id] -= 1
            self._per_endpoint += Counter()  # forgets who has none
            if self._more_is_due:
                self._room_again.set()

        attempt.add_done_callback(ended)

    async def _attempt(self, due: Due) -> None:
        try:
            status, problem = await self._try(due)
            await self._report(due, status, problem)
        except Exception as error:
            # Not reported: it is due again when the claim is over.
            _log.warning(
                "webhooks.attempt_lost",
                delivery_id=ids.show(ids.DELIVERY, due.id),
                error=type(error).__name__,
            )

    async def _try(self, due: Due) -> tuple[int | None, str | None]:
        """The status that was answered, if any; what went wrong, or None."""
        try:
            data = await disclosed(self._services, due.event, await self._data(due))
            body = model.body(due.event, due.occurred_at, data)
            headers = model.headers(due.id, self._secret(due), body, self._services.clock())
            status = await self._sender.send(due.url, headers, body)
        except NoAnswerError as error:
            return None, str(error)
        except Exception as error:
            # Whatever it was: it is tried again on schedule, and in the end given up.
            return None, type(error).__name__
        return status, None if 200 <= status < 300 else f"status {status}"

    async def _report(self, due: Due, status: int | None, problem: str | None) -> None:
        now = self._services.clock()
        if problem is None:
            assert status is not None
            await outbox.delivered(self._database, due, status, now)
            return
        pause = model.pause_after(due.attempts - due.attempts_before)
        _log.info(
            "webhooks.given_up" if pause is None else "webhooks.put_off",
            delivery_id=ids.show(ids.DELIVERY, due.id),
            attempts=due.attempts,
            problem=problem,
        )
        if pause is None:
            await outbox.given_up(self._database, due, status, now)
        else:
            await outbox.put_off(self._database, due, status, now + pause)

    async def _data(self, due: Due) -> str:
        if due.data is not None:
            return due.data
        look_up = self._records.get(kind_of(due.event))
        if look_up is None or due.subject_id is None:
            raise NoRecordError
        try:
            record = await look_up(self._services, due.subject_id)
        except ApiError as error:
            raise NoRecordError from error
        return await outbox.keep_data(self._database, due.event_id, as_it_was(due.event, record))

    def _secret(self, due: Due) -> str:
        context = model.secret_context(due.endpoint_id)
        return self._services.vault.open(due.secret, context).decode()
