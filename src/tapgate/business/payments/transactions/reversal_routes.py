"""Endpoints with which staff reverse transactions."""

from tapgate.business.customers.subscribers.restriction import require_account_access
from tapgate.business.payments.transactions import queries
from tapgate.business.payments.transactions.model import Transaction
from tapgate.business.payments.transactions.money_requests import format_amount, to_minor_units
from tapgate.business.payments.transactions.reversals import preview_reversal, submit_reversal
from tapgate.core.message_templates import Notice
from tapgate.core.records import TransactionId
from tapgate.http.api.access import Access
from tapgate.http.api.guards import Guard, Proposal
from tapgate.http.api.idempotency import require_idempotency_key
from tapgate.http.api.object_access import ObjectAccess
from tapgate.http.api.owner_access import NEVER
from tapgate.http.api.request_context import GuardedRequest, RequestContext
from tapgate.http.endpoint import Endpoints, Reply
from tapgate_client import ids
from tapgate_client.errors import Code
from tapgate_client.schemas.approvals import Operation
from tapgate_client.schemas.transactions import (
    ReversalPreview,
    ReversalPreviewQuery,
    ReversalReceipt,
    ReversalRequest,
)

endpoints = Endpoints(
    "Transactions",
    "/api/v1/transactions",
    access=Access(roles="AF"),
    errors=(Code.OTP_REQUIRED,),
    objects=ObjectAccess.UNRESTRICTED,
    owners=NEVER,
)


async def _get_accessible(request: GuardedRequest, transaction_id: int) -> Transaction:
    """Return a transaction, or raise `OTP_REQUIRED` if one of its parties is hidden."""
    services = request.services
    transaction = await queries.get(services.database, transaction_id)
    await require_account_access(
        services.database, request.caller, services.clock(), transaction.account_ids
    )
    return transaction


async def _describe_reversal(
    request: GuardedRequest, id: int, body: ReversalRequest
) -> Proposal | None:
    transaction = await _get_accessible(request, id)
    amount = transaction.amount - transaction.given_back
    if body.amount is not None:
        amount = to_minor_units(request, body.amount)
    if amount <= 0:
        return None  # the ledger rejects it
    public_id = ids.encode(ids.TRANSACTION, id)
    return Proposal(
        operations=(Operation.REVERSALS,),
        summary=f"Reverse {format_amount(request, amount)} of transaction {public_id}",
        resource_id=public_id,
        amount=amount,
    )


@endpoints.post(
    "/{id}/reverse",
    moves_money=True,
    requires=(require_idempotency_key,),
    step_up=True,
    guard=Guard(_describe_reversal, Operation.REVERSALS),
    notices=(Notice.MONEY_CORRECTED,),
    errors=(
        Code.NOT_REVERSIBLE,
        Code.REVERSAL_EXCEEDS_REMAINING,
        Code.INSUFFICIENT_FUNDS,
    ),
)
async def reverse_transaction(
    request: GuardedRequest, id: TransactionId, body: ReversalRequest
) -> Reply[ReversalReceipt]:
    """Reverse a transaction in full or in part.

    Requires an idempotency key. Without `amount`, everything that is not yet reversed goes back, in
    the opposite direction. Fee and commission go back in proportion to the reversed amount, rounded
    down; the last part takes the rest. Today's and this month's limits get back what the original
    used of them. A reversal uses no limits, works for blocked and suspended parties, and ignores
    the maximum balance.

    Card payments are refunded instead. They get `NOT_REVERSIBLE`, as do transactions that failed,
    are under review, completely reversed or being recalled, or have a closed party. If the
    receiver, the agent's float or the agent's commission account has too little money, the response
    is `INSUFFICIENT_FUNDS`, and nothing moves.
    """
    await _get_accessible(request, id)
    result = await submit_reversal(request, id, body)
    return result.build_reply(
        ReversalReceipt,
        "Transaction reversed",
        original_transaction_id=ids.encode(ids.TRANSACTION, id),
        reversible_amount=result.refundable_amount,
        fee_reversed=result.fee_refunded,
        commission_reversed=result.commission,
    )


@endpoints.get("/{id}/reversal-preview")
async def get_reversal_preview(
    request: RequestContext, id: TransactionId, query: ReversalPreviewQuery
) -> ReversalPreview:
    """Preview a reversal: what would go back now.

    Without `amount`, the preview is for everything that is not yet reversed.
    """
    await _get_accessible(request, id)
    return await preview_reversal(request, id, query.amount)
