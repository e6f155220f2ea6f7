"""SMS sender: sends the messages of the SMS queue, and stores the provider's delivery reports.

Sending is at least once with the same ID, by which the provider recognizes a repetition. A delivery
report also proves that the provider has accepted the message, if its response was lost.
"""

import asyncio
from datetime import datetime
from typing import Final, NoReturn

import msgspec
import structlog

from tapgate.core.message_templates import TEMPLATES
from tapgate.core.vault import Vault
from tapgate.http.metrics import EventCounters
from tapgate.messenger.channel.sms import SmsClient, SmsError, SmsMessage
from tapgate.messenger.channel.sms_text import SmsTextError, render_sms
from tapgate.messenger.model import Template
from tapgate.messenger.outbox import sms_fallback, statuses
from tapgate.messenger.outbox.outbox_messages import UnreadableError, open_message
from tapgate.messenger.outbox.sender import MAX_MESSAGE_AGE
from tapgate.messenger.outbox.sms_fallback import SMS, SMS_WAITING
from tapgate.runtime.background import run_periodically
from tapgate.runtime.job_runner import JobRunner
from tapgate.runtime.store.database import Database
from tapgate.runtime.store.work_queue import ResultUpdate, WorkQueue, compute_backoff
from tapgate_client import ids
from tapgate_client.clock import Clock
from tapgate_client.schemas.messages import MessageStatus

POLL_INTERVAL_SECONDS: Final = 0.5
SHUTDOWN_TIMEOUT_SECONDS: Final = 5.0
_MAX_CONCURRENT_SENDS: Final = 10
_PROVIDER: Final = "sms"

_log = structlog.get_logger()


class LeasedSms(msgspec.Struct, frozen=True, kw_only=True):
    """A message leased to this process for sending as SMS."""

    id: int
    address: str
    content: bytes | None
    attempts: int
    created_at: datetime
    problem: str | None

    @property
    def message_id(self) -> str:
        return ids.encode(ids.MESSAGE, self.id)


_QUEUE: Final = WorkQueue(
    "messenger.outbox", ", ".join(LeasedSms.__struct_fields__), pending=SMS_WAITING
)
BACKLOG_SQL: Final = _QUEUE.build_backlog_sql("sms")
_RETRY: Final = ResultUpdate(
    _QUEUE,
    "next_attempt_at = result.retry_at, problem = result.problem",
    {"retry_at": "timestamptz", "problem": "text"},
)
_END: Final = f"""content = CASE WHEN result.keep_content THEN content END,
    report_at = CASE WHEN key LIKE '{statuses.REPORTED_KEY_PATTERN}' THEN result.ended_at END"""
_END_VALUES: Final = {"keep_content": "boolean", "ended_at": "timestamptz"}
ACCEPTED: Final = ResultUpdate(
    _QUEUE, f"status = 'sent', problem = NULL, {_END}", _END_VALUES, accepts_late=True
)
_FAILED: Final = ResultUpdate(
    _QUEUE,
    f"status = 'refused', problem = result.problem, {_END}",
    {"problem": "text", **_END_VALUES},
)


