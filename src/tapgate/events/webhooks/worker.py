"""Background worker that delivers events to subscribed endpoints, with retries.

Any number of processes may run a worker, because a delivery is leased to one process at a time. The
number of concurrent attempts per endpoint is limited, so that one slow endpoint cannot delay the
deliveries to others. Deliveries are leased, prepared and recorded in batches. After a process has
acknowledged a change to an endpoint, it starts no request with the old settings. It releases
deliveries that were leased before the change but not yet sent.
"""

import asyncio
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime, timedelta
from typing import Final, NamedTuple, NoReturn

import structlog

from tapgate.core import telemetry
from tapgate.events.webhooks import delivery_queue, model, operations
from tapgate.events.webhooks.event_data import (
    EventData,
    EventResult,
    RecordLoaders,
    load_event_data,
    store_event_data,
)
from tapgate.events.webhooks.model import AttemptResult, LeasedDelivery, StatusReason
from tapgate.events.webhooks.retry_schedule import get_retry_delay, parse_retry_after
from tapgate.events.webhooks.sender import NoResponseError, WebhookSender
from tapgate.http.api.services import Services
from tapgate.runtime.background import run_periodically
from tapgate.runtime.batches import BatchProcessor
from tapgate.runtime.job_runner import JobRunner
from tapgate.runtime.store.work_queue import LEASE_DURATION
from tapgate_client import ids
from tapgate_client.errors import ApiError
from tapgate_client.schemas.webhooks import WebhookAttemptError

POLL_INTERVAL_SECONDS: Final = 0.5
MAX_CONCURRENT_ATTEMPTS: Final = 200
MAX_CONCURRENT_ATTEMPTS_PER_ENDPOINT: Final = 10
#: Deliveries that a process leases in advance, for one endpoint and in total.
_MAX_LEASED_PER_ENDPOINT: Final = 320
_MAX_LEASED: Final = 2_000
#: A delivery that has not started by then is released. The remaining lease covers an attempt.
_MAX_WAIT: Final = timedelta(seconds=5)
#: Results that arrive within this time are recorded together.
_RECORD_DELAY_SECONDS: Final = 0.05
SHUTDOWN_TIMEOUT_SECONDS: Final = 3.0
_GONE_STATUS: Final = 410
_RETRY_AFTER_STATUSES: Final = (429, 503)

_log = structlog.get_logger()


class _EndpointChangedError(Exception):
    """The endpoint changed after the delivery was leased and before anything was sent."""


class _Attempt(NamedTuple):
    """Leased delivery that is ready to be sent."""

    delivery: LeasedDelivery
    data: EventData
    secrets: list[str]
    generation: int


class _Result(NamedTuple):
    delivery: LeasedDelivery
    result: AttemptResult
    #: What was sent, unless it is stored.
    unstored: str | None = None


