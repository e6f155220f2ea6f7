"""Recall endpoints."""

from tapgate.auth.disclosure import find_hidden_accounts
from tapgate.business.customers.subscribers.pins import pin_operations
from tapgate.business.customers.subscribers.restriction import require_account_access
from tapgate.business.payments.recalls import operations, queries
from tapgate.business.payments.recalls.model import (
    Recall,
    to_original_record,
    to_pending_record,
    to_record,
)
from tapgate.business.payments.transactions import queries as transactions
from tapgate.business.payments.transactions.model import Transaction
from tapgate.business.payments.transactions.money_requests import format_amount, get_channel
from tapgate.core.pagination import paginate
from tapgate.core.records import RecallId, SubscriberId, TransactionId
from tapgate.http.api.access import Access
from tapgate.http.api.guards import Guard, Proposal, Unguarded
from tapgate.http.api.idempotency import build_idempotency_key, require_idempotency_key
from tapgate.http.api.object_access import ObjectAccess
from tapgate.http.api.owner_access import NEVER
from tapgate.http.api.request_context import GuardedRequest, RequestContext
from tapgate.http.endpoint import Endpoints, Reply
from tapgate.ledger import chart
from tapgate_client import ids
from tapgate_client.errors import ApiError, Code, invalid_field
from tapgate_client.schemas.approvals import Operation
from tapgate_client.schemas.pagination import Page
from tapgate_client.schemas.recalls import (
    PendingRecalls,
    RecallFilters,
    RecallRecord,
    RecallResolution,
    RecallStatus,
    RecallTransfer,
    RecallVerdict,
    ReturnTransfer,
)

_RECEIVER = Access(service=True)

endpoints = Endpoints(
    "Recalls", "/api/v1/recalls", access=Access(roles="ASC"), objects=ObjectAccess.ANY, owners=NEVER
)
transaction_endpoints = Endpoints("Recalls", owners=NEVER)


def _require_sender_pin(request: RequestContext, body: RecallTransfer) -> None:
    """Require the sender's PIN, except from an admin."""
    if body.pin is None and request.principal.kind != "admin":
        raise invalid_field("pin", "is required", Code.INVALID_REQUEST)


@transaction_endpoints.post(
    "/api/v1/transactions/{id}/recall",
    access=Access(roles="AS", service=True),
    status=201,
    requires=(_require_sender_pin, require_idempotency_key),
    errors=(
        Code.OTP_REQUIRED,
        Code.DUPLICATE_REQUEST,
        Code.NOT_RECALLABLE,
        Code.INVALID_PIN,
        Code.ACCOUNT_LOCKED,
    ),
    unguarded=Unguarded.RECALL,
    objects=ObjectAccess.UNRESTRICTED | ObjectAccess.PIN,
)
async def recall_transfer(
    request: RequestContext, id: TransactionId, body: RecallTransfer
) -> Reply[RecallRecord]:
    """Recall a transfer to the wrong person.

    Requires an idempotency key. The sender of a completed `transfer_p2p` can recall it once, within
    `TAPGATE_RECALL_HOURS`, and have at most 3 open recalls. A service must send the sender's PIN. A
    support_user or system_admin recalls on the sender's behalf, without a PIN.

    Up to the transfer amount, what the receiver has available is held for 24 hours, and the
    receiver is asked to return it. Both are told each step.
    """
    services = request.services
    transaction = await transactions.get(services.database, id)
    await _require_access(request, transaction.account_ids)
    key = build_idempotency_key(request, body)
    assert key is not None
    if body.pin is not None and not await _is_replay(request, id, key.scope, key.request_id):
        await _verify_sender_pin(request, transaction, body.pin)
    recall, replayed = await operations.request_recall(
        services, request.actor, id, body.reason, key
    )
    if replayed:
        headers = {"Idempotent-Replayed": "true"}
        return Reply(to_original_record(recall), status=201, headers=headers)
    return Reply(to_record(recall), status=201)


async def _require_access(request: GuardedRequest, account_ids: list[int]) -> None:
    services = request.services
    await require_account_access(services.database, request.caller, services.clock(), account_ids)


async def _is_replay(request: RequestContext, id: int, scope: str, request_id: str) -> bool:
    """Return whether the request was made before. The ledger compares its content."""
    found: bool = await request.services.database.fetchval(
        """SELECT EXISTS (SELECT FROM recalls
                          WHERE transaction_id = $1 AND scope = $2 AND request_id = $3)""",
        id,
        scope,
        request_id,
    )
    return found


async def _verify_sender_pin(request: RequestContext, transaction: Transaction, pin: str) -> None:
    sender = transaction.payer
    if sender is None or sender.kind != chart.WALLET or sender.owner_id is None:
        raise ApiError(Code.NOT_RECALLABLE)
    await _verify_pin(request, sender.owner_id, pin)


async def _verify_pin(request: RequestContext, subscriber_id: int, pin: str) -> None:
    services = request.services
    async with services.transaction() as tx:
        await pin_operations.verify(
            tx, request.actor, subscriber_id, pin, pin_verifier=services.pin_verifier
        )


