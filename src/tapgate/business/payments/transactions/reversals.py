"""Reversals by staff: the command, its audit entry and its preview."""

from tapgate.auth.actors import Actor
from tapgate.business.payments.transactions.money_requests import MoneyResult, get_channel
from tapgate.events.audit.trail import AuditTrail
from tapgate.http.api.idempotency import build_idempotency_key
from tapgate.http.api.request_context import GuardedRequest, RequestContext
from tapgate.ledger.commands import AuditFacts, Reversal, TransactionResult
from tapgate.runtime.store.transaction import Transaction
from tapgate_client import ids, money
from tapgate_client.errors import ApiError, Code
from tapgate_client.schemas.transactions import (
    Channel,
    ReversalPreview,
    ReversalRequest,
    TransactionStatus,
)

_trail = AuditTrail("transaction")


async def submit_reversal(
    request: GuardedRequest, transaction_id: int, body: ReversalRequest
) -> MoneyResult:
    """Submit a reversal, or raise its decline or rejection as an ApiError."""
    services, approval = request.services, request.approval
    currency = services.settings.currency
    context = {"memo": body.reason, "requested_by": request.principal.id}
    if approval is not None:
        context["approval_id"] = approval.id
    outcome = await services.ledger.submit(
        Reversal(
            original_id=transaction_id,
            amount=None if body.amount is None else money.parse(body.amount, currency),
            channel=get_channel(request.principal),
            idempotency_key=build_idempotency_key(request, body),
            context=context,
            audit=request.actor.build_audit_facts(body.reason),
            approval_id=None if approval is None else ids.decode(ids.APPROVAL, approval.id),
        )
    )
    if approval is not None and outcome.replayed and outcome.code is None:
        # Executing an approval ends it in the same database transaction, so another request has
        # used the approval's ID as idempotency key.
        raise ApiError(Code.DUPLICATE_REQUEST, "Another request has already made this reversal.")
    return MoneyResult(outcome, currency)


async def preview_reversal(
    request: RequestContext, transaction_id: int, amount: str | None
) -> ReversalPreview:
    """Return what a reversal would do now, without executing it."""
    services = request.services
    currency = services.settings.currency
    assessment = await services.ledger.assess_reversal(
        services.database,
        Reversal(
            original_id=transaction_id,
            amount=None if amount is None else money.parse(amount, currency),
            channel=Channel.ADMIN,
        ),
    )
    amounts = {
        "amount": assessment.amount,
        "reversible_amount": assessment.remaining,
        "fee_reversed": assessment.fee,
        "commission_reversed": assessment.commission,
        "daily_limit_restored": assessment.day_restored,
        "monthly_limit_restored": assessment.month_restored,
    }
    return ReversalPreview(
        transaction_id=ids.encode(ids.TRANSACTION, transaction_id),
        allowed=assessment.code is None,
        reason=assessment.code,
        currency=currency,
        **{name: money.format_decimal(value, currency) for name, value in amounts.items()},
    )


async def record_reversal(
    tx: Transaction, audit: AuditFacts, result: TransactionResult, *, currency: str
) -> None:
    """Record the change to the reversed transaction in the audit log."""
    assert result.original_id is not None
    assert result.refundable_amount is not None
    total = await tx.fetchval("SELECT amount FROM transactions WHERE id = $1", result.original_id)
    before, after = result.refundable_amount + result.amount, result.refundable_amount
    partial = TransactionStatus.PARTIALLY_REVERSED
    await _trail.record(
        tx,
        Actor.from_audit_facts(audit),
        ids.encode(ids.TRANSACTION, result.original_id),
        "reversed",
        reason=audit.reason,
        changes={
            "status": (
                TransactionStatus.COMPLETED if before == total else partial,
                partial if after else TransactionStatus.REVERSED,
            ),
            "reversed_amount": (
                money.format_decimal(total - before, currency),
                money.format_decimal(total - after, currency),
            ),
        },
    )
