"""Outbox sender: concurrent across people, in order for each person.

Delivery is at least once. A message is marked as sent after the provider accepts it, so a process
killed in between causes a duplicate, never a loss.
"""

import asyncio
from datetime import timedelta
from typing import NoReturn

import structlog

from tapgate.core.vault import Vault
from tapgate.messenger.channel.graph import GraphClient, GraphError
from tapgate.messenger.channel.render import Payload, RenderError, render_payloads
from tapgate.messenger.outbox import leases, service_window
from tapgate.messenger.outbox.leases import LeasedMessage
from tapgate.messenger.outbox.outbox_messages import UnreadableError, open_message
from tapgate.messenger.outbox.service_window import WINDOW_CLOSED_CODE
from tapgate.runtime.background import run_periodically
from tapgate.runtime.job_runner import JobRunner
from tapgate.runtime.store.database import Database
from tapgate_client import ids
from tapgate_client.clock import Clock

POLL_INTERVAL_SECONDS = 0.5
#: Older messages are not sent: their content, such as a one-time code, is obsolete.
MAX_MESSAGE_AGE = timedelta(hours=24)

_MAX_CONCURRENT_SENDS = 20
#: Time allowed for in-flight sends to finish during a graceful shutdown.
SHUTDOWN_TIMEOUT_SECONDS = 5.0

_log = structlog.get_logger()


class Sender:
    """Background sender; any number can run, in any number of processes.

    `keep_content` retains the content of sent and failed messages. Never set it in production.
    """

    def __init__(
        self,
        database: Database,
        vault: Vault,
        graph: GraphClient | None,
        clock: Clock,
        *,
        keep_content: bool,
    ) -> None:
        self._database = database
        self._vault = vault
        self._graph = graph
        self._clock = clock
        self._keep_content = keep_content
        self._wake_event = asyncio.Event()
        self._runner = JobRunner[str, LeasedMessage](
            self._process_address,
            max_concurrent=_MAX_CONCURRENT_SENDS,
            max_concurrent_per_destination=1,
            max_window=1,
            on_capacity=self.wake,
        )
        self._is_stopping = False

    def wake(self) -> None:
        """Check the outbox immediately instead of at the next poll."""
        self._wake_event.set()

    async def run(self) -> NoReturn:
        """Send until canceled. Without a provider, all messages stay in the outbox."""
        if self._graph is None:
            if not self._keep_content:  # in production; elsewhere, the startup message is enough
                _log.warning("outbox.sending_disabled", missing="graph")
            await asyncio.get_running_loop().create_future()
        try:
            await run_periodically(
                self.start_due,
                every=POLL_INTERVAL_SECONDS,
                name="outbox.sender",
                wake=self._wake_event,
            )
        finally:
            self._is_stopping = True
            await self._runner.stop(timeout_seconds=SHUTDOWN_TIMEOUT_SECONDS)

    async def start_due(self) -> int:
        """Start sending due messages within the concurrency limit; return how many were leased."""
        capacity = _MAX_CONCURRENT_SENDS - self._runner.leased
        if self._graph is None or capacity <= 0:
            return 0
        messages = await leases.lease(self._database, now=self._clock(), limit=capacity)
        for leased in messages:
            self._runner.add(leased.address, [leased])
        return len(messages)

    async def send_due(self) -> None:
        """Send all due messages, including those that become due while it runs."""
        while await self.start_due() or self._runner.leased:
            await self._runner.wait_until_idle()

    async def _process_address(self, leased: LeasedMessage) -> None:
        """Process the leased message, then the next messages to the same address.

        Leasing by address is faster than searching the whole outbox when the backlog is long.
        """
        messages = [leased]
        try:
            while messages:
                await self._process(messages[0])
                if self._is_stopping:
                    return
                messages = await leases.lease(
                    self._database, now=self._clock(), limit=1, address=leased.address
                )
        except Exception as error:
            # Usually because PostgreSQL is unavailable. The message is retried when its lease ends.
            _log.warning("outbox.completion_failed", error=type(error).__name__)

    async def _process(self, leased: LeasedMessage) -> None:
        if leased.created_at + MAX_MESSAGE_AGE <= self._clock():
            await self._fail(leased, leased.problem or "too old")
            return
        try:
            forms = await self._render_forms(leased)
        except RenderError:
            await self._fail(leased, "cannot be shown")
            return
        except UnreadableError:
            # The secret key may be wrong, which the operator can correct.
            await self._schedule_retry(leased, "unreadable")
            return
        await self._send(leased, *forms)

    async def _render_forms(self, leased: LeasedMessage) -> list[list[Payload]]:
        """Return the message's parts, after its plain text's parts if it has a plain text."""
        if leased.content is None:
            raise UnreadableError("content is missing")
        message = open_message(self._vault, leased.id, leased.content)
        text = None
        if leased.text_form is None:
            text = await service_window.build_text_form(
                self._database, leased.address, message, self._clock()
            )
        forms = (message,) if text is None else (text, message)
        return [render_payloads(form, leased.address) for form in forms]

    async def _send(
        self, leased: LeasedMessage, parts: list[Payload], fallback: list[Payload] | None = None
    ) -> None:
        """Send the parts, or the fallback if the provider says that the window is closed."""
        graph = self._graph
        assert graph is not None
        accepted_ids = leased.accepted_part_ids
        try:
            for part in parts[len(accepted_ids) :]:
                accepted_ids.append(await graph.send(part) or "-")
                if len(accepted_ids) < len(parts):
                    await leases.extend_lease(self._database, leased, accepted_ids, self._clock())
        except GraphError as error:
            if error.code == WINDOW_CLOSED_CODE and fallback is not None:
                await self._send(leased, fallback)
            elif error.is_retryable:
                await self._schedule_retry(leased, error.code)
            else:
                await self._fail(leased, error.code)
        else:
            await leases.complete(
                self._database,
                leased,
                accepted_ids,
                self._clock(),
                keep_content=self._keep_content,
                is_text_form=fallback is not None,
            )

    async def _schedule_retry(self, leased: LeasedMessage, problem: str) -> None:
        _log.info(
            "outbox.retry_scheduled",
            problem=problem,
            attempts=leased.attempts,
            **_get_log_fields(leased),
        )
        await leases.schedule_retry(self._database, leased, problem, self._clock())

    async def _fail(self, leased: LeasedMessage, problem: str) -> None:
        _log.warning("outbox.rejected", problem=problem, **_get_log_fields(leased))
        await leases.fail(
            self._database, leased, problem, self._clock(), keep_content=self._keep_content
        )


def _get_log_fields(leased: LeasedMessage) -> dict[str, str]:
    return {"message_id": ids.encode(ids.MESSAGE, leased.id)}
