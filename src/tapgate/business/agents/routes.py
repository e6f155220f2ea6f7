"""Agent endpoints: records, profile, status and PIN."""

from operator import itemgetter

import msgspec

from tapgate.auth.owners import AGENTS
from tapgate.business.agents import operations, queries
from tapgate.business.agents.model import ACTIVATE, SUSPEND, TERMINATE, to_balance, to_record
from tapgate.business.agents.pins import pin_operations
from tapgate.business.owners.status_transitions import Transition, describe_activation
from tapgate.business.pins import routes as pin_routes
from tapgate.core.message_templates import Notice
from tapgate.core.pagination import paginate
from tapgate.core.records import AgentId
from tapgate.events.notifications import message_statuses
from tapgate.events.notifications.codes import ONE_TIME_CODE_TEMPLATE
from tapgate.http.api.access import Access
from tapgate.http.api.guards import Guard, Proposal, Unguarded
from tapgate.http.api.notice_declarations import Unnoticed
from tapgate.http.api.object_access import ObjectAccess
from tapgate.http.api.owner_access import NEVER, Binding, OwnerAccess
from tapgate.http.api.request_context import GuardedRequest, RequestContext
from tapgate.http.endpoint import Endpoints
from tapgate.ledger.chart import AccountStatus
from tapgate.runtime.store.transaction import Transaction
from tapgate_client import money
from tapgate_client.errors import Code, invalid_field
from tapgate_client.schemas.agents import (
    DEFAULT_COMMISSION_TIER,
    AgentBalance,
    AgentFilters,
    AgentPinChange,
    AgentRecord,
    AgentRegistered,
    AgentRegistration,
    AgentResponse,
    AgentUpdate,
)
from tapgate_client.schemas.approvals import Operation
from tapgate_client.schemas.common import OptionalReason, Reason, SuccessResponse
from tapgate_client.schemas.messages import MessageRecord
from tapgate_client.schemas.pagination import Page, PageQuery
from tapgate_client.schemas.subscribers import PinReset

endpoints = Endpoints("Agents", "/api/v1/agents", objects=ObjectAccess.ANY, owners=NEVER)

_ADMIN_ACCESS = Access(roles="A")
_READ_ACCESS = Access(scope="payments:read", roles="ACSF")
_LIST_ACCESS = Access(scope="payments:read", roles="ACSF", service=True)
_STAFF_ACCESS = Access(roles="ACSF")
_RESET_ACCESS = Access(roles="AS", service=True)

#: An agent and its sub-agents.
_OWN_AGENT = OwnerAccess(binding=Binding.ROW, roles="G", rows=AGENTS)
_CHANGE_ERRORS = (Code.NOT_CLOSABLE,)


async def _describe_registration(
    request: GuardedRequest, body: AgentRegistration
) -> Proposal | None:
    """Describe an agent with a higher commission tier. Other new agents can move no money yet."""
    if body.commission_tier == DEFAULT_COMMISSION_TIER:
        return None
    return Proposal(
        operations=(Operation.AGENT_PHONE,),
        summary=f"Register agent {body.name}",
        # Stored requests have no PIN, so the registration cannot wait.
        rejection=invalid_field(
            "commission_tier",
            f"must be {DEFAULT_COMMISSION_TIER}: change it after the registration, which needs an "
            "approval",
        ),
    )


@endpoints.post(
    "",
    access=_ADMIN_ACCESS,
    status=201,
    errors=(Code.MISSING_PARENT, Code.AGENT_NOT_FOUND, Code.DUPLICATE_PHONE),
    guard=Guard(_describe_registration, Operation.AGENT_PHONE),
    step_up=True,
    unnoticed=Unnoticed.NEW,
)
async def register_agent(
    request: GuardedRequest, tx: Transaction, body: AgentRegistration
) -> AgentRegistered:
    """Register an agent.

    A `sub_agent` requires the `parent_agent_id` of a `super_agent`. A `super_agent` has no parent.
    While an approval rule for `agent_phone` applies, a new agent has the `commission_tier` 1 (422).
    """
    services = request.services
    agent = await operations.register(
        tx,
        request.actor,
        body,
        pin_verifier=services.pin_verifier,
        currency=services.settings.currency,
    )
    record = to_record(agent)
    return AgentRegistered(agent_id=record.id, agent=record)


