"""Message delivery statuses, as reported by the messenger."""

from datetime import datetime
from typing import Final

import asyncpg

from tapgate.core.records import build_record
from tapgate.http.api.access import Access
from tapgate.http.api.object_access import ObjectAccess
from tapgate.http.api.owner_access import NEVER
from tapgate.http.api.request_context import RequestContext
from tapgate.http.endpoint import Endpoints
from tapgate.runtime.store.conditions import PageConditions
from tapgate.runtime.store.database import Database
from tapgate.runtime.store.transaction import Transaction
from tapgate_client import ids
from tapgate_client.schemas.messages import (
    STATUS_ORDER,
    MessageRecord,
    ReportStatusesResponse,
    StatusReport,
    StatusReports,
)
from tapgate_client.schemas.pagination import PageQuery

endpoints = Endpoints("Messages", objects=ObjectAccess.ANY, owners=NEVER)

#: Public status for a row `m` in `messages`.
_STATUS_SQL: Final = """CASE WHEN m.delivery IS NOT NULL THEN m.delivery
                         WHEN m.status = 'expired' THEN 'failed' ELSE 'queued' END"""
_ERROR_CODE_SQL: Final = """CASE WHEN m.delivery = 'failed' THEN m.delivery_error
                        WHEN m.delivery IS NULL AND m.status = 'expired' THEN 'expired' END"""


@endpoints.post("/api/v1/messages/statuses", access=Access(service=True), effect="sets")
async def report_message_statuses(
    request: RequestContext, body: StatusReports
) -> ReportStatusesResponse:
    """Report message delivery statuses.

    The messenger reports on the messages that it received from the gateway. A status is replaced
    only by a later one in the order `sent`, `failed`, `delivered`, `read`. Unknown messages are
    skipped. `channel` is `sms` once a message goes out as SMS. `updated` is the number of messages
    whose status or channel changed.
    """
    async with request.services.transaction() as tx:
        changed = await _store_reports(tx, body.data)
    for status in changed:
        request.services.event_counters.count_message_status(status)
    return ReportStatusesResponse(updated=len(changed))


async def _store_reports(tx: Transaction, reports: list[StatusReport]) -> list[str]:
    """Store the highest-ranked report per message; return the statuses that changed."""
    latest: dict[int, StatusReport] = {}
    for report in sorted(reports, key=lambda report: STATUS_ORDER.index(report.status)):
        message_id = ids.decode(ids.MESSAGE, report.message_id)
        assert message_id is not None, "validated by the field rule"
        latest[message_id] = report
    # Lock in id order, so that concurrent reports cannot deadlock.
    await tx.execute(
        "SELECT FROM messages WHERE id = ANY ($1::bigint[]) ORDER BY id FOR UPDATE", list(latest)
    )
    rows = await tx.fetch(
        """UPDATE messages m
           SET delivery = new.status, delivery_error = new.error_code, delivery_at = $4,
               channel = new.channel
           FROM unnest($1::bigint[], $2::text[], $3::text[], $6::text[])
               AS new (id, status, error_code, channel)
           WHERE m.id = new.id AND (m.delivery IS NULL
               OR array_position($5::text[], new.status) > array_position($5::text[], m.delivery)
               OR (new.channel > m.channel AND m.delivery = 'sent'))
           RETURNING m.delivery""",
        list(latest),
        [report.status for report in latest.values()],
        [report.error_code for report in latest.values()],
        tx.now(),
        list(STATUS_ORDER),
        [report.channel for report in latest.values()],
    )
    return [row["delivery"] for row in rows]


async def list_page(
    database: Database,
    phone_number: str,
    query: PageQuery,
    *,
    since: datetime,
    template: str | None,
) -> list[asyncpg.Record]:
    """Return the messages created for a phone number since a time, without their parameters."""
    conditions = PageConditions(query, "m.id")
    conditions.where("m.recipient = {}", phone_number)
    conditions.where("m.template = {}", template)
    conditions.where("m.created_at >= {}", since)
    return await conditions.fetch(
        database,
        f"""SELECT m.id, m.template, m.language, m.channel, {_STATUS_SQL} AS status,
                   {_ERROR_CODE_SQL} AS error_code, m.created_at,
                   m.delivery_at AS updated_at
            FROM messages m""",
    )


def to_message_record(row: asyncpg.Record) -> MessageRecord:
    return build_record(MessageRecord, row, message_id=ids.encode(ids.MESSAGE, row["id"]))
