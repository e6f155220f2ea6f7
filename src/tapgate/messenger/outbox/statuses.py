"""Delivery statuses of sent messages, from the provider's reports.

The provider repeats reports and sends them in any order, even before the sender has recorded the
message's provider ID. A status only moves forward: sent, failed, delivered, read. A failed message
can still be delivered if the provider's own retry succeeds.
"""

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Final

import asyncpg
import structlog

from tapgate.messenger.model import DeliveryStatus
from tapgate.messenger.outbox import service_window
from tapgate.runtime.store.database import Database
from tapgate_client.schemas.messages import STATUS_ORDER, MessageStatus

#: LIKE pattern for keys that the gateway has set: these messages' status is reported to it.
REPORTED_KEY_PATTERN: Final = r"gateway:msg\_%"

#: An SMS has one status row, under its outbox ID with this prefix.
_SMS_PREFIX: Final = "sms:"
_OF_CHANNEL_SQL: Final = f"""s.outbox_id = job.id
    AND (job.channel = 'sms') = starts_with(s.channel_message_id, '{_SMS_PREFIX}')"""
#: A message in several parts has the status of its slowest part; one failed part fails the message.
#: Once a message goes out as SMS, the status of its chat message no longer counts.
OVERALL_STATUS_SQL: Final = f"""
    CASE WHEN job.status IN ('waiting', 'sms_waiting') THEN 'queued'
         WHEN job.status = 'refused' THEN 'failed' ELSE (
    SELECT CASE WHEN bool_or(s.status = 'failed') THEN 'failed'
                WHEN bool_and(s.status = 'read') THEN 'read'
                WHEN bool_and(s.status IN ('delivered', 'read')) THEN 'delivered'
                ELSE 'sent' END
    FROM messenger.statuses s WHERE {_OF_CHANNEL_SQL}) END"""
ERROR_CODE_SQL: Final = f"""coalesce(job.problem, (
    SELECT max(s.error_code) FROM messenger.statuses s
    WHERE {_OF_CHANNEL_SQL} AND s.status = 'failed'))"""

_DELIVERED: Final = (MessageStatus.DELIVERED, MessageStatus.READ)

_log = structlog.get_logger()


async def record(
    database: Database,
    reports: Sequence[DeliveryStatus],
    now: datetime,
    *,
    keep_content: bool = True,
) -> None:
    """Store the furthest status of each message, and schedule reports to the gateway.

    A support reply whose text failed because the service window was closed is sent as a template.
    """
    furthest: dict[str, DeliveryStatus] = {}
    for report in reports:
        known = furthest.get(report.channel_message_id)
        if known is None or STATUS_ORDER.index(known.status) < STATUS_ORDER.index(report.status):
            furthest[report.channel_message_id] = report
    if not furthest:
        return
    # All processes write in the same order, so concurrent deliveries cannot deadlock.
    ordered = [furthest[name] for name in sorted(furthest)]
    async with database.transaction() as tx:
        changed = await _upsert_statuses(tx, ordered, now)
        by_message = {row["outbox_id"]: row["status"] for row in changed if row["outbox_id"]}
        failed = [outbox_id for outbox_id, status in by_message.items() if status == "failed"]
        requeued = await service_window.requeue_as_template(tx, failed, now) if failed else set()
        requeued |= await settle_sms(tx, by_message.keys(), now, keep_content=keep_content)
        await _schedule_reports(tx, by_message.keys() - requeued, now)
        delivered = [outbox_id for outbox_id, status in by_message.items() if status in _DELIVERED]
        if delivered and not keep_content:
            await service_window.erase_delivered_texts(tx, delivered)
    for row in changed:
        if row["status"] == "failed":
            _log.warning("outbox.delivery_failed", error_code=row["error_code"])


async def _upsert_statuses(
    tx: asyncpg.Connection, reports: Sequence[DeliveryStatus], now: datetime
) -> list[asyncpg.Record]:
    rows: list[asyncpg.Record] = await tx.fetch(
        """INSERT INTO messenger.statuses AS kept
               (channel_message_id, status, error_code, updated_at)
           SELECT new.id, new.status, new.error_code, $4
           FROM unnest($1::text[], $2::text[], $3::text[]) AS new (id, status, error_code)
           ON CONFLICT (channel_message_id) DO UPDATE
           SET status = excluded.status, error_code = excluded.error_code,
               updated_at = excluded.updated_at
           WHERE array_position($5::text[], excluded.status)
               > array_position($5::text[], kept.status)
           RETURNING outbox_id, status, error_code""",
        [report.channel_message_id for report in reports],
        [report.status for report in reports],
        [report.error_code for report in reports],
        now,
        list(STATUS_ORDER),
    )
    return rows


async def _schedule_reports(
    tx: asyncpg.Connection, outbox_ids: Collection[int], now: datetime
) -> None:
    await tx.execute(
        """UPDATE messenger.outbox SET report_at = $2
           WHERE id = ANY ($1::bigint[]) AND key LIKE $3""",
        list(outbox_ids),
        now,
        REPORTED_KEY_PATTERN,
    )


async def link_channel_ids(
    tx: asyncpg.Connection, outbox_id: int, channel_ids: Sequence[str], now: datetime
) -> None:
    """Link the provider's part IDs to their outbox message."""
    await tx.execute(
        """INSERT INTO messenger.statuses AS kept
               (channel_message_id, outbox_id, status, updated_at)
           SELECT id, $2, 'sent', $3 FROM unnest($1::text[]) AS id
           ON CONFLICT (channel_message_id) DO UPDATE SET outbox_id = excluded.outbox_id""",
        sorted({item for item in channel_ids if item != "-"}),
        outbox_id,
        now,
    )


async def settle_sms(
    tx: asyncpg.Connection, outbox_ids: Collection[int], now: datetime, *, keep_content: bool
) -> set[int]:
    """Apply chat delivery statuses to messages that may go out as SMS.

    A delivered message needs no SMS. A failed one goes out as SMS now; return the IDs of these.
    """
    rows = await tx.fetch(
        f"""UPDATE messenger.outbox o
            SET sms_at = CASE WHEN found.overall = 'failed' THEN $2::timestamptz END,
                content = CASE WHEN found.overall = 'failed' OR $3 THEN o.content END
            FROM (SELECT job.id, {OVERALL_STATUS_SQL} AS overall FROM messenger.outbox job
                  WHERE job.id = ANY ($1::bigint[]) AND job.sms_at IS NOT NULL) AS found
            WHERE o.id = found.id AND o.sms_at IS NOT NULL
              AND found.overall IN ('failed', 'delivered', 'read')
            RETURNING o.id, found.overall""",
        list(outbox_ids),
        now,
        keep_content,
    )
    return {row["id"] for row in rows if row["overall"] == "failed"}


async def record_sms(
    tx: asyncpg.Connection, outbox_id: int, status: MessageStatus, now: datetime
) -> None:
    """Store the status of an SMS, unless a further one is known."""
    await tx.execute(
        """INSERT INTO messenger.statuses AS kept
               (channel_message_id, outbox_id, status, updated_at)
           VALUES ($1, $2, $3, $4)
           ON CONFLICT (channel_message_id) DO UPDATE
           SET status = excluded.status, updated_at = excluded.updated_at
           WHERE array_position($5::text[], excluded.status)
               > array_position($5::text[], kept.status)""",
        f"{_SMS_PREFIX}{outbox_id}",
        outbox_id,
        status,
        now,
        list(STATUS_ORDER),
    )
