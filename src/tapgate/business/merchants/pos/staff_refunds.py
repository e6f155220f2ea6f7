"""Refunds that staff issue for a merchant."""

from tapgate.auth.owners import TRANSACTIONS
from tapgate.business.customers.subscribers.restriction import require_account_access
from tapgate.business.merchants.pos.payments import REFUND_ERRORS, submit_refund
from tapgate.business.payments.transactions import queries
from tapgate.business.payments.transactions.model import Transaction, TransactionSide
from tapgate.business.payments.transactions.money_requests import (
    format_amount,
    get_channel,
    to_minor_units,
)
from tapgate.core.message_templates import Notice
from tapgate.core.records import TransactionId
from tapgate.http.api.access import Access
from tapgate.http.api.guards import Guard, Proposal, Requirement
from tapgate.http.api.idempotency import require_idempotency_key
from tapgate.http.api.object_access import ObjectAccess
from tapgate.http.api.owner_access import NEVER, Binding, OwnerAccess
from tapgate.http.api.request_context import GuardedRequest
from tapgate.http.endpoint import Endpoints, Reply
from tapgate.ledger import chart
from tapgate_client import ids
from tapgate_client.errors import ApiError, Code
from tapgate_client.schemas.admin import AdminRole
from tapgate_client.schemas.approvals import DEFAULT_EXPIRY_SECONDS, Operation
from tapgate_client.schemas.pos import PaymentRefund, RefundReceipt

endpoints = Endpoints("Transactions", owners=NEVER)

#: Support staff need an approval even if no rule requires one.
SUPPORT_REQUIREMENT = Requirement(
    roles=[AdminRole.SYSTEM_ADMIN, AdminRole.FINANCE_USER],
    approvers=1,
    expires_in=DEFAULT_EXPIRY_SECONDS,
)


async def _describe_refund(request: GuardedRequest, id: int, body: PaymentRefund) -> Proposal:
    payment = await _get_payment(request, id)
    amount = payment.amount - payment.given_back
    if body.amount is not None:
        amount = to_minor_units(request, body.amount)
    is_support = request.principal.role == AdminRole.SUPPORT_USER
    return Proposal(
        operations=(Operation.REFUNDS,),
        summary=f"Refund {format_amount(request, amount)} of a payment of "
        f"{format_amount(request, payment.amount)} to {_get_merchant(payment).holder_name}",
        resource_id=ids.encode(ids.TRANSACTION, id),
        amount=amount,
        requirement=SUPPORT_REQUIREMENT if is_support else None,
    )


@endpoints.post(
    "/api/v1/transactions/{id}/refund",
    access=Access(roles="AFS"),
    moves_money=True,
    requires=(require_idempotency_key,),
    guard=Guard(_describe_refund, Operation.REFUNDS),
    owners=OwnerAccess(binding=Binding.ROW, roles="MK", rows=TRANSACTIONS, key_roles=""),
    step_up=True,
    errors=(*REFUND_ERRORS, Code.OTP_REQUIRED, Code.PROCESSOR_SUSPENDED),
    objects=ObjectAccess.UNRESTRICTED,
    notices=(Notice.MONEY_CORRECTED,),
)
async def refund_transaction(
    request: GuardedRequest, id: TransactionId, body: PaymentRefund
) -> Reply[RefundReceipt]:
    """Refund a card payment in full or in part, for the merchant.

    Requires an idempotency key. Without `amount`, the entire refundable amount is refunded. The
    money comes from the merchant's settlement account, as in a refund by the merchant. A request
    by support waits for the approval of finance or a system administrator.
    """
    payment = await _get_payment(request, id)
    processor_id = _get_merchant(payment).owner_id
    assert processor_id is not None
    return await submit_refund(request, processor_id, id, body, get_channel(request.principal))


def _get_merchant(payment: Transaction) -> TransactionSide:
    assert payment.payee is not None, "the payee of a card payment is a merchant"
    return payment.payee


async def _get_payment(request: GuardedRequest, transaction_id: int) -> Transaction:
    """Return a card payment that the caller may see in full."""
    services = request.services
    payment = await queries.get(services.database, transaction_id)
    if request.owner_view is None:  # a merchant may refund whom it must not know
        await require_account_access(
            services.database, request.caller, services.clock(), payment.account_ids
        )
    if payment.type not in chart.PAYMENT_TYPES:
        raise ApiError(Code.NOT_REFUNDABLE)
    return payment
