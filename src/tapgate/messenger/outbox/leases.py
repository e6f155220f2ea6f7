"""Leases on outbox messages: one sender per message, one message at a time per person.

Only a person's oldest waiting message can be leased, so the person's later messages wait. If a
sender is killed, nothing is lost: the message is due again when the lease expires.
"""

from datetime import datetime, timedelta
from typing import Literal

import msgspec

from tapgate.messenger.outbox import service_window, statuses
from tapgate.runtime.store.database import Database
from tapgate.runtime.store.work_queue import ResultUpdate, WorkQueue, compute_backoff

#: Longer than sending one part of a message takes; the sender extends the lease after each part.
LEASE_DURATION = timedelta(seconds=45)


class LeasedMessage(msgspec.Struct, frozen=True, kw_only=True):
    """A message leased to this process for sending."""

    id: int
    address: str
    content: bytes | None
    attempts: int
    created_at: datetime
    problem: str | None
    channel_message_id: str | None
    #: `failed` if the message must be sent as a template, because its plain text failed.
    text_form: Literal["sent", "failed"] | None
    #: When the message goes out as SMS, unless it is delivered before.
    sms_at: datetime | None

    @property
    def accepted_part_ids(self) -> list[str]:
        """Provider IDs for the parts that it has already accepted; `-` marks a missing ID."""
        return (self.channel_message_id or "").split()


_QUEUE = WorkQueue(
    "messenger.outbox",
    ", ".join(LeasedMessage.__struct_fields__),
    destination="address",
    pending="waiting",
    lease=LEASE_DURATION,
)
BACKLOG_SQL = _QUEUE.build_backlog_sql("outbox")
_PART_ACCEPTED = ResultUpdate(
    _QUEUE,
    "channel_message_id = result.channel_ids, next_attempt_at = result.leased_until",
    {"channel_ids": "text", "leased_until": "timestamptz"},
)
_RETRY = ResultUpdate(
    _QUEUE,
    "next_attempt_at = result.retry_at, problem = result.problem",
    {"retry_at": "timestamptz", "problem": "text"},
)
#: The content is kept for an SMS.
_CONTENT = "content = CASE WHEN result.keep_content OR sms_at IS NOT NULL THEN content END"
_IS_REPORTED = f"key LIKE '{statuses.REPORTED_KEY_PATTERN}'"
_END_VALUES = {"keep_content": "boolean", "ended_at": "timestamptz"}
_SENT = ResultUpdate(
    _QUEUE,
    f"""status = 'sent', channel_message_id = result.channel_ids, problem = NULL,
        text_form = coalesce(result.text_form, text_form), {_CONTENT},
        report_at = CASE WHEN {_IS_REPORTED} THEN result.ended_at END""",
    {"channel_ids": "text", "text_form": "text", **_END_VALUES},
    accepts_late=True,
)
#: A message that goes out as SMS has not failed yet, so it is not reported.
_REJECTED = ResultUpdate(
    _QUEUE,
    f"""status = 'refused', problem = result.problem, {_CONTENT},
        sms_at = CASE WHEN sms_at IS NOT NULL THEN result.ended_at END,
        report_at = CASE WHEN {_IS_REPORTED} AND sms_at IS NULL THEN result.ended_at END""",
    {"problem": "text", **_END_VALUES},
)


async def lease(
    database: Database, *, now: datetime, limit: int, address: str | None = None
) -> list[LeasedMessage]:
    """Lease up to `limit` due messages, longest due first, or the next due message to `address`."""
    rows = await _QUEUE.lease_in_order(database, now=now, limit=limit, destination=address)
    return [LeasedMessage(**row) for row in rows]


async def extend_lease(
    database: Database, leased: LeasedMessage, channel_ids: list[str], now: datetime
) -> None:
    """Record the accepted parts and renew the lease for the next part."""
    values = {"channel_ids": " ".join(channel_ids), "leased_until": now + LEASE_DURATION}
    await _PART_ACCEPTED.record(database, [(leased, values)])


async def schedule_retry(
    database: Database, leased: LeasedMessage, problem: str, now: datetime
) -> None:
    values = {"retry_at": now + compute_backoff(leased.attempts), "problem": problem}
    await _RETRY.record(database, [(leased, values)])


async def complete(
    database: Database,
    leased: LeasedMessage,
    channel_ids: list[str],
    now: datetime,
    *,
    keep_content: bool,
    is_text_form: bool = False,
) -> None:
    """Record that the provider has accepted the message.

    If a template was sent as plain text, its content is kept until the text is delivered.
    """
    values = {
        "channel_ids": " ".join(channel_ids),
        "text_form": "sent" if is_text_form else None,
        "keep_content": keep_content or is_text_form,
        "ended_at": now,
    }
    async with database.transaction() as tx:
        await statuses.link_channel_ids(tx, leased.id, channel_ids, now)
        await _SENT.record(tx, [(leased, values)])
        if is_text_form:
            # The provider's report may have arrived before the message's ID was known.
            await service_window.requeue_as_template(tx, [leased.id], now)
        if leased.sms_at is not None:
            await statuses.settle_sms(tx, [leased.id], now, keep_content=keep_content)


async def fail(
    database: Database, leased: LeasedMessage, problem: str, now: datetime, *, keep_content: bool
) -> None:
    values = {"problem": problem, "keep_content": keep_content, "ended_at": now}
    await _REJECTED.record(database, [(leased, values)])
