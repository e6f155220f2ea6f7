"""Delivery status reports to the gateway, for the messages that the gateway enqueued.

Reports are delivered at least once: a failed report is retried when its lease expires. The
gateway keeps the furthest status of each message, so duplicate and concurrent reports are harmless.
"""

from typing import Final, NoReturn

import asyncpg
import structlog

from tapgate.messenger.outbox.statuses import ERROR_CODE_SQL, OVERALL_STATUS_SQL
from tapgate.runtime.background import run_periodically
from tapgate.runtime.store.database import Database
from tapgate.runtime.store.work_queue import LEASE_DURATION, WorkQueue
from tapgate_client import AsyncTapgateClient, TapgateError, ValidationError
from tapgate_client.clock import Clock
from tapgate_client.schemas.messages import StatusReport

_INTERVAL_SECONDS: Final = 1.0
_BATCH_SIZE: Final = 100
_GATEWAY_KEY_PREFIX: Final = "gateway:"

#: A failed report is retried when its lease expires.
_QUEUE: Final = WorkQueue(
    "messenger.outbox",
    f"""job.id, job.key, job.channel, job.report_at, {OVERALL_STATUS_SQL} AS reported,
        {ERROR_CODE_SQL} AS error_code""",
    pending="",
    due="report_at",
    lease=LEASE_DURATION,
    counts_attempts=False,
)

_log = structlog.get_logger()


class StatusReporter:
    def __init__(self, database: Database, gateway: AsyncTapgateClient, clock: Clock) -> None:
        self._database = database
        self._gateway = gateway
        self._clock = clock

    async def run(self) -> NoReturn:
        await run_periodically(self.report_due, every=_INTERVAL_SECONDS, name="outbox.reporter")

    async def report_due(self) -> None:
        while await self._report_batch() == _BATCH_SIZE:
            pass

    async def _report_batch(self) -> int:
        rows = await _QUEUE.lease(self._database, now=self._clock(), limit=_BATCH_SIZE)
        if not rows:
            return 0
        try:
            await self._report(rows)
        except ValidationError:
            done = await self._report_each(rows)
        except TapgateError as error:
            _log.info("outbox.report_failed", error=type(error).__name__)
            return 0
        else:
            done = rows
        # A status received after the lease changes `report_at`, so the row is reported again.
        await self._database.execute(
            """UPDATE messenger.outbox SET report_at = NULL
               WHERE id = ANY ($1::bigint[]) AND report_at = $2""",
            [row["id"] for row in done],
            rows[0]["report_at"],
        )
        return len(done)

    async def _report_each(self, rows: list[asyncpg.Record]) -> list[asyncpg.Record]:
        """Report the rows of a rejected batch one by one; return the finished rows.

        A row is finished if it was reported or rejected, since a retry would be rejected again. Any
        other failure ends the loop, and the remaining rows are retried when their lease expires.
        """
        done = []
        for row in rows:
            try:
                await self._report([row])
            except ValidationError as error:
                _log.warning("outbox.report_rejected", outbox_id=row["id"], code=error.code)
            except TapgateError as error:
                _log.info("outbox.report_failed", error=type(error).__name__)
                break
            done.append(row)
        return done

    async def _report(self, rows: list[asyncpg.Record]) -> None:
        await self._gateway.messages.report_statuses(
            [
                StatusReport(
                    message_id=row["key"].removeprefix(_GATEWAY_KEY_PREFIX),
                    status=row["reported"],
                    channel=row["channel"],
                    error_code=row["error_code"] if row["reported"] == "failed" else None,
                )
                for row in rows
            ]
        )
