"""Background worker that sends events to subscribed endpoints, and retries.

Any number of processes may run one: a delivery is claimed by one process at a time. Concurrent
attempts per endpoint are bounded, so that a slow endpoint delays only itself. Once a change of an
endpoint was acknowledged by a process, that process sends nothing by the old settings: an attempt
claimed earlier is released unless its request was already on the wire.
"""

import asyncio
from collections import Counter
from datetime import datetime
from typing import Final, NoReturn

import structlog

from tapgate import ids
from tapgate.edge.services import Services
from tapgate.errors import ApiError
from tapgate.notifications.events import resource_of
from tapgate.notifications.webhooks import model, operations, outbox
from tapgate.notifications.webhooks.model import Due, Outcome, StatusReason
from tapgate.notifications.webhooks.records import Records, as_it_was, disclosed
from tapgate.notifications.webhooks.retry_after import parse_retry_after
from tapgate.notifications.webhooks.sending import NoAnswerError, Sender
from tapgate.service.background import run_periodically

TICK_SECONDS: Final = 0.5
AT_ONCE: Final = 200
AT_ONCE_TO_ONE_ENDPOINT: Final = 10
_FAREWELL_SECONDS: Final = 3.0
_GONE: Final = 410
_RETRY_AFTER_STATUSES: Final = (429, 503)

_log = structlog.get_logger()


class NoRecordError(Exception):
    """The record of an event cannot be loaded."""


class _ChangedError(Exception):
    """The endpoint changed after the delivery was claimed and before anything was sent."""


