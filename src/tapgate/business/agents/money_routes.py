"""Agent money endpoints: float funding, cash-in, cash-out, float transfers, commission payouts."""

from tapgate.business.agents import queries
from tapgate.business.payments.transactions.customers import (
    build_customer_party,
    require_customer_access,
)
from tapgate.business.payments.transactions.money_requests import (
    build_memo,
    decode_id,
    format_amount,
    submit_request,
    to_minor_units,
)
from tapgate.core.message_templates import Notice
from tapgate.http.api.access import Access
from tapgate.http.api.guards import Guard, Proposal, Unguarded
from tapgate.http.api.idempotency import build_idempotency_key
from tapgate.http.api.notice_declarations import Unnoticed
from tapgate.http.api.object_access import ObjectAccess
from tapgate.http.api.owner_access import NEVER, Binding, OwnerAccess
from tapgate.http.api.request_context import GuardedRequest, RequestContext
from tapgate.http.endpoint import Endpoints, Reply
from tapgate.ledger import chart, commands
from tapgate.ledger.commands import Command, Party
from tapgate_client import ids
from tapgate_client.errors import Code, invalid_field
from tapgate_client.schemas.agents import (
    CashIn,
    CashOut,
    CashReceipt,
    CommissionPayout,
    FloatFunding,
    FloatTransfer,
    FloatTransferReceipt,
    FundingReceipt,
    PayoutReceipt,
)
from tapgate_client.schemas.approvals import Operation
from tapgate_client.schemas.transactions import Channel

endpoints = Endpoints("Agents", "/api/v1/agents", owners=NEVER)

_CHANNEL = Channel.AGENT
_TREASURY_ACCESS = Access(roles="AF")
_COUNTER_ACCESS = Access(scope="payments:write", roles="AF")
#: Agents cash in and pay out their commission in the chat too.
_CASH_IN_ACCESS = Access(scope="payments:write", roles="AF", service=True)
_PAYOUT_ACCESS = Access(roles="AF", service=True)
_OWN_COUNTER = OwnerAccess(binding=Binding.BODY, key_roles="G", parameter="agent_id")

_AGENT_ERRORS = (Code.AGENT_NOT_FOUND, Code.AGENT_NOT_ACTIVE, Code.COMPLIANCE_REJECTED)
_PIN_ERRORS = (Code.INVALID_PIN, Code.ACCOUNT_LOCKED)
_CUSTOMER_ERRORS = (
    Code.SUBSCRIBER_NOT_FOUND,
    Code.CARD_NOT_FOUND,
    Code.SUBSCRIBER_BLOCKED,
    Code.CARD_NOT_ACTIVE,
)
_LIMIT_ERRORS = (
    Code.TRANSACTION_LIMIT_EXCEEDED,
    Code.CARD_LIMIT_EXCEEDED,
    Code.DAILY_LIMIT_EXCEEDED,
    Code.MONTHLY_LIMIT_EXCEEDED,
)


def _require_agents_pin(request: RequestContext, body: CommissionPayout) -> None:
    if body.pin is None and request.principal.kind == "service":
        raise invalid_field("pin", "is required", Code.INVALID_REQUEST)


async def _describe_funding(request: GuardedRequest, id: str, body: FloatFunding) -> Proposal:
    agent = await queries.get(request.services.database, decode_id(ids.AGENT, id))
    amount = to_minor_units(request, body.amount)
    return Proposal(
        operations=(Operation.AGENT_FUND,),
        summary=f"Fund agent {agent.name} with {format_amount(request, amount)}",
        resource_id=id,
        amount=amount,
    )


@endpoints.post(
    "/{id}/fund",
    access=_TREASURY_ACCESS,
    moves_money=True,
    guard=Guard(_describe_funding, Operation.AGENT_FUND),
    step_up=True,
    errors=_AGENT_ERRORS,
    objects=ObjectAccess.ANY,
    notices=(Notice.MONEY_CORRECTED,),
)
async def fund_agent(request: GuardedRequest, id: str, body: FloatFunding) -> Reply[FundingReceipt]:
    """Fund an agent's float.

    Records cash received by the platform, and credits the amount to the agent's float.
    """
    command = Command(
        type=chart.AGENT_FUND,
        channel=_CHANNEL,
        payer=commands.CASH_PARTY,
        payee=_build_agent_party(id),
        amount=to_minor_units(request, body.amount),
        idempotency_key=build_idempotency_key(request, body),
        context=build_memo(body.description, body.reference),
    )
    result = await submit_request(request, command)
    return result.build_reply(FundingReceipt, "Float funded", new_balance=result.payee_balance)


