"""Float request endpoints: for the chat, support and finance."""

from typing import Final

from tapgate.auth.owners import FLOAT_REQUESTS
from tapgate.business.agents import queries as agents
from tapgate.business.agents.float_requests import operations, queries
from tapgate.business.agents.float_requests.model import FloatRequest, to_record
from tapgate.business.payments.transactions.money_requests import format_amount, submit_request
from tapgate.core.message_templates import Notice
from tapgate.core.pagination import paginate
from tapgate.core.records import AgentId, FloatRequestId
from tapgate.http.api.access import Access
from tapgate.http.api.guards import Guard, Proposal, Unguarded
from tapgate.http.api.idempotency import (
    build_idempotency_key,
    require_consistent_idempotency_key,
)
from tapgate.http.api.notice_declarations import Unnoticed
from tapgate.http.api.object_access import ObjectAccess
from tapgate.http.api.owner_access import NEVER, Binding, OwnerAccess
from tapgate.http.api.request_context import GuardedRequest, RequestContext
from tapgate.http.endpoint import Endpoints, Reply
from tapgate.ledger import chart, commands
from tapgate.ledger.commands import Command
from tapgate.runtime.store.transaction import Transaction
from tapgate_client import ids
from tapgate_client.errors import ApiError, Code
from tapgate_client.schemas.agents import FloatTransferReceipt, FundingReceipt
from tapgate_client.schemas.approvals import Operation
from tapgate_client.schemas.float_requests import (
    FloatRequestDecline,
    FloatRequestFilters,
    FloatRequestFunding,
    FloatRequestRecord,
    FloatRequestTransfer,
    NewFloatRequest,
)
from tapgate_client.schemas.pagination import Page
from tapgate_client.schemas.transactions import Channel

_PREFIX: Final = "/api/v1/float-requests"
_AGENT_ACCESS: Final = Access(roles="SA", service=True)
_READ_ACCESS: Final = Access(roles="FAS", service=True)
_SUPER_AGENT_ACCESS: Final = Access(service=True)
_FINANCE_ACCESS: Final = Access(roles="FA")
_OWN_REQUEST: Final = OwnerAccess(binding=Binding.ROW, roles="G", rows=FLOAT_REQUESTS, key_roles="")
_NOT_OPEN: Final = (Code.FLOAT_REQUEST_NOT_OPEN,)
_FUNDING_ERRORS: Final = (*_NOT_OPEN, Code.AGENT_NOT_ACTIVE, Code.COMPLIANCE_REJECTED)

endpoints = Endpoints(
    "Float requests",
    objects=ObjectAccess.ANY,
    owners=NEVER,
)


@endpoints.post(
    "/api/v1/agents/{id}/float-requests",
    access=_AGENT_ACCESS,
    owners=OwnerAccess(binding=Binding.PATH, roles="G", key_roles=""),
    status=201,
    other_statuses=(200,),
    requires=(require_consistent_idempotency_key,),
    errors=(Code.AGENT_NOT_ACTIVE, Code.DUPLICATE_REQUEST),
    unguarded=Unguarded.NO_EFFECT,
)
async def request_float(
    request: RequestContext, tx: Transaction, id: AgentId, body: NewFloatRequest
) -> Reply[FloatRequestRecord]:
    """Request float for an agent.

    A sub-agent's request waits for its super-agent, who gets a message. If it is still open after
    30 minutes, it waits for finance, as does any other agent's request from the start. With an
    idempotency key, a repeated request gets the first float request with status 200.
    """
    item, is_new = await operations.ask(
        tx,
        request.actor,
        id,
        body,
        build_idempotency_key(request, body),
        currency=request.services.settings.currency,
    )
    headers = {} if is_new else {"Idempotent-Replayed": "true"}
    return Reply(to_record(item, tx.now()), status=201 if is_new else 200, headers=headers)


@endpoints.get(
    _PREFIX,
    access=_READ_ACCESS,
    owners=OwnerAccess(binding=Binding.LIST, roles="G", rows=FLOAT_REQUESTS, key_roles=""),
)
async def list_float_requests(
    request: RequestContext, query: FloatRequestFilters
) -> Page[FloatRequestRecord]:
    """List float requests, newest first, or oldest first with `order=oldest`.

    `parent_agent_id` lists the requests of a super-agent's sub-agents.
    """
    now = request.services.clock()
    rows = await queries.list_page(request.services.database, query, now, request.owner_view)
    return paginate(rows, query, lambda item: to_record(item, now, with_float=True))


@endpoints.get(f"{_PREFIX}/{{id}}", access=_READ_ACCESS, owners=_OWN_REQUEST)
async def get_float_request(request: RequestContext, id: FloatRequestId) -> FloatRequestRecord:
    """Get a float request."""
    services = request.services
    item = await queries.get(services.database, id)
    return to_record(item, services.clock(), with_float=True)


