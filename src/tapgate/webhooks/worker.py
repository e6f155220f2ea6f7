"""Background worker that delivers events to subscribed endpoints, with retries.

Any number of processes may run a worker, because a delivery is leased to one process at a time. The
number of concurrent attempts per endpoint is limited, so that one slow endpoint cannot delay the
deliveries to others. After a process has acknowledged a change to an endpoint, it starts no request
with the old settings. It releases deliveries that were claimed before the change but not yet sent.
"""

import asyncio
from collections import Counter
from datetime import datetime
from typing import Final, NoReturn

import structlog

from tapgate import ids
from tapgate.api.services import Services
from tapgate.errors import ApiError
from tapgate.runtime.background import run_periodically
from tapgate.schemas.webhooks import get_resource_type
from tapgate.webhooks import delivery_queue, model, operations
from tapgate.webhooks.event_data import (
    RecordLoaders,
    build_event_data,
    redact_event_data,
)
from tapgate.webhooks.model import AttemptResult, ClaimedDelivery, StatusReason
from tapgate.webhooks.retry_after import parse_retry_after
from tapgate.webhooks.retry_schedule import get_retry_delay
from tapgate.webhooks.sender import NoResponseError, WebhookSender

POLL_INTERVAL_SECONDS: Final = 0.5
MAX_CONCURRENT_ATTEMPTS: Final = 200
MAX_CONCURRENT_ATTEMPTS_PER_ENDPOINT: Final = 10
_SHUTDOWN_TIMEOUT_SECONDS: Final = 3.0
_GONE_STATUS: Final = 410
_RETRY_AFTER_STATUSES: Final = (429, 503)

_log = structlog.get_logger()


class RecordUnavailableError(Exception):
    """The record for the data of an event cannot be loaded."""


class _EndpointChangedError(Exception):
    """The endpoint changed after the delivery was claimed and before anything was sent."""