class SmsSender:
    """Background sender; any number can run, in any number of processes.

    Without a client, messages that were to go out as SMS wait until SMS is configured again.
    """

    def __init__(
        self,
        database: Database,
        vault: Vault,
        client: SmsClient | None,
        clock: Clock,
        counters: EventCounters,
        *,
        keep_content: bool,
    ) -> None:
        self._database = database
        self._vault = vault
        self._client = client
        self._clock = clock
        self._counters = counters
        self._keep_content = keep_content
        self._wake_event = asyncio.Event()
        self._runner = JobRunner[str, LeasedSms](
            self._process,
            max_concurrent=_MAX_CONCURRENT_SENDS,
            max_concurrent_per_destination=_MAX_CONCURRENT_SENDS,
            max_window=_MAX_CONCURRENT_SENDS,
            on_capacity=self.wake,
        )

    def wake(self) -> None:
        """Check the queue immediately instead of at the next poll."""
        self._wake_event.set()

    async def run(self) -> NoReturn:
        if self._client is None:
            await asyncio.get_running_loop().create_future()
        try:
            await run_periodically(
                self.start_due, every=POLL_INTERVAL_SECONDS, name="sms", wake=self._wake_event
            )
        finally:
            await self._runner.stop(timeout_seconds=SHUTDOWN_TIMEOUT_SECONDS)

    async def start_due(self) -> int:
        """Move due messages to the SMS queue and start sending; return how many were leased."""
        capacity = _MAX_CONCURRENT_SENDS - self._runner.leased
        if self._client is None or capacity <= 0:
            return 0
        await sms_fallback.move_due(self._database, self._clock())
        rows = await _QUEUE.lease(self._database, now=self._clock(), limit=capacity)
        self._runner.add(_PROVIDER, [LeasedSms(**row) for row in rows])
        return len(rows)

    async def send_due(self) -> None:
        """Send all due messages, including those that become due while it runs."""
        while await self.start_due() or self._runner.leased:
            await self._runner.wait_until_idle()

    async def _process(self, leased: LeasedSms) -> None:
        try:
            await self._send(leased)
        except Exception as error:
            # Usually because PostgreSQL is unavailable. The message is retried when its lease ends.
            _log.warning("sms.completion_failed", error=type(error).__name__)

    async def _send(self, leased: LeasedSms) -> None:
        assert self._client is not None
        try:
            template, message = self._build_message(leased)
            lifetime = min(TEMPLATES[template].lifetime, MAX_MESSAGE_AGE)
            if leased.created_at + lifetime <= self._clock():
                await self._fail(leased, leased.problem or "too old")
                return
            await self._client.send(message)
        except UnreadableError:
            # The secret key may be wrong, which the operator can correct.
            await self._schedule_retry(leased, "unreadable")
        except SmsTextError as error:
            await self._fail(leased, str(error))
        except SmsError as error:
            await (self._schedule_retry if error.is_retryable else self._fail)(leased, error.code)
        else:
            await self._complete(leased)

    def _build_message(self, leased: LeasedSms) -> tuple[str, SmsMessage]:
        if leased.content is None:
            raise UnreadableError("content is missing")
        message = open_message(self._vault, leased.id, leased.content)
        assert isinstance(message, Template), "no other message goes out as SMS"
        text = render_sms(TEMPLATES[message.name], message.language, message.parameters)
        return message.name, SmsMessage(
            id=leased.message_id, to=leased.address, text=text, template=message.name
        )

    async def _complete(self, leased: LeasedSms) -> None:
        now = self._clock()
        async with self._database.transaction() as tx:
            await statuses.record_sms(tx, leased.id, MessageStatus.SENT, now)
            await ACCEPTED.record(tx, [(leased, self._end_at(now))])
        self._counters.count_sms("accepted")

    async def _schedule_retry(self, leased: LeasedSms, problem: str) -> None:
        fields = {"message_id": leased.message_id, "attempts": leased.attempts}
        _log.info("sms.retry_scheduled", problem=problem, **fields)
        values = {
            "retry_at": self._clock() + compute_backoff(leased.attempts),
            "problem": problem,
        }
        await _RETRY.record(self._database, [(leased, values)])
        self._counters.count_sms("retried")

    async def _fail(self, leased: LeasedSms, problem: str) -> None:
        _log.warning("sms.failed", problem=problem, message_id=leased.message_id)
        values = {"problem": problem, **self._end_at(self._clock())}
        await _FAILED.record(self._database, [(leased, values)])
        self._counters.count_sms("failed")

    def _end_at(self, now: datetime) -> dict[str, object]:
        return {"keep_content": self._keep_content, "ended_at": now}


async def record_report(
    database: Database, outbox_id: int, status: MessageStatus, now: datetime, *, keep_content: bool
) -> bool:
    """Store the provider's delivery report; return False if no SMS has this ID.

    The message is not sent again, even if the provider's response to it was lost.
    """
    async with database.transaction() as tx:
        is_known = await tx.fetchval(
            "SELECT true FROM messenger.outbox WHERE id = $1 AND channel = $2", outbox_id, SMS
        )
        if not is_known:
            return False
        await statuses.record_sms(tx, outbox_id, status, now)
        await tx.execute(
            f"""UPDATE messenger.outbox SET
                    status = 'sent', content = CASE WHEN $2 THEN content END, problem = NULL,
                    report_at = CASE WHEN key LIKE '{statuses.REPORTED_KEY_PATTERN}'
                                     THEN $3::timestamptz END
                WHERE id = $1""",
            outbox_id,
            keep_content,
            now,
        )
    if status is MessageStatus.FAILED:
        _log.warning("sms.delivery_failed", message_id=ids.encode(ids.MESSAGE, outbox_id))
    return True
