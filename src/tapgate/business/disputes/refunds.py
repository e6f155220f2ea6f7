"""Refunds that end a dispute: by the merchant's acceptance or by a decision.

The refund is an ordinary refund by the merchant. The ledger ends the dispute in the refund's
database transaction, so a dispute causes at most one refund, whoever decides at the same time.
"""

from typing import Final

from tapgate.business.disputes import model, operations, queries
from tapgate.business.disputes.model import Dispute
from tapgate.business.merchants.pos.staff_refunds import SUPPORT_REQUIREMENT
from tapgate.business.payments.transactions.money_requests import (
    attach_request,
    format_amount,
    get_refund_limit,
)
from tapgate.http.api.guards import Proposal
from tapgate.http.api.request_context import GuardedRequest
from tapgate.ledger import chart
from tapgate.ledger.commands import CASH_PARTY, Command, DisputeRefund, processor_party
from tapgate_client.errors import ApiError, Code
from tapgate_client.schemas.admin import AdminRole
from tapgate_client.schemas.approvals import Operation
from tapgate_client.schemas.transactions import Channel

#: The merchant may refund a part between the lookup and the refund.
_MAX_ATTEMPTS: Final = 5


async def describe(request: GuardedRequest, dispute: Dispute) -> Proposal | None:
    """Return what a refund by an admin would do.

    It is a refund by staff, so the same approval rules apply, and support needs an approval.
    """
    model.require_undecided(dispute)
    remaining = await queries.get_remaining(request.services.database, dispute.transaction_id)
    amount = min(dispute.amount, remaining)
    if amount <= 0:
        return None  # the dispute ends without a refund
    is_support = request.principal.role == AdminRole.SUPPORT_USER
    return Proposal(
        operations=(Operation.REFUNDS,),
        summary=f"Refund {format_amount(request, amount)} for the dispute {dispute.public_id}",
        resource_id=dispute.public_id,
        amount=amount,
        requirement=SUPPORT_REQUIREMENT if is_support else None,
    )


async def refund(request: GuardedRequest, dispute: Dispute, end: DisputeRefund) -> Dispute:
    """Refund the disputed amount, at most what remains, and return the ended dispute.

    If nothing remains, the dispute also ends as refunded, and the response is 409.
    """
    services = request.services
    model.require_undecided(dispute)
    for _ in range(_MAX_ATTEMPTS):
        remaining = await queries.get_remaining(services.database, dispute.transaction_id)
        if not remaining:
            break
        outcome = await services.ledger.submit(
            _build_command(request, dispute, end, min(dispute.amount, remaining))
        )
        if outcome.code == Code.ALREADY_REFUNDED:
            break
        if outcome.code != Code.REFUND_EXCEEDS_REMAINING:
            outcome.require_accepted()
            return await queries.get(services.database, dispute.id)
    async with services.transaction() as tx:
        await operations.end_without_refund(tx, request.actor, end)
    raise ApiError(Code.ALREADY_REFUNDED, "Nothing of the payment remains to be refunded.")


def _build_command(
    request: GuardedRequest, dispute: Dispute, end: DisputeRefund, amount: int
) -> Command:
    reason = end.decision_reason or end.response
    command = Command(
        type=chart.REFUND,
        channel=Channel.POS if request.principal.kind == "processor" else Channel.ADMIN,
        payer=processor_party(dispute.processor_id),
        payee=CASH_PARTY,  # ignored: the ledger credits the original payer
        amount=amount,
        original_id=dispute.transaction_id,
        context={"memo": reason, "dispute_id": dispute.public_id},
        audit=request.actor.build_audit_facts(reason),
        dispute=end,
        refund_limit=get_refund_limit(request),
    )
    return attach_request(request, command)
