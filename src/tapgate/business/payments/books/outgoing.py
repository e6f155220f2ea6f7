"""Delivers transfers to customers of another book, and returns those that it refuses.

A transfer is repeated under the same idempotency key, its transaction ID, until the other book says
what happened to it. The other book credits it at most once, so it does not matter which side is
killed, or how many processes deliver a transfer. After a final refusal, the money goes back to the
sender: in full, fee included, and once, because the ledger reverses a transaction once.

A refusal that is not final, such as a revoked key, is repeated for a day, with pauses of up to 15
minutes. Then the transfer stops, and staff decide (`transfers`). A book that was removed from the
settings counts as one that refuses.
"""

import asyncio
from datetime import timedelta
from functools import partial
from typing import Final, NamedTuple, NoReturn

import asyncpg
import structlog

from tapgate.business.payments.books import delivery
from tapgate.business.payments.books.delivery import ErrorKind
from tapgate.http.api.services import Services
from tapgate.ledger import chart
from tapgate.ledger.commands import Reversal
from tapgate.ledger.effects.pending_notifications import REFUSED_BY_CONTEXT_KEY
from tapgate.runtime.background import run_periodically
from tapgate.runtime.store.work_queue import WorkQueue, compute_backoff
from tapgate_client.errors import Code
from tapgate_client.exceptions import TapgateError
from tapgate_client.schemas.books import BookTransferProblem
from tapgate_client.schemas.transactions import Channel

POLL_INTERVAL_SECONDS: Final = 0.5
_MAX_CONCURRENT: Final = 16
#: Shorter than the lease, even if a book responds byte by byte.
_MAX_REQUEST_SECONDS: Final = 20.0
#: How long a refusal that is not final is repeated.
MAX_REFUSED: Final = timedelta(hours=24)
_MAX_REFUSAL_PAUSE_SECONDS: Final = 900.0
#: Codes that customers see as the memo of returned money. Otherwise another book could send them a
#: text of its choice.
_KNOWN_CODES: Final = frozenset(code.value for code in Code)

_log = structlog.get_logger()

QUEUE: Final = WorkQueue(
    "book_transfers",
    "job.id, job.attempts, job.book, job.recipient_id, job.refusal_code,"
    " job.return_requested_at IS NOT NULL",
)
BACKLOG_SQL: Final = QUEUE.build_backlog_sql("book_transfers")

#: The recipient gets what the other book's clearing account was credited: the amount, without a
#: fee that the recipient pays.
_SELECT_TRANSFER: Final = """
    SELECT t.id, t.status, t.currency, t.context ->> 'memo' AS memo,
           CASE WHEN s.restricted THEN $2 ELSE b.sender_name END AS sender_name,
           (SELECT sum(CASE credit_account WHEN t.to_account THEN amount ELSE -amount END)::bigint
            FROM entries WHERE transaction_id = t.id
              AND t.to_account IN (credit_account, debit_account)) AS amount
    FROM book_transfers b JOIN transactions t ON t.id = b.id
    LEFT JOIN subscribers s ON s.account_id = t.from_account
    WHERE b.id = $1 AND t.id = $1"""
#: A transfer that has ended does not change, whichever process has ended it.
_END: Final = """
    UPDATE book_transfers SET status = $2, refusal_code = coalesce($3, refusal_code),
           remote_transaction_id = coalesce($4, remote_transaction_id), error = NULL, ended_at = $5
    WHERE id = $1 AND status IN ('pending', 'stopped')"""
_POSTPONE: Final = """
    UPDATE book_transfers SET next_attempt_at = $3, error = $4,
           refusal_code = coalesce($5, refusal_code)
    WHERE id = $1 AND attempts = $2 AND status = 'pending'"""
_REFUSE: Final = """
    UPDATE book_transfers
    SET next_attempt_at = $3, error = $4, refused_since = coalesce(refused_since, $5),
        status = CASE WHEN refused_since <= $6 THEN 'stopped' ELSE status END
    WHERE id = $1 AND attempts = $2 AND status = 'pending'
    RETURNING status"""


class _Job(NamedTuple):
    id: int
    attempts: int
    book: str
    recipient_id: str
    refusal_code: str | None
    is_return_requested: bool


class _Lane(NamedTuple):
    """Transfers that are delivered one batch after the other."""

    condition: str
    books: list[str]