@endpoints.get(
    "",
    access=_LIST_ACCESS,
    heavy="search",
    owners=OwnerAccess(binding=Binding.LIST, roles="G", rows=AGENTS),
)
async def list_agents(request: RequestContext, query: AgentFilters) -> Page[AgentRecord]:
    """List agents, newest first, or by name with `order=name`.

    `search` is either a complete agent ID or a list of words. Each word must occur, ignoring case,
    in the name, business name or phone number, and at least one word must have 3 or more
    characters. `address` is a part of the address, ignoring case. With `low_float=true`, only
    active agents whose float is below `TAPGATE_FLOAT_LOW` are listed. An agent_user gets its agent
    and its sub-agents.
    """
    services = request.services
    threshold = money.from_whole_units(services.settings.float_low, services.settings.currency)
    rows = await queries.list_page(services.database, query, threshold, request.owner_view)
    return paginate(rows, query, to_record)


@endpoints.get("/{id}", access=_READ_ACCESS, owners=_OWN_AGENT)
async def get_agent(request: RequestContext, id: AgentId) -> AgentRecord:
    """Get an agent."""
    return to_record(await queries.get(request.services.database, id))


@endpoints.get(
    "/{id}/balance", access=Access(scope="balance:read", roles="ACSF"), owners=_OWN_AGENT
)
async def get_agent_balance(request: RequestContext, id: AgentId) -> AgentBalance:
    """Get an agent's float balance and unpaid commission."""
    return to_balance(await queries.get(request.services.database, id))


async def _describe_update(request: GuardedRequest, id: int, body: AgentUpdate) -> Proposal | None:
    agent = to_record(await queries.get(request.services.database, id))
    if body.phone_number in (None, agent.phone_number) and body.commission_tier in (
        None,
        agent.commission_tier,
    ):
        return None
    return Proposal(
        operations=(Operation.AGENT_PHONE,),
        summary=f"Change the phone number or commission tier of agent {agent.name}",
        resource_id=agent.id,
        before=msgspec.to_builtins(agent),
    )


@endpoints.put(
    "/{id}",
    access=_ADMIN_ACCESS,
    guard=Guard(_describe_update, Operation.AGENT_PHONE),
    step_up=("phone_number", "commission_tier"),
    errors=(*_CHANGE_ERRORS, Code.DUPLICATE_PHONE),
    notices=(Notice.PHONE_CHANGED,),
)
async def update_agent(
    request: GuardedRequest, tx: Transaction, id: AgentId, body: AgentUpdate
) -> AgentRecord:
    """Update an agent.

    Fields that are absent or null keep their values. A new `commission_tier` applies from the next
    cash-in or cash-out. A terminated agent cannot be changed.
    """
    return to_record(await operations.update(tx, request.actor, id, body))


@endpoints.post(
    "/{id}/suspend",
    access=_ADMIN_ACCESS,
    errors=(*_CHANGE_ERRORS, Code.ALREADY_SUSPENDED),
    unguarded=Unguarded.TAKES_RIGHTS,
    notices=(Notice.WALLET_CHANGED,),
)
async def suspend_agent(
    request: RequestContext, tx: Transaction, id: AgentId, body: Reason
) -> AgentResponse:
    """Suspend an agent.

    A suspended agent can neither send nor receive money.
    """
    return await _change_status(request, tx, id, SUSPEND, body.reason)


async def _describe_activation(
    request: GuardedRequest, id: int, body: OptionalReason
) -> Proposal | None:
    agent = await queries.get(request.services.database, id)
    is_allowed = agent.status in ACTIVATE.allowed
    summary = f"Reactivate agent {agent.name}"
    return describe_activation(
        Operation.AGENT_PHONE, summary, to_record(agent), is_allowed=is_allowed
    )


@endpoints.post(
    "/{id}/activate",
    access=_ADMIN_ACCESS,
    errors=(*_CHANGE_ERRORS, Code.NOT_SUSPENDED),
    guard=Guard(_describe_activation, Operation.AGENT_PHONE),
    step_up=True,
    notices=(Notice.WALLET_CHANGED,),
)
async def activate_agent(
    request: GuardedRequest, tx: Transaction, id: AgentId, body: OptionalReason
) -> AgentResponse:
    """Reactivate a suspended agent."""
    return await _change_status(request, tx, id, ACTIVATE, body.reason)