@endpoints.post(
    "/cashin",
    access=_CASH_IN_ACCESS,
    moves_money=True,
    errors=(
        Code.OTP_REQUIRED,
        *_AGENT_ERRORS,
        *_CUSTOMER_ERRORS,
        *_PIN_ERRORS,
        Code.INSUFFICIENT_FLOAT,
        Code.MAX_BALANCE_EXCEEDED,
    ),
    owners=_OWN_COUNTER,
    unguarded=Unguarded.PIN,
    objects=ObjectAccess.UNRESTRICTED | ObjectAccess.PIN,
    unnoticed=Unnoticed.RECEIPT,
)
async def cash_in(request: RequestContext, body: CashIn) -> Reply[CashReceipt]:
    """Cash in to a customer's wallet.

    The customer hands cash to the agent, and the amount moves from the agent's float to the wallet.
    The platform pays the agent a commission according to the commission rules. Identify the
    customer by either `subscriber_id` or `card_serial`.
    """
    await require_customer_access(request, body.subscriber_id, body.card_serial)
    command = Command(
        type=chart.AGENT_CASHIN,
        channel=_CHANNEL,
        payer=_build_agent_party(body.agent_id),
        payee=build_customer_party(body),
        amount=to_minor_units(request, body.amount),
        payer_pin=body.agent_pin,
        pin_policy=commands.PIN_POLICIES[chart.AGENT_CASHIN],
        idempotency_key=build_idempotency_key(request, body),
    )
    result = await submit_request(request, command)
    return result.build_reply(
        CashReceipt,
        "Cash-in completed",
        agent_balance=result.payer_balance,
        subscriber_balance=_hide_balance(request, result.payee_balance),
        commission_earned=result.commission,
    )


@endpoints.post(
    "/cashout",
    access=_COUNTER_ACCESS,
    moves_money=True,
    errors=(
        *_AGENT_ERRORS,
        *_CUSTOMER_ERRORS,
        *_PIN_ERRORS,
        *_LIMIT_ERRORS,
        Code.INSUFFICIENT_FUNDS,
    ),
    owners=_OWN_COUNTER,
    unguarded=Unguarded.PIN,
    objects=ObjectAccess.PIN,
    unnoticed=Unnoticed.RECEIPT,
)
async def cash_out(request: RequestContext, body: CashOut) -> Reply[CashReceipt]:
    """Cash out from a customer's wallet.

    The amount moves from the wallet to the agent's float, and the agent hands cash to the customer.
    The platform pays the agent a commission according to the commission rules. The customer's PIN
    is verified first, then the agent's PIN. If the agent's PIN is wrong or locked, `details.party`
    is `receiver`.
    """
    command = Command(
        type=chart.AGENT_CASHOUT,
        channel=_CHANNEL,
        payer=build_customer_party(body),
        payee=_build_agent_party(body.agent_id),
        amount=to_minor_units(request, body.amount),
        payer_pin=body.pin,
        payee_pin=body.agent_pin,
        pin_policy=commands.PIN_POLICIES[chart.AGENT_CASHOUT],
        idempotency_key=build_idempotency_key(request, body),
    )
    result = await submit_request(request, command)
    return result.build_reply(
        CashReceipt,
        "Cash-out completed",
        agent_balance=result.payee_balance,
        subscriber_balance=_hide_balance(request, result.payer_balance),
        commission_earned=result.commission,
    )


@endpoints.post(
    "/transfer",
    access=_COUNTER_ACCESS,
    moves_money=True,
    errors=(*_AGENT_ERRORS, Code.SELF_TRANSFER, *_PIN_ERRORS, Code.INSUFFICIENT_FLOAT),
    unguarded=Unguarded.PIN,
    objects=ObjectAccess.SUB_AGENTS | ObjectAccess.PIN,
    unnoticed=Unnoticed.RECEIPT,
)
async def transfer_float(
    request: RequestContext, body: FloatTransfer
) -> Reply[FloatTransferReceipt]:
    """Transfer float from an agent to one of its sub-agents."""
    command = Command(
        type=chart.AGENT_TRANSFER,
        channel=_CHANNEL,
        payer=_build_agent_party(body.from_agent_id),
        payee=_build_agent_party(body.to_agent_id),
        amount=to_minor_units(request, body.amount),
        payer_pin=body.pin,
        pin_policy=commands.PIN_POLICIES[chart.AGENT_TRANSFER],
        idempotency_key=build_idempotency_key(request, body),
        context=build_memo(body.description),
    )
    result = await submit_request(request, command)
    return result.build_reply(
        FloatTransferReceipt,
        "Transfer completed",
        from_balance=result.payer_balance,
        to_balance=result.payee_balance,
    )


@endpoints.post(
    "/{id}/payout-commission",
    access=_PAYOUT_ACCESS,
    moves_money=True,
    requires=(_require_agents_pin,),
    errors=(*_AGENT_ERRORS, *_PIN_ERRORS, Code.INSUFFICIENT_FUNDS),
    unguarded=Unguarded.OWN_MONEY,
    objects=ObjectAccess.ANY,
    notices=(Notice.MONEY_CORRECTED,),
)
async def pay_out_commission(
    request: RequestContext, id: str, body: CommissionPayout
) -> Reply[PayoutReceipt]:
    """Pay out an agent's entire commission balance to the float.

    A service must send the agent's PIN. Staff pay out without it.
    """
    command = Command(
        type=chart.COMMISSION_PAYOUT,
        channel=_CHANNEL,
        payer=commands.commission_party(decode_id(ids.AGENT, id)),
        payee=_build_agent_party(id),
        amount=None,
        payer_pin=body.pin,
        idempotency_key=build_idempotency_key(request, body),
    )
    result = await submit_request(request, command)
    return result.build_reply(
        PayoutReceipt, "Commission paid out", float_balance=result.payee_balance
    )


def _hide_balance(request: RequestContext, balance: str | None) -> str | None:
    """Return the customer's balance; None for an agent's own key."""
    return balance if request.principal.owner is None else None


def _build_agent_party(public_id: str) -> Party:
    return commands.agent_party(decode_id(ids.AGENT, public_id))