class BookTransferWorker:
    """Background worker. Any number of processes may run it.

    Each book has its own lane, so a book that responds slowly delays only its own transfers.
    """

    def __init__(self, services: Services) -> None:
        self._services = services
        self._database = services.queue_database

    async def run(self) -> NoReturn:
        await asyncio.gather(
            *(
                run_periodically(
                    partial(self._deliver_lane, lane),
                    every=POLL_INTERVAL_SECONDS,
                    name="book_transfers.deliver",
                )
                for lane in self._list_lanes()
            )
        )
        raise AssertionError("lanes do not end")

    async def deliver_due(self) -> None:
        await asyncio.gather(*map(self._deliver_lane, self._list_lanes()))

    def _list_lanes(self) -> list[_Lane]:
        codes = self._services.book_peers.codes
        lanes = [_Lane("book = ANY ($4)", [code]) for code in codes]
        return [*lanes, _Lane("book <> ALL ($4)", codes)]

    async def _deliver_lane(self, lane: _Lane) -> None:
        while len(await self._deliver_batch(lane)) == _MAX_CONCURRENT:
            pass

    async def _deliver_batch(self, lane: _Lane) -> list[asyncpg.Record]:
        rows = await QUEUE.lease(
            self._database,
            now=self._services.clock(),
            limit=_MAX_CONCURRENT,
            condition=lane.condition,
            values=(lane.books,),
        )
        await asyncio.gather(*(self._process(_Job(*row)) for row in rows))
        return rows

    async def _process(self, job: _Job) -> None:
        """Take one step: deliver the transfer, or return it if it was refused."""
        row = await self._database.fetchrow(_SELECT_TRANSFER, job.id, delivery.UNKNOWN_SENDER)
        assert row is not None
        if row["status"] == chart.UNDER_REVIEW:
            await self._postpone(job, BookTransferProblem.UNDER_REVIEW)
        elif row["status"] == chart.FAILED:
            await self._end(job, "canceled")
        elif row["status"] == chart.REVERSED:
            await self._end(job, "returned")
        elif job.refusal_code is not None:
            await self._return(job, job.refusal_code)
        else:
            await self._deliver(job, row)

    async def _deliver(self, job: _Job, row: asyncpg.Record) -> None:
        peers = self._services.book_peers
        if job.book not in peers.codes:
            await self._repeat_later(job, BookTransferProblem.BOOK_NOT_CONFIGURED)
            return
        transfer = delivery.build_transfer(job.book, job.recipient_id, row)
        request = delivery.cancel if job.is_return_requested else delivery.send
        try:
            async with asyncio.timeout(_MAX_REQUEST_SECONDS):
                receipt = await request(peers, transfer)
        except TimeoutError:
            await self._postpone(job, BookTransferProblem.NO_RESPONSE)
        except TapgateError as error:
            await self._handle_error(job, error)
        else:
            if receipt.status == chart.UNDER_REVIEW:
                await self._postpone(job, BookTransferProblem.UNDER_REVIEW_ELSEWHERE)
            else:
                await self._end(job, "delivered", remote_transaction_id=receipt.transaction_id)

    async def _handle_error(self, job: _Job, error: TapgateError) -> None:
        code = delivery.get_code(error)
        match delivery.classify(error):
            case ErrorKind.FINAL:
                await self._return(job, code)
            case ErrorKind.REFUSED:
                await self._repeat_later(job, code)
            case ErrorKind.UNAVAILABLE:
                await self._postpone(job, code)

    async def _repeat_later(self, job: _Job, code: str) -> None:
        """Record a refusal that is not final. Stop the transfer if it has been refused for long."""
        now = self._services.clock()
        pause = compute_backoff(job.attempts, max_seconds=_MAX_REFUSAL_PAUSE_SECONDS)
        status = await self._database.fetchval(
            _REFUSE, job.id, job.attempts, now + pause, code, now, now - MAX_REFUSED
        )
        if status == "stopped":
            _log.warning("book_transfers.stopped", book=job.book, code=code)

    async def _return(self, job: _Job, code: str) -> None:
        memo = code if code in _KNOWN_CODES else BookTransferProblem.UNEXPECTED_RESPONSE.value
        outcome = await self._services.ledger.submit(
            Reversal(
                original_id=job.id,
                amount=None,
                channel=Channel.PARTNER,
                context={REFUSED_BY_CONTEXT_KEY: job.book, "memo": memo},
                is_refused=True,
            )
        )
        if outcome.code is None:
            await self._end(job, "returned", refusal_code=code)
            return
        # Another process has returned it already, or the clearing account lacks the money because
        # customers of the other book have spent it: then the next attempt succeeds after a
        # settlement.
        _log.warning("book_transfers.not_returned", book=job.book, code=str(outcome.code))
        await self._postpone(job, str(outcome.code), refusal_code=code)

    async def _end(
        self,
        job: _Job,
        status: str,
        *,
        refusal_code: str | None = None,
        remote_transaction_id: str | None = None,
    ) -> None:
        await self._database.execute(
            _END, job.id, status, refusal_code, remote_transaction_id, self._services.clock()
        )

    async def _postpone(self, job: _Job, error: str, *, refusal_code: str | None = None) -> None:
        due_at = self._services.clock() + compute_backoff(job.attempts)
        await self._database.execute(_POSTPONE, job.id, job.attempts, due_at, error, refusal_code)