async def _describe_funding(
    request: GuardedRequest, id: int, body: FloatRequestFunding
) -> Proposal | None:
    item = await queries.get(request.services.database, id)
    agent_id = ids.encode(ids.AGENT, item.agent_id)
    agent = await agents.get(request.services.database, item.agent_id)
    return Proposal(
        operations=(Operation.AGENT_FUND,),
        summary=f"Fund agent {agent.name} with {format_amount(request, item.amount)}",
        resource_id=agent_id,
        amount=item.amount,
    )


@endpoints.post(
    f"{_PREFIX}/{{id}}/fund",
    access=_FINANCE_ACCESS,
    moves_money=True,
    guard=Guard(_describe_funding, Operation.AGENT_FUND),
    step_up=True,
    errors=_FUNDING_ERRORS,
    notices=(Notice.MONEY_CORRECTED,),
)
async def fund_float_request(
    request: GuardedRequest, id: FloatRequestId, body: FloatRequestFunding
) -> Reply[FundingReceipt]:
    """Fund a float request as finance.

    Records cash received by the platform, and credits the requested amount to the agent's float,
    as `POST /agents/{id}/fund` does. A sub-agent's request can be funded before its super-agent
    has answered. A funding held for review ends the request too.
    """
    item = await queries.get(request.services.database, id)
    command = _build_command(request, item, body, chart.AGENT_FUND, commands.CASH_PARTY)
    result = await submit_request(request, command)
    return result.build_reply(FundingReceipt, "Float funded", new_balance=result.payee_balance)


@endpoints.post(
    f"{_PREFIX}/{{id}}/transfer",
    access=_SUPER_AGENT_ACCESS,
    moves_money=True,
    errors=(
        *_FUNDING_ERRORS,
        Code.AGENT_NOT_FOUND,
        Code.INVALID_PIN,
        Code.ACCOUNT_LOCKED,
        Code.INSUFFICIENT_FLOAT,
    ),
    objects=ObjectAccess.PIN,
    unnoticed=Unnoticed.RECEIPT,
)
async def fund_float_request_by_transfer(
    request: RequestContext, id: FloatRequestId, body: FloatRequestTransfer
) -> Reply[FloatTransferReceipt]:
    """Fund a sub-agent's float request as its super-agent, with the super-agent's PIN.

    The requested amount moves from the super-agent's float to the sub-agent's. The request of an
    agent without a super-agent gets 404 `AGENT_NOT_FOUND`.
    """
    item = await queries.get(request.services.database, id)
    if item.parent_agent_id is None:
        raise ApiError(Code.AGENT_NOT_FOUND)
    payer = commands.agent_party(item.parent_agent_id)
    command = _build_command(request, item, body, chart.AGENT_TRANSFER, payer, pin=body.pin)
    result = await submit_request(request, command)
    return result.build_reply(
        FloatTransferReceipt,
        "Transfer completed",
        from_balance=result.payer_balance,
        to_balance=result.payee_balance,
    )


def _build_command(
    request: GuardedRequest,
    item: FloatRequest,
    body: FloatRequestFunding | FloatRequestTransfer,
    transaction_type: str,
    payer: commands.Party,
    pin: str | None = None,
) -> Command:
    return Command(
        type=transaction_type,
        channel=Channel.AGENT,
        payer=payer,
        payee=commands.agent_party(item.agent_id),
        amount=item.amount,
        payer_pin=pin,
        pin_policy=commands.PIN_POLICIES.get(transaction_type, "if_given"),
        idempotency_key=build_idempotency_key(request, body),
        context={"float_request_id": item.public_id},
        audit=request.actor.build_audit_facts(None),
        float_request_id=item.id,
    )


@endpoints.post(
    f"{_PREFIX}/{{id}}/pass-on",
    access=_SUPER_AGENT_ACCESS,
    errors=_NOT_OPEN,
    effect="sets",
)
async def pass_float_request_on(
    request: RequestContext, tx: Transaction, id: FloatRequestId
) -> FloatRequestRecord:
    """Pass a sub-agent's float request on to finance, as its super-agent."""
    return to_record(await operations.pass_on(tx, request.actor, id), tx.now())


@endpoints.post(
    f"{_PREFIX}/{{id}}/decline",
    access=_FINANCE_ACCESS,
    errors=_NOT_OPEN,
    unguarded=Unguarded.NO_EFFECT,
)
async def decline_float_request(
    request: RequestContext, tx: Transaction, id: FloatRequestId, body: FloatRequestDecline
) -> FloatRequestRecord:
    """Decline a float request. The agent gets a message with the reason."""
    item = await operations.decline(tx, request.actor, id, body.reason)
    return to_record(item, tx.now())


@endpoints.post(
    f"{_PREFIX}/{{id}}/cancel",
    access=_AGENT_ACCESS,
    owners=_OWN_REQUEST,
    errors=_NOT_OPEN,
    unguarded=Unguarded.NO_EFFECT,
)
async def cancel_float_request(
    request: RequestContext, tx: Transaction, id: FloatRequestId
) -> FloatRequestRecord:
    """Cancel a float request for its agent."""
    return to_record(await operations.cancel(tx, request.actor, id), tx.now())
