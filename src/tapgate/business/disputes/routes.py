"""Dispute endpoints: for the chat, staff and merchants."""

from collections.abc import Sequence

from tapgate.auth.disclosure import Subject, find_hidden_subjects
from tapgate.auth.owners import DISPUTES
from tapgate.business.customers.subscribers.restriction import require_account_access
from tapgate.business.disputes import model, operations, queries, refunds
from tapgate.business.disputes.model import Dispute
from tapgate.business.payments.transactions.money_requests import decode_id
from tapgate.core.pagination import paginate
from tapgate.core.records import DisputeId
from tapgate.http.api.access import Access
from tapgate.http.api.guards import Guard, Proposal, Unguarded
from tapgate.http.api.idempotency import build_idempotency_key, require_idempotency_key
from tapgate.http.api.object_access import ObjectAccess
from tapgate.http.api.owner_access import NEVER, Binding, OwnerAccess
from tapgate.http.api.request_context import GuardedRequest, RequestContext
from tapgate.http.endpoint import Endpoints, Reply
from tapgate.ledger.commands import DisputeRefund
from tapgate.runtime.store.database import Database
from tapgate.runtime.store.transaction import Transaction
from tapgate_client import ids
from tapgate_client.errors import Code
from tapgate_client.schemas.admin import Scope
from tapgate_client.schemas.approvals import Operation
from tapgate_client.schemas.disputes import (
    DisputeDecision,
    DisputeDecisionRequest,
    DisputeFilters,
    DisputeRecord,
    DisputeResponse,
    NewDispute,
)
from tapgate_client.schemas.pagination import Page

_CARDHOLDER_ACCESS = Access(roles="AS", service=True)
_READ_ACCESS = Access(roles="ACSF", service=True, hmac="pos")
_REFUND_ERRORS = (
    Code.DISPUTE_NOT_OPEN,
    Code.ALREADY_REFUNDED,
    Code.NOT_REFUNDABLE,
    Code.INSUFFICIENT_FUNDS,
    Code.PROCESSOR_SUSPENDED,
)

endpoints = Endpoints("Disputes", "/api/v1/disputes", owners=NEVER)


@endpoints.post(
    "",
    access=_CARDHOLDER_ACCESS,
    status=201,
    other_statuses=(200,),
    requires=(require_idempotency_key,),
    errors=(
        Code.TRANSACTION_NOT_FOUND,
        Code.OTP_REQUIRED,
        Code.NOT_DISPUTABLE,
        Code.ALREADY_DISPUTED,
        Code.DUPLICATE_REQUEST,
    ),
    effect="sets",  # the idempotency key identifies the dispute
    unguarded=Unguarded.NO_EFFECT,
    objects=ObjectAccess.UNRESTRICTED,
)
async def create_dispute(
    request: RequestContext, tx: Transaction, body: NewDispute
) -> Reply[DisputeRecord]:
    """Dispute a card payment for its cardholder.

    Requires an idempotency key; a repeated request gets the first dispute with status 200. Only
    completed `pos_payment` and `online_payment` transactions of the last 60 days can be disputed,
    once each. Without `amount`, the rest of the payment is disputed. The merchant has 7 days to
    answer.
    """
    key = build_idempotency_key(request, body)
    assert key is not None
    await operations.find_replay(tx, key)  # rejects a used key, even if the payment does not exist
    transaction_id = decode_id(ids.TRANSACTION, body.transaction_id)
    payer = await tx.fetchval("SELECT from_account FROM transactions WHERE id = $1", transaction_id)
    await require_account_access(tx, request.caller, tx.now(), [payer])
    dispute, is_new = await operations.open_dispute(tx, request.actor, body, transaction_id, key)
    headers = {} if is_new else {"Idempotent-Replayed": "true"}
    record = model.to_record(dispute, tx.now())
    return Reply(record, status=201 if is_new else 200, headers=headers)


@endpoints.get(
    "",
    access=_READ_ACCESS,
    objects=ObjectAccess.PROCESSOR,
    owners=OwnerAccess(
        binding=Binding.LIST, roles="MK", rows=DISPUTES, scopes=(Scope.PAYMENTS_READ,)
    ),
)
async def list_disputes(request: RequestContext, query: DisputeFilters) -> Page[DisputeRecord]:
    """List disputes, newest first, or oldest first with `order=oldest`.

    A processor gets its own disputes. With `overdue=true`, only open disputes that the merchant has
    not answered in time are listed. The texts and the name of a restricted subscriber are masked
    for admins until a one-time code is verified.
    """
    services = request.services
    rows = await queries.list_page(
        services.database,
        query,
        services.clock(),
        processor_id=request.principal.processor_id,
        view=request.owner_view,
    )
    masked = await _find_masked(request, services.database, rows)
    now, is_staff = services.clock(), request.principal.is_staff
    return paginate(
        rows,
        query,
        lambda row: model.to_record(row, now, masked=row.id in masked, for_staff=is_staff),
    )


