"""Pays the lines of running batches in the background.

One process at a time has a batch's lease and renews it. If the process is killed, another one
continues when the lease expires. The lease only saves work: the ledger pays a line once, whoever
requests it, and records that in the same database transaction.
"""

import asyncio
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final, NoReturn

import structlog

from tapgate.business.finance.batches import operations, queries
from tapgate.business.finance.batches.model import Batch, PayableLine
from tapgate.http.api.services import Services
from tapgate.ledger import chart, commands
from tapgate.ledger.commands import BatchLine, Command, Outcome, ScopedIdempotencyKey
from tapgate.runtime.background import run_periodically
from tapgate_client import ids
from tapgate_client.errors import ApiError, Code
from tapgate_client.schemas.transactions import Channel

_POLL_SECONDS: Final = 1.0
#: How long after a process is killed another one continues.
LEASE: Final = timedelta(seconds=5)
#: Lines that are paid at once. Payments of others wait for at most one such ledger batch.
CHUNK_SIZE: Final = 200
#: Idempotency key scope of all lines: no caller's key is in this scope.
_SCOPE: Final = "batches"
_LEASE_SQL: Final = """
    UPDATE batches SET leased_until = $2
    WHERE id = (SELECT id FROM batches
                WHERE status = 'running' AND (leased_until IS NULL OR leased_until <= $1)
                ORDER BY id LIMIT 1 FOR NO KEY UPDATE SKIP LOCKED)
    RETURNING id"""
#: Only the process that set the current lease renews it.
_RENEW_SQL: Final = """
    UPDATE batches SET leased_until = $3
    WHERE id = $1 AND leased_until = $2 AND status = 'running' RETURNING leased_until"""
_log = structlog.get_logger()


class BatchWorker:
    """Background worker. Every process runs it."""

    def __init__(self, services: Services) -> None:
        self._services = services

    async def run(self) -> NoReturn:
        await run_periodically(self.pay_due, every=_POLL_SECONDS, name="batches.run")

    async def pay_due(self) -> None:
        """Pay the running batches that no other process pays."""
        while await self.pay_next():
            pass

    async def pay_next(self) -> bool:
        """Lease a batch and pay it; return False if there is none."""
        services, now = self._services, self._services.clock()
        batch_id = await services.database.fetchval(_LEASE_SQL, now, now + LEASE)
        if batch_id is None:
            return False
        await self._pay(await queries.get(services.database, batch_id), now + LEASE)
        return True

    async def _pay(self, batch: Batch, leased_until: datetime) -> None:
        """Pay a batch's lines in order, until another process has taken over."""
        services, row = self._services, 0
        while lines := await queries.list_payable(
            services.database, batch.id, after=row, limit=CHUNK_SIZE
        ):
            await self._pay_lines(batch, lines)
            row = lines[-1].row
            renewed = await services.database.fetchval(
                _RENEW_SQL, batch.id, leased_until, services.clock() + LEASE
            )
            if renewed is None:
                return
            leased_until = renewed
        async with services.transaction() as tx:
            await operations.complete(tx, batch.id)

    async def _pay_lines(self, batch: Batch, lines: Sequence[PayableLine]) -> None:
        submissions = (self._services.ledger.submit(build_command(batch, line)) for line in lines)
        outcomes = await asyncio.gather(*submissions, return_exceptions=True)
        for line, outcome in zip(lines, outcomes, strict=True):
            if isinstance(outcome, ApiError):
                code = outcome.code
            elif isinstance(outcome, Outcome):
                code = outcome.code or Code.BATCH_NOT_READY
            else:
                raise outcome
            if code == Code.SERVICE_UNAVAILABLE:
                raise ApiError(code)  # the lines are paid when the lease expires
            if code == Code.INTERNAL_ERROR:
                _log.error("batch.line_failed", batch_id=batch.public_id, row=line.row)
                async with self._services.transaction() as tx:
                    await operations.fail_line(tx, batch.id, line.row, code)


def build_command(batch: Batch, line: PayableLine) -> Command:
    """Return the command that pays a line. Its idempotency key is `bat_...:row`."""
    key = f"{batch.public_id}:{line.row}"
    context = {"memo": f"{batch.name}: {line.reference}"}
    if batch.run_by is not None:
        context["requested_by"] = batch.run_by  # who may not release the payment from review
    if batch.approval_id is not None:
        context["approval_id"] = ids.encode(ids.APPROVAL, batch.approval_id)
    return Command(
        type=chart.BATCH_CREDIT,
        channel=Channel.ADMIN,
        payer=batch.payer,
        payee=commands.subscriber_party(line.subscriber_id),
        amount=line.amount,
        idempotency_key=ScopedIdempotencyKey(_SCOPE, key, key.encode()),
        batch_line=BatchLine(batch.id, line.row),
        context=context,
    )