class WebhookWorker:
    def __init__(
        self, services: Services, records: RecordLoaders, sender: WebhookSender | None = None
    ) -> None:
        self._services = services
        self._database = services.database
        self._record_loaders = records
        self._sender = sender or WebhookSender(public_only=services.settings.is_production)
        self._capacity_available = asyncio.Event()
        self._runner = JobRunner[int, _Attempt](
            self._run_attempt,
            max_concurrent=MAX_CONCURRENT_ATTEMPTS,
            max_concurrent_per_destination=MAX_CONCURRENT_ATTEMPTS_PER_ENDPOINT,
            max_window=_MAX_LEASED_PER_ENDPOINT,
            on_capacity=self._capacity_available.set,
        )
        self._delivered = self._create_recorder(self._record_delivered)
        self._failed = self._create_recorder(self._record_failed)
        self._released = self._create_recorder(self._record_released)
        self._checked_deleted_at = 0.0
        #: Ends of the pauses of failing endpoints, as far as this process has noticed. After a
        #: pause, it sends them one request at a time until one succeeds.
        self._backing_off: dict[int, datetime] = {}
        #: Incremented at every endpoint change and whenever signals reconnect. While this process
        #: receives signals, a delivery leased in an earlier generation is not sent.
        self._generation = 0
        services.signals.subscribe(
            operations.ENDPOINTS_CHANGED, lambda _: self._advance_generation()
        )
        services.signals.on_reconnect(self._advance_generation)

    def _advance_generation(self) -> None:
        self._generation += 1
        self._backing_off.clear()  # an endpoint that was changed or enabled is tried at once

    async def run(self) -> NoReturn:
        """Deliver events until canceled, then wait a few seconds for attempts in progress."""
        try:
            await run_periodically(
                self.start_due_attempts,
                every=POLL_INTERVAL_SECONDS,
                name="webhooks.worker",
                wake=self._capacity_available,
            )
        finally:
            await self.shut_down(within=SHUTDOWN_TIMEOUT_SECONDS)

    async def start_due_attempts(self) -> None:
        """Lease due deliveries and start their attempts, up to the concurrency limits."""
        now, generation = self._services.clock(), self._generation
        self._sender.close_idle(only_expired=True)
        for attempt in self._runner.take_waiting(lambda attempt: self._has_expired(attempt, now)):
            self._released.add(_Result(attempt.delivery, _NOT_SENT))
        await self._fail_for_deleted_endpoints(now)
        leased = await delivery_queue.lease(
            self._database,
            now=now,
            limit=_MAX_LEASED - self._runner.leased,
            capacity=MAX_CONCURRENT_ATTEMPTS_PER_ENDPOINT,
            capacities=self._get_capacities(),
        )
        if leased:
            await self._start_attempts(leased, generation)

    def _get_capacities(self) -> dict[int, int]:
        capacities = self._runner.get_capacities()
        for endpoint_id in self._backing_off:
            capacities[endpoint_id] = 0 if self._runner.has_jobs(endpoint_id) else 1
        return capacities

    async def wait_until_idle(self) -> None:
        """Return when no attempt is in progress and all results are recorded."""
        await self._runner.wait_until_idle()
        for recorder in (self._delivered, self._failed, self._released):
            await recorder.wait_until_idle()

    async def shut_down(self, *, within: float) -> None:
        for attempt in self._runner.take_waiting():
            self._released.add(_Result(attempt.delivery, _NOT_SENT))
        await self._runner.stop(timeout_seconds=within)
        await self.wait_until_idle()
        self._sender.close_idle()

    async def _fail_for_deleted_endpoints(self, now: datetime) -> None:
        if time.monotonic() - self._checked_deleted_at >= POLL_INTERVAL_SECONDS:
            self._checked_deleted_at = time.monotonic()
            await delivery_queue.fail_for_deleted_endpoints(self._database, now)

    async def _start_attempts(self, leased: Sequence[LeasedDelivery], generation: int) -> None:
        try:
            data = await load_event_data(self._services, self._record_loaders, leased)
        except asyncio.CancelledError:
            self._release(leased)
            raise
        except ApiError:  # the database is unavailable, which must use up no attempt
            self._release(leased)
            return
        except Exception as error:
            data = dict.fromkeys((delivery.event_id for delivery in leased), error)
        by_endpoint = defaultdict[int, list[LeasedDelivery]](list)
        for delivery in leased:
            by_endpoint[delivery.endpoint_id].append(delivery)
        for endpoint_id, deliveries in by_endpoint.items():
            self._runner.add(endpoint_id, self._build_attempts(deliveries, data, generation))

    def _release(self, deliveries: Sequence[LeasedDelivery]) -> None:
        for delivery in deliveries:
            self._released.add(_Result(delivery, _NOT_SENT))

    def _build_attempts(
        self, deliveries: Sequence[LeasedDelivery], data: dict[int, EventResult], generation: int
    ) -> list[_Attempt]:
        """Build one endpoint's attempts.

        An error in the gateway fails the attempt, which is retried on schedule, but does not count
        as an endpoint failure.
        """
        attempts = list[_Attempt]()
        for delivery in deliveries:
            try:
                event_data = data[delivery.event_id]
                if isinstance(event_data, Exception):
                    raise event_data
                secrets = attempts[0].secrets if attempts else self._open_secrets(delivery)
                attempts.append(_Attempt(delivery, event_data, secrets, generation))
            except Exception as error:
                problem = AttemptResult(
                    problem=type(error).__name__, error=WebhookAttemptError.INTERNAL
                )
                self._failed.add(_Result(delivery, problem))
        return attempts

    def _open_secrets(self, delivery: LeasedDelivery) -> list[str]:
        """Return the endpoint's secret, followed by the previous secret if there is one."""
        sealed = filter(None, (delivery.secret, delivery.previous_secret))
        context = model.build_secret_context(delivery.endpoint_id)
        return [self._services.vault.open(secret, context).decode() for secret in sealed]

    async def _run_attempt(self, attempt: _Attempt) -> None:
        delivery = attempt.delivery
        try:
            result = await self._send(attempt)
        except _EndpointChangedError:
            self._released.add(_Result(delivery, _NOT_SENT))
        else:
            recorder = self._delivered if result.problem is None else self._failed
            recorder.add(_Result(delivery, result, attempt.data.unstored))

    def _has_expired(self, attempt: _Attempt, now: datetime) -> bool:
        return attempt.delivery.next_attempt_at - now < LEASE_DURATION - _MAX_WAIT

    async def _send(self, attempt: _Attempt) -> AttemptResult:
        async def before_write() -> None:
            await self._require_unchanged(attempt)

        delivery, now = attempt.delivery, self._services.clock()
        is_paused = self._backing_off.get(delivery.endpoint_id, now) > now
        if is_paused or self._has_expired(attempt, now):
            raise _EndpointChangedError
        try:
            body = model.encode_body(delivery.event, delivery.occurred_at, attempt.data.sent)
            grace_end = delivery.previous_secret_expires_at
            has_grace = grace_end is not None and now < grace_end
            secrets = attempt.secrets if has_grace else attempt.secrets[:1]
            headers = model.build_headers(delivery.id, secrets, body, now)
            with telemetry.start_root_span(
                "webhook delivery", "CLIENT", {"tapgate.event": delivery.event}
            ):
                headers = {**headers, **telemetry.get_headers()}
                response = await self._sender.send(delivery.url, headers, body, before_write)
        except _EndpointChangedError:
            raise
        except NoResponseError as error:
            return AttemptResult(
                problem=str(error), error=error.reason, duration_ms=error.duration_ms
            )
        except Exception as error:
            return AttemptResult(problem=type(error).__name__, error=WebhookAttemptError.INTERNAL)
        is_success = 200 <= response.status < 300
        return AttemptResult(
            problem=None if is_success else f"status {response.status}",
            error=None if is_success else WebhookAttemptError.HTTP_STATUS,
            status=response.status,
            duration_ms=response.duration_ms,
            response=response.text,
            retry_after=(
                parse_retry_after(response.retry_after, self._services.clock())
                if response.status in _RETRY_AFTER_STATUSES
                else None
            ),
        )

    async def _require_unchanged(self, attempt: _Attempt) -> None:
        if self._services.signals.is_listening:
            is_unchanged = attempt.generation == self._generation
        else:  # this process receives no signals at present
            is_unchanged = await delivery_queue.is_endpoint_unchanged(
                self._database, attempt.delivery
            )
        if not is_unchanged:
            raise _EndpointChangedError

    def _create_recorder(
        self, record: Callable[[list[_Result]], Awaitable[None]]
    ) -> BatchProcessor[_Result]:
        async def record_or_log(results: list[_Result]) -> None:
            try:
                await record(results)
            except Exception as error:
                # No result is recorded: the deliveries are due again when their leases expire.
                for delivery, *_ in results:
                    _log.warning(
                        "webhooks.attempt_not_recorded",
                        delivery_id=ids.encode(ids.DELIVERY, delivery.id),
                        error=type(error).__name__,
                    )

        return BatchProcessor(record_or_log, delay_seconds=_RECORD_DELAY_SECONDS)

    async def _record_delivered(self, results: list[_Result]) -> None:
        delivered = [(delivery, result) for delivery, result, _ in results]
        await delivery_queue.mark_delivered(self._database, delivered, self._services.clock())
        for delivery, *_ in results:
            self._backing_off.pop(delivery.endpoint_id, None)

    async def _record_released(self, results: list[_Result]) -> None:
        deliveries = [delivery for delivery, *_ in results]
        await delivery_queue.release(self._database, deliveries, self._services.clock())

    async def _record_failed(self, results: list[_Result]) -> None:
        now = self._services.clock()
        failed, failing = [], defaultdict[int, list[LeasedDelivery]](list)
        unstored = {
            delivery.event_id: text
            for delivery, result, text in results
            if text is not None and not result.is_internal
        }
        await store_event_data(self._database, unstored)
        for delivery, result, _ in results:
            is_disabled = result.status == _GONE_STATUS and await self._disable_endpoint(
                delivery, StatusReason.GONE
            )
            failures = delivery.attempts - delivery.attempts_before
            delay = None if is_disabled else get_retry_delay(failures, result.retry_after)
            failed.append((delivery, result, None if delay is None else now + delay))
            _log.info(
                "webhooks.delivery_failed" if delay is None else "webhooks.retry_scheduled",
                delivery_id=ids.encode(ids.DELIVERY, delivery.id),
                attempts=delivery.attempts,
                problem=result.problem,
            )
            if not result.is_internal and not is_disabled:
                failing[delivery.endpoint_id].append(delivery)
        await delivery_queue.record_failed_attempts(self._database, failed, now)
        for deliveries in failing.values():
            await self._record_failures(deliveries, now)

    async def _record_failures(self, deliveries: Sequence[LeasedDelivery], now: datetime) -> None:
        """Record an endpoint's failures; disable it if its failure streak is too long."""
        delivery = deliveries[-1]
        streak = await delivery_queue.mark_endpoint_failing(
            self._database,
            delivery,
            now,
            failures=len(deliveries),
            max_gap=model.MAX_FAILURE_GAP,
        )
        if streak is None:
            return
        if streak.backoff_until is not None:
            self._backing_off[delivery.endpoint_id] = streak.backoff_until
        if now - streak.since >= model.DISABLE_AFTER:
            await self._disable_endpoint(
                delivery, StatusReason.FAILING, if_failing_since=streak.since
            )

    async def _disable_endpoint(
        self,
        delivery: LeasedDelivery,
        reason: StatusReason,
        *,
        if_failing_since: datetime | None = None,
    ) -> bool:
        async with self._services.transaction() as tx:
            disabled = await operations.disable(
                tx,
                delivery,
                reason,
                signals=self._services.signals,
                if_failing_since=if_failing_since,
            )
        if disabled:
            _log.warning(
                "webhooks.endpoint_disabled",
                endpoint_id=ids.encode(ids.WEBHOOK_ENDPOINT, delivery.endpoint_id),
                reason=reason.name.lower(),
            )
        return disabled


#: Result for a delivery that is released because nothing was sent.
_NOT_SENT: Final = AttemptResult(problem=None)