@endpoints.post(
    "/{id}/terminate",
    access=_ADMIN_ACCESS,
    errors=_CHANGE_ERRORS,
    unguarded=Unguarded.TAKES_RIGHTS,
    notices=(Notice.WALLET_CHANGED,),
)
async def terminate_agent(
    request: RequestContext, tx: Transaction, id: AgentId, body: Reason
) -> AgentResponse:
    """Terminate an agent permanently.

    The float and commission balances must be zero, with no funds on hold. Sub-agents are not
    affected.
    """
    return await _change_status(request, tx, id, TERMINATE, body.reason)


async def _change_status(
    request: GuardedRequest,
    tx: Transaction,
    id: int,
    transition: Transition[AccountStatus],
    reason: str | None,
) -> AgentResponse:
    agent = await operations.change_status(tx, request.actor, id, transition, reason)
    return AgentResponse(message=f"Agent {transition.event}", agent=to_record(agent))


@endpoints.post(
    "/{id}/change-pin",
    access=_ADMIN_ACCESS,
    errors=(*_CHANGE_ERRORS, Code.INVALID_PIN, Code.SAME_PIN, Code.ACCOUNT_LOCKED),
    invalid_is_400=True,
    unguarded=Unguarded.PIN,
    objects=ObjectAccess.PIN,
    notices=(Notice.PIN_CHANGED,),
)
async def change_agent_pin(
    request: RequestContext, tx: Transaction, id: AgentId, body: AgentPinChange
) -> SuccessResponse:
    """Change an agent's PIN."""
    return await pin_routes.change_pin(request, tx, pin_operations, id, body)


@endpoints.post(
    "/{id}/reset-pin",
    access=_RESET_ACCESS,
    errors=_CHANGE_ERRORS,
    unguarded=Unguarded.ONE_TIME_CODE,
    unnoticed=Unnoticed.CODE,
)
async def request_agent_pin_reset(
    request: RequestContext, tx: Transaction, id: AgentId
) -> SuccessResponse:
    """Request an agent PIN reset.

    Sends a 6-digit one-time code to the agent's phone. The code is valid for 5 minutes and 3
    attempts, and replaces any previous code. A phone number receives at most 1 code per minute and
    5 per hour across all endpoints. After 15 wrong codes within 24 hours, no code is sent until
    this period ends. Requests over a limit get 429 with `Retry-After`.
    """
    return await pin_routes.request_pin_reset(request, tx, pin_operations, id, "agent")


@endpoints.post(
    "/{id}/reset-pin/confirm",
    access=_RESET_ACCESS,
    errors=(*_CHANGE_ERRORS, Code.INVALID_OTP),
    unguarded=Unguarded.ONE_TIME_CODE,
    objects=ObjectAccess.OTP,
    notices=(Notice.PIN_CHANGED,),
)
async def reset_agent_pin(
    request: RequestContext, tx: Transaction, id: AgentId, body: PinReset
) -> SuccessResponse:
    """Set an agent's new PIN with the one-time code.

    The old PIN is not required, and a locked PIN is unlocked. A code becomes invalid after three
    wrong attempts, when it expires, when it is used, or when a new code is requested.
    """
    return await pin_routes.reset_pin(request, tx, pin_operations, id, body)


@endpoints.get("/{id}/messages", access=_STAFF_ACCESS)
async def list_agent_messages(
    request: RequestContext, id: AgentId, query: PageQuery
) -> Page[MessageRecord]:
    """List the one-time codes sent to an agent's phone.

    Newest first, without the codes. Messages from before the agent had the phone number are not
    listed. `status` is `queued`, `sent`, `delivered`, `read` or `failed`. If it is `failed`,
    `error_code` is the provider's or messenger's error code, or `expired` for a message not sent in
    time.
    """
    database = request.services.database
    agent = await queries.get(database, id)
    rows = await message_statuses.list_page(
        database,
        agent.phone_number,
        query,
        since=await queries.get_phone_number_owned_since(database, agent.id),
        template=ONE_TIME_CODE_TEMPLATE,
    )
    return paginate(rows, query, message_statuses.to_message_record, itemgetter("id"))
