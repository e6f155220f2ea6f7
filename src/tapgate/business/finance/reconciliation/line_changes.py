"""Changes that staff make to statement lines, with replays by idempotency key."""

from typing import Any

from tapgate.business.finance.payouts import queries as payouts
from tapgate.business.finance.reconciliation import operations, queries
from tapgate.business.finance.reconciliation.line_commands import (
    build_payout_command,
    build_posting_command,
)
from tapgate.business.finance.reconciliation.model import Line, to_line_record
from tapgate.business.payments.transactions.money_requests import attach_request
from tapgate.core.records import require_id
from tapgate.http.api.idempotency import build_idempotency_key
from tapgate.http.api.request_context import GuardedRequest
from tapgate.http.endpoint import Reply
from tapgate.ledger import chart
from tapgate.ledger.commands import Command, ScopedIdempotencyKey
from tapgate_client import ids
from tapgate_client.errors import ApiError, Code, invalid_field
from tapgate_client.schemas.bank_statements import (
    BankStatementLine,
    LineIgnoring,
    LineMatch,
    LinePosting,
    LineStatus,
    LineUnmatching,
)
from tapgate_client.schemas.payouts import PayoutStatus

LineRequest = LineMatch | LinePosting | LineIgnoring | LineUnmatching


async def change_line(
    request: GuardedRequest, line_id: int, body: LineRequest
) -> Reply[BankStatementLine]:
    """Execute a request, or return the line if it is a replay."""
    services, key = request.services, build_idempotency_key(request, body)
    is_replay = await _is_replay(services.database, key)
    if not is_replay:
        before = await queries.get_line(services.database, line_id)
        try:
            await _execute(request, before, body, key)
        except ApiError:
            # The same request may have been executed at the same time, or another one.
            is_replay = await _is_replay(services.database, key)
            line = await queries.get_line(services.database, line_id)
            if not is_replay and line.status != before.status:
                raise ApiError(Code.LINE_NOT_OPEN) from None
            if not is_replay:
                raise
    line = await queries.get_line(services.database, line_id)
    headers = {"Idempotent-Replayed": "true"} if is_replay else {}
    return Reply(to_line_record(line, services.settings.currency), headers=headers)


async def _is_replay(reader: Any, key: ScopedIdempotencyKey | None) -> bool:
    if key is None:
        return False
    fingerprint = await reader.fetchval(
        "SELECT fingerprint FROM bank_line_requests WHERE scope = $1 AND request_id = $2",
        key.scope,
        key.request_id,
    )
    if fingerprint is not None and fingerprint != key.fingerprint:
        raise ApiError(Code.DUPLICATE_REQUEST)
    return fingerprint is not None


async def _execute(
    request: GuardedRequest, line: Line, body: LineRequest, key: ScopedIdempotencyKey | None
) -> None:
    services = request.services
    planned = await _plan(request, line, body, key)
    if isinstance(planned, Command):
        outcome = await services.ledger.submit(attach_request(request, planned))
        outcome.require_accepted()
        return
    async with services.transaction() as tx:
        await operations.change_line(tx, request.actor, line, planned, key)


async def _plan(
    request: GuardedRequest, line: Line, body: LineRequest, key: ScopedIdempotencyKey | None
) -> Command | Line:
    """Return the command that moves the money, or the changed line if no money moves."""
    if isinstance(body, LineUnmatching):
        return _plan_unmatching(request, line, key)
    if line.status != LineStatus.UNMATCHED:
        raise ApiError(Code.LINE_NOT_OPEN)
    if isinstance(body, LinePosting):
        return build_posting_command(line, body.reason, request.actor, key)
    if isinstance(body, LineIgnoring):
        return operations.replace_line(line, LineStatus.IGNORED, reason=body.reason)
    if body.payout_id is not None:
        return await _plan_payout(request, line, require_id(ids.PAYOUT, body.payout_id), key)
    transaction_id = require_id(ids.TRANSACTION, body.transaction_id or "")
    return await _plan_link(request, line, transaction_id)


def _plan_unmatching(
    request: GuardedRequest, line: Line, key: ScopedIdempotencyKey | None
) -> Command | Line:
    if line.status == LineStatus.UNMATCHED:
        raise ApiError(Code.LINE_NOT_OPEN)
    if line.moved_payout:
        raise ApiError(Code.LINE_NOT_OPEN, "The line paid or returned a payout.")
    if line.status == LineStatus.POSTED:
        return build_posting_command(line, None, request.actor, key)
    return operations.replace_line(line, LineStatus.UNMATCHED)


async def _plan_payout(
    request: GuardedRequest, line: Line, payout_id: int, key: ScopedIdempotencyKey | None
) -> Command | Line:
    """Pay or return a payout, or link its transaction if staff have done so already."""
    database = request.services.database
    payout = await payouts.get(database, payout_id)
    if abs(line.amount) != payout.amount:
        raise invalid_field("payout_id", "must be a payout with the line's amount")
    is_return = line.amount > 0
    done = PayoutStatus.RETURNED if is_return else PayoutStatus.PAID
    is_done = payout.status == done or (not is_return and payout.status == PayoutStatus.RETURNED)
    if is_done:
        kind = chart.PAYOUT_RETURN if is_return else chart.BANK_POSTING
        found = await queries.find_payout_transaction(database, payout.transaction_id, kind)
        if found is not None and await queries.get_cash_change(database, found) == line.amount:
            return await _plan_link(request, line, found, payout_id)
    return build_payout_command(line, payout_id, request.actor, key)


async def _plan_link(
    request: GuardedRequest, line: Line, transaction_id: int, payout_id: int | None = None
) -> Line:
    change = await queries.get_cash_change(request.services.database, transaction_id)
    if change != line.amount:
        raise invalid_field(
            "transaction_id", "must be a transaction that changed the platform's cash by the amount"
        )
    return operations.replace_line(
        line, LineStatus.MATCHED, transaction_id=transaction_id, payout_id=payout_id
    )