class WebhookWorker:
    def __init__(
        self, services: Services, records: RecordLoaders, sender: WebhookSender | None = None
    ) -> None:
        self._services = services
        self._database = services.database
        self._record_loaders = records
        self._sender = sender or WebhookSender(public_only=services.settings.is_production)
        self._attempts: set[asyncio.Task[None]] = set()
        self._attempts_per_endpoint: Counter[int] = Counter()
        self._has_more_due = False
        self._capacity_available = asyncio.Event()
        #: Incremented at every endpoint change and whenever signals reconnect. While this process
        #: receives signals, a delivery claimed in an earlier generation is not sent.
        self._generation = 0
        services.signals.subscribe(
            operations.ENDPOINTS_CHANGED, lambda _: self._advance_generation()
        )
        services.signals.on_reconnect(self._advance_generation)

    def _advance_generation(self) -> None:
        self._generation += 1

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
            await self._shut_down(within=_SHUTDOWN_TIMEOUT_SECONDS)

    async def start_due_attempts(self) -> None:
        """Claim due deliveries and start their attempts, up to the concurrency limits."""
        now = self._services.clock()
        generation = self._generation
        await delivery_queue.fail_for_deleted_endpoints(self._database, now)
        self._has_more_due = False
        for endpoint_id in await delivery_queue.list_due_endpoints(self._database, now):
            capacity = self._get_capacity(endpoint_id)
            claimed = (
                await delivery_queue.claim(self._database, endpoint_id, now=now, limit=capacity)
                if capacity > 0
                else []
            )
            self._has_more_due |= len(claimed) == capacity
            for delivery in claimed:
                self._start_attempt(delivery, generation)

    async def wait_until_idle(self) -> None:
        """Return when no attempt is in progress."""
        while self._attempts:
            await asyncio.wait(self._attempts)

    async def _shut_down(self, *, within: float) -> None:
        if self._attempts:
            await asyncio.wait(self._attempts, timeout=within)
        for attempt in self._attempts:
            attempt.cancel()
        await asyncio.gather(*self._attempts, return_exceptions=True)

    def _get_capacity(self, endpoint_id: int) -> int:
        return min(
            MAX_CONCURRENT_ATTEMPTS - len(self._attempts),
            MAX_CONCURRENT_ATTEMPTS_PER_ENDPOINT - self._attempts_per_endpoint[endpoint_id],
        )

    def _start_attempt(self, delivery: ClaimedDelivery, generation: int) -> None:
        attempt = asyncio.create_task(self._run_attempt(delivery, generation))
        self._attempts.add(attempt)
        self._attempts_per_endpoint[delivery.endpoint_id] += 1

        def on_attempt_done(attempt: asyncio.Task[None]) -> None:
            self._attempts.discard(attempt)
            self._attempts_per_endpoint[delivery.endpoint_id] -= 1
            self._attempts_per_endpoint += Counter()  # removes zero counts
            if self._has_more_due:
                self._capacity_available.set()

        attempt.add_done_callback(on_attempt_done)

    async def _run_attempt(self, delivery: ClaimedDelivery, generation: int) -> None:
        try:
            try:
                result = await self._send(delivery, generation)
            except _EndpointChangedError:
                await delivery_queue.release(self._database, delivery, self._services.clock())
            else:
                await self._record_result(delivery, result)
        except Exception as error:
            # No result is recorded: the delivery is due again when the lease expires.
            _log.warning(
                "webhooks.attempt_not_recorded",
                delivery_id=ids.encode(ids.DELIVERY, delivery.id),
                error=type(error).__name__,
            )

    async def _send(self, delivery: ClaimedDelivery, generation: int) -> AttemptResult:
        async def before_write() -> None:
            await self._require_unchanged(delivery, generation)

        try:
            now = self._services.clock()
            data = await redact_event_data(
                self._services, delivery.event, await self._load_data(delivery)
            )
            body = model.encode_body(delivery.event, delivery.occurred_at, data)
            headers = model.build_headers(delivery.id, self._open_secrets(delivery, now), body, now)
            response = await self._sender.send(delivery.url, headers, body, before_write)
        except _EndpointChangedError:
            raise
        except NoResponseError as error:
            return AttemptResult(problem=str(error), duration_ms=error.duration_ms)
        except Exception as error:
            # The attempt is retried on schedule, but does not count as a failure of the endpoint.
            return AttemptResult(problem=type(error).__name__, is_internal=True)
        return AttemptResult(
            problem=None if 200 <= response.status < 300 else f"status {response.status}",
            status=response.status,
            duration_ms=response.duration_ms,
            response=response.text,
            retry_after=(
                parse_retry_after(response.retry_after, self._services.clock())
                if response.status in _RETRY_AFTER_STATUSES
                else None
            ),
        )

    async def _require_unchanged(self, delivery: ClaimedDelivery, generation: int) -> None:
        if self._services.signals.is_listening:
            is_unchanged = generation == self._generation
        else:  # this process receives no signals at present
            is_unchanged = await delivery_queue.is_endpoint_unchanged(self._database, delivery)
        if not is_unchanged:
            raise _EndpointChangedError

    async def _record_result(self, delivery: ClaimedDelivery, result: AttemptResult) -> None:
        now = self._services.clock()
        if result.problem is None:
            await delivery_queue.mark_delivered(self._database, delivery, result, now)
            return
        is_disabled = result.status == _GONE_STATUS and await self._disable_endpoint(
            delivery, StatusReason.GONE
        )
        failures = delivery.attempts - delivery.attempts_before
        delay = None if is_disabled else get_retry_delay(failures, result.retry_after)
        _log.info(
            "webhooks.delivery_failed" if delay is None else "webhooks.retry_scheduled",
            delivery_id=ids.encode(ids.DELIVERY, delivery.id),
            attempts=delivery.attempts,
            problem=result.problem,
        )
        retry_at = None if delay is None else now + delay
        await delivery_queue.record_failed_attempt(self._database, delivery, result, now, retry_at)
        if not result.is_internal and not is_disabled:
            await self._record_failure(delivery, now)

    async def _record_failure(self, delivery: ClaimedDelivery, now: datetime) -> None:
        """Record a failure of the endpoint; disable it if its failure streak is too long."""
        since = await delivery_queue.mark_endpoint_failing(
            self._database, delivery, now, max_gap=model.MAX_FAILURE_GAP
        )
        if since is not None and now - since >= model.DISABLE_AFTER:
            await self._disable_endpoint(delivery, StatusReason.FAILING, if_failing_since=since)

    async def _disable_endpoint(
        self,
        delivery: ClaimedDelivery,
        reason: StatusReason,
        *,
        if_failing_since: datetime | None = None,
    ) -> bool:
        disabled = await operations.disable(
            self._services, delivery, reason, if_failing_since=if_failing_since
        )
        if disabled:
            _log.warning(
                "webhooks.endpoint_disabled",
                endpoint_id=ids.encode(ids.WEBHOOK_ENDPOINT, delivery.endpoint_id),
                reason=reason.name.lower(),
            )
        return disabled

    async def _load_data(self, delivery: ClaimedDelivery) -> str:
        if delivery.data is not None:
            return delivery.data
        load_record = self._record_loaders.get(get_resource_type(delivery.event))
        if load_record is None or delivery.subject_id is None:
            raise RecordUnavailableError
        try:
            record = await load_record(self._services, delivery.subject_id)
        except ApiError as error:
            raise RecordUnavailableError from error
        return await delivery_queue.store_event_data(
            self._database, delivery.event_id, build_event_data(delivery.event, record)
        )

    def _open_secrets(self, delivery: ClaimedDelivery, now: datetime) -> list[str]:
        """Return the endpoint's secret, followed by the previous secret during its grace period."""
        sealed = [delivery.secret]
        if delivery.previous_secret is not None and delivery.previous_secret_expires_at is not None:
            sealed += (
                [delivery.previous_secret] if now < delivery.previous_secret_expires_at else []
            )
        context = model.build_secret_context(delivery.endpoint_id)
        return [self._services.vault.open(secret, context).decode() for secret in sealed]