@transaction_endpoints.get(
    "/api/v1/subscribers/{id}/recalls",
    access=_RECEIVER,
    objects=ObjectAccess.ANY,
)
async def list_pending_recalls(request: RequestContext, id: SubscriberId) -> PendingRecalls:
    """List the open recalls that wait for a subscriber's answer, oldest first."""
    services = request.services
    answers = await queries.list_pending_answers(services.database, id, services.clock())
    return PendingRecalls(data=[to_pending_record(answer) for answer in answers])


@endpoints.get("")
async def list_recalls(request: RequestContext, query: RecallFilters) -> Page[RecallRecord]:
    """List recalls, newest first.

    If a restricted subscriber takes part, the names, `reason` and `decision_reason` are null until
    the admin verifies a one-time code.
    """
    services = request.services
    rows = await queries.list_page(services.database, query)
    hidden = await find_hidden_accounts(
        services.database,
        request.caller,
        services.clock(),
        {account for row in rows for account in row.account_ids},
    )
    return paginate(
        rows, query, lambda row: to_record(row, masked=not hidden.isdisjoint(row.account_ids))
    )


@endpoints.get("/{id}")
async def get_recall(request: RequestContext, id: RecallId) -> RecallRecord:
    """Get a recall."""
    recall = await queries.get_named(request.services.database, id)
    services = request.services
    hidden = await find_hidden_accounts(
        services.database, request.caller, services.clock(), recall.account_ids
    )
    return to_record(recall, masked=bool(hidden))


@endpoints.post(
    "/{id}/return",
    access=_RECEIVER,
    errors=(
        Code.RECALL_NOT_OPEN,
        Code.INVALID_PIN,
        Code.ACCOUNT_LOCKED,
        Code.INSUFFICIENT_FUNDS,
        Code.NOT_REVERSIBLE,
    ),
    objects=ObjectAccess.PIN,
)
async def return_recalled_transfer(
    request: RequestContext, id: RecallId, body: ReturnTransfer
) -> RecallRecord:
    """Return the held amount to the sender, with the receiver's PIN.

    The fee stays with the platform. Returning the whole amount makes the transfer `reversed`, a
    part of it `partially_reversed`. If nothing is held, the response is `INSUFFICIENT_FUNDS`.
    """
    services = request.services
    recall = await _get_open(request, id)
    receiver_id = await queries.get_owner_id(services.database, recall.receiver_account)
    await _verify_pin(request, receiver_id, body.pin)
    return await _end(request, recall, RecallStatus.RETURNED, is_return=True)


@endpoints.post("/{id}/keep", access=_RECEIVER, errors=(Code.RECALL_NOT_OPEN,))
async def keep_recalled_transfer(request: RequestContext, id: RecallId) -> RecallRecord:
    """Keep the money: the receiver declines the recall, and the hold ends."""
    return await _end(request, await _get_open(request, id), RecallStatus.KEPT)


async def _describe_decision(
    request: GuardedRequest, id: int, body: RecallResolution
) -> Proposal | None:
    if body.decision != RecallVerdict.RETURN:
        return None
    recall = await _get_open(request, id)
    await _require_access(request, recall.account_ids)
    amount = recall.held_amount
    return Proposal(
        operations=(Operation.REVERSALS,),
        summary=f"Return {format_amount(request, amount)} of a recalled transfer to the sender",
        resource_id=ids.encode(ids.RECALL, id),
        amount=amount,
    )


@endpoints.post(
    "/{id}/decide",
    access=Access(roles="AC"),
    errors=(
        Code.OTP_REQUIRED,
        Code.RECALL_NOT_OPEN,
        Code.INSUFFICIENT_FUNDS,
        Code.NOT_REVERSIBLE,
    ),
    guard=Guard(_describe_decision, Operation.REVERSALS, ends_in_ledger=True),
    step_up=True,
    objects=ObjectAccess.UNRESTRICTED,
)
async def decide_recall(
    request: GuardedRequest, id: RecallId, body: RecallResolution
) -> RecallRecord:
    """Decide an open recall: return the held amount to the sender, or release it.

    Returning the amount is a reversal by staff, so the same approval rules apply.
    """
    recall = await _get_open(request, id)
    await _require_access(request, recall.account_ids)
    return await _end(
        request,
        recall,
        RecallStatus.DECIDED,
        is_return=body.decision == RecallVerdict.RETURN,
        reason=body.reason,
    )


async def _get_open(request: GuardedRequest, recall_id: int) -> Recall:
    recall = await queries.get(request.services.database, recall_id)
    if recall.status != RecallStatus.OPEN:
        raise ApiError(Code.RECALL_NOT_OPEN, details={"status": recall.status})
    return recall


async def _end(
    request: GuardedRequest,
    recall: Recall,
    status: RecallStatus,
    *,
    is_return: bool = False,
    reason: str | None = None,
) -> RecallRecord:
    approval = request.approval
    ended = await operations.end_recall(
        request.services,
        request.actor,
        recall,
        status,
        channel=get_channel(request.principal),
        is_return=is_return,
        reason=reason,
        approval_id=None if approval is None else ids.decode(ids.APPROVAL, approval.id),
    )
    return to_record(ended)