@endpoints.get(
    "/{id}",
    access=_READ_ACCESS,
    objects=ObjectAccess.PROCESSOR,
    owners=OwnerAccess(
        binding=Binding.ROW, roles="MK", rows=DISPUTES, scopes=(Scope.PAYMENTS_READ,)
    ),
)
async def get_dispute(request: RequestContext, id: DisputeId) -> DisputeRecord:
    """Get a dispute. Another processor's dispute gets 404."""
    database = request.services.database
    dispute = await queries.get(database, id, processor_id=request.principal.processor_id)
    return await _build_record(request, database, dispute)


async def _require_dispute(request: GuardedRequest, id: int) -> Dispute:
    return await queries.get(
        request.services.database, id, processor_id=request.principal.processor_id
    )


async def _describe_response(
    request: GuardedRequest, id: int, body: DisputeResponse
) -> Proposal | None:
    if not body.accept:
        return None
    return await refunds.describe(request, await _require_dispute(request, id))


@endpoints.post(
    "/{id}/respond",
    access=Access(roles="AS", hmac="pos"),
    errors=_REFUND_ERRORS,
    guard=Guard(_describe_response, Operation.REFUNDS, ends_in_ledger=True),
    step_up=("accept",),
    objects=ObjectAccess.PROCESSOR,
    owners=OwnerAccess(binding=Binding.ROW, roles="MK", rows=DISPUTES, key_roles=""),
)
async def respond_to_dispute(
    request: GuardedRequest, id: DisputeId, body: DisputeResponse
) -> DisputeRecord:
    """Respond to a dispute as its merchant.

    Support can respond on the merchant's behalf. A later response replaces the text until the
    dispute is decided. With `accept`, the disputed amount, at most what remains of the payment, is
    refunded at once, and the dispute ends. If the merchant has too little money, nothing changes.
    An acceptance by support waits for the approval of finance or a system administrator.
    """
    services = request.services
    dispute = await _require_dispute(request, id)
    if body.accept:
        end = DisputeRefund(id=id, response=body.text)
        after = await refunds.refund(request, dispute, end)
    else:
        async with services.transaction() as tx:
            after = await operations.respond(
                tx, request.actor, id, body.text, processor_id=request.principal.processor_id
            )
    return await _build_record(request, services.database, after)


async def _describe_decision(
    request: GuardedRequest, id: int, body: DisputeDecisionRequest
) -> Proposal | None:
    if body.decision != DisputeDecision.REFUND:
        return None
    return await refunds.describe(request, await _require_dispute(request, id))


@endpoints.post(
    "/{id}/decide",
    access=Access(roles="AC"),
    errors=_REFUND_ERRORS,
    guard=Guard(_describe_decision, Operation.REFUNDS, ends_in_ledger=True),
    step_up=True,
    objects=ObjectAccess.ANY,
)
async def decide_dispute(
    request: GuardedRequest, id: DisputeId, body: DisputeDecisionRequest
) -> DisputeRecord:
    """Decide a dispute: refund the cardholder, or reject the dispute.

    The refund is paid by the merchant, at most what remains of the payment. If nothing remains, the
    response is 409 `ALREADY_REFUNDED` and the dispute becomes `refunded`. If the merchant has too
    little money, nothing changes.
    """
    services = request.services
    if body.decision == DisputeDecision.REFUND:
        end = DisputeRefund(id=id, decision_reason=body.reason)
        after = await refunds.refund(request, await _require_dispute(request, id), end)
    else:
        async with services.transaction() as tx:
            after = await operations.reject(tx, request.actor, id, body.reason)
    return await _build_record(request, services.database, after)


@endpoints.post(
    "/{id}/withdraw",
    access=_CARDHOLDER_ACCESS,
    errors=(Code.DISPUTE_NOT_OPEN,),
    unguarded=Unguarded.NO_EFFECT,
    objects=ObjectAccess.ANY,
)
async def withdraw_dispute(
    request: RequestContext, tx: Transaction, id: DisputeId
) -> DisputeRecord:
    """Withdraw a dispute for its cardholder. The payment cannot be disputed again."""
    dispute = await operations.withdraw(tx, request.actor, id)
    return await _build_record(request, tx, dispute)


async def _build_record(
    request: GuardedRequest, reader: Database | Transaction, dispute: Dispute
) -> DisputeRecord:
    masked = await _find_masked(request, reader, [dispute])
    return model.to_record(
        dispute,
        request.services.clock(),
        masked=dispute.id in masked,
        for_staff=request.principal.is_staff,
    )


async def _find_masked(
    request: GuardedRequest, reader: Database | Transaction, rows: Sequence[Dispute]
) -> set[int]:
    """Return the disputes of subscribers who are hidden from the caller."""
    subjects = {Subject("dispute", row.public_id): row.id for row in rows}
    hidden = await find_hidden_subjects(reader, request.caller, request.services.clock(), subjects)
    return {subjects[subject] for subject in hidden}