class Deliverer:
    def __init__(self, services: Services, records: Records, sender: Sender | None = None) -> None:
        self._services = services
        self._database = services.database
        self._records = records
        self._sender = sender or Sender(public_only=services.settings.is_production)
        self._under_way: set[asyncio.Task[None]] = set()
        self._per_endpoint: Counter[int] = Counter()
        self._more_is_due = False
        self._room_again = asyncio.Event()
        #: Number of endpoint changes seen by this process. A claim made before the latest one is
        #: not sent.
        self._generation = 0
        services.signals.subscribe(operations.CHANGED, lambda _: self._advance_generation())
        services.signals.on_reconnect(self._advance_generation)

    def _advance_generation(self) -> None:
        self._generation += 1

    async def run(self) -> NoReturn:
        """Deliver until cancelled; attempts in progress then get a moment to finish."""
        try:
            await run_periodically(
                self.start_due,
                every=TICK_SECONDS,
                name="webhooks.deliverer",
                wake=self._room_again,
            )
        finally:
            await self._finish(within=_FAREWELL_SECONDS)

    async def start_due(self) -> None:
        """Start an attempt at every due delivery, within the concurrency limits."""
        now = self._services.clock()
        generation = self._generation
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
                self._start(due, generation)

    async def finish(self) -> None:
        """Return when no attempt is in progress."""
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

    def _start(self, due: Due, generation: int) -> None:
        attempt = asyncio.create_task(self._attempt(due, generation))
        self._under_way.add(attempt)
        self._per_endpoint[due.endpoint_id] += 1

        def ended(attempt: asyncio.Task[None]) -> None:
            self._under_way.discard(attempt)
            self._per_endpoint[due.endpoint_id] -= 1
            self._per_endpoint += Counter()  # removes zero counts
            if self._more_is_due:
                self._room_again.set()

        attempt.add_done_callback(ended)

    async def _attempt(self, due: Due, generation: int) -> None:
        try:
            try:
                outcome = await self._try(due, generation)
            except _ChangedError:
                await outbox.release(self._database, due, self._services.clock())
            else:
                await self._report(due, outcome)
        except Exception as error:
            # Not reported: the delivery is due again when the claim expires.
            _log.warning(
                "webhooks.attempt_lost",
                delivery_id=ids.encode(ids.DELIVERY, due.id),
                error=type(error).__name__,
            )

    async def _try(self, due: Due, generation: int) -> Outcome:
        async def before_write() -> None:
            await self._require_unchanged(due, generation)

        try:
            now = self._services.clock()
            data = await disclosed(self._services, due.event, await self._data(due))
            body = model.body(due.event, due.occurred_at, data)
            headers = model.headers(due.id, self._secrets(due, now), body, now)
            found = await self._sender.send(due.url, headers, body, before_write)
        except _ChangedError:
            raise
        except NoAnswerError as error:
            return Outcome(problem=str(error), duration_ms=error.duration_ms)
        except Exception as error:
            # Retried on schedule like any other failure, but not held against the endpoint.
            return Outcome(problem=type(error).__name__, is_internal=True)
        return Outcome(
            problem=None if 200 <= found.status < 300 else f"status {found.status}",
            status=found.status,
            duration_ms=found.duration_ms,
            response=found.text,
            retry_after=(
                parse_retry_after(found.retry_after, self._services.clock())
                if found.status in _RETRY_AFTER_STATUSES
                else None
            ),
        )

    async def _require_unchanged(self, due: Due, generation: int) -> None:
        if self._services.signals.is_listening:
            unchanged = generation == self._generation
        else:  # changes are not signaled to this process
            unchanged = await outbox.is_current(self._database, due)
        if not unchanged:
            raise _ChangedError

    async def _report(self, due: Due, outcome: Outcome) -> None:
        now = self._services.clock()
        if outcome.problem is None:
            await outbox.delivered(self._database, due, outcome, now)
            return
        gone = outcome.status == _GONE and await self._disable(due, StatusReason.GONE)
        failures = due.attempts - due.attempts_before
        pause = None if gone else model.pause_after(failures, outcome.retry_after)
        _log.info(
            "webhooks.given_up" if pause is None else "webhooks.put_off",
            delivery_id=ids.encode(ids.DELIVERY, due.id),
            attempts=due.attempts,
            problem=outcome.problem,
        )
        retry_at = None if pause is None else now + pause
        await outbox.failed(self._database, due, outcome, now, retry_at)
        if not outcome.is_internal and not gone:
            await self._count_failure(due, now)

    async def _count_failure(self, due: Due, now: datetime) -> None:
        """Disable an endpoint that has failed for too long."""
        since = await outbox.mark_failing(self._database, due, now, max_gap=model.MAX_FAILURE_GAP)
        if since is not None and now - since >= model.DISABLED_AFTER:
            await self._disable(due, StatusReason.FAILING, if_failing_since=since)

    async def _disable(
        self, due: Due, reason: StatusReason, *, if_failing_since: datetime | None = None
    ) -> bool:
        disabled = await operations.disable(
            self._services, due, reason, if_failing_since=if_failing_since
        )
        if disabled:
            _log.warning(
                "webhooks.endpoint_disabled",
                endpoint_id=ids.encode(ids.WEBHOOK_ENDPOINT, due.endpoint_id),
                reason=reason.name.lower(),
            )
        return disabled

    async def _data(self, due: Due) -> str:
        if due.data is not None:
            return due.data
        look_up = self._records.get(resource_of(due.event))
        if look_up is None or due.subject_id is None:
            raise NoRecordError
        try:
            record = await look_up(self._services, due.subject_id)
        except ApiError as error:
            raise NoRecordError from error
        return await outbox.keep_data(self._database, due.event_id, as_it_was(due.event, record))

    def _secrets(self, due: Due, now: datetime) -> list[str]:
        """Return the endpoint's secret, and the previous one while its grace lasts."""
        sealed = [due.secret]
        if due.previous_secret is not None and due.previous_secret_expires_at is not None:
            sealed += [due.previous_secret] if now < due.previous_secret_expires_at else []
        context = model.secret_context(due.endpoint_id)
        return [self._services.vault.open(secret, context).decode() for secret in sealed]
