"""Agent records, their public representation, and status transitions."""

from collections.abc import Mapping
from datetime import datetime
from typing import Final

import msgspec

from tapgate.business.owners.status_transitions import Transition, build_suspension
from tapgate.core.public_names import get_public_agent_name
from tapgate.core.records import build_record, get_given_fields, require_id
from tapgate.ledger.chart import AccountStatus
from tapgate_client import ids, money
from tapgate_client.errors import ApiError, Code, invalid_field
from tapgate_client.schemas.agents import (
    AgentBalance,
    AgentRecord,
    AgentRegistration,
    AgentStatus,
    AgentType,
    AgentUpdate,
)

#: Account status -> status in the API.
PUBLIC_STATUSES: Final[Mapping[str, AgentStatus]] = {
    AccountStatus.ACTIVE: AgentStatus.ACTIVE,
    AccountStatus.BLOCKED: AgentStatus.SUSPENDED,
    AccountStatus.CLOSED: AgentStatus.TERMINATED,
}


class Agent(msgspec.Struct, frozen=True, kw_only=True):
    """Agent as stored, with money in minor units."""

    id: int
    account_id: int  # the float account, which the API returns as the agent's account
    commission_account_id: int
    agent_type: str
    name: str
    phone_number: str
    currency: str
    created_at: datetime
    updated_at: datetime
    parent_agent_id: int | None = None
    business_name: str | None = None
    email: str | None = None
    address: str | None = None
    commission_tier: int = 1
    status: AccountStatus = AccountStatus.ACTIVE  # of both accounts
    status_reason: str | None = None
    float_balance: int = 0
    commission_balance: int = 0
    held: int = 0  # across both accounts

    @property
    def public_name(self) -> str:
        """Return the name disclosed to customers."""
        return get_public_agent_name(self.name, self.business_name)

    @property
    def public_id(self) -> str:
        return ids.encode(ids.AGENT, self.id)


def to_record(agent: Agent) -> AgentRecord:
    return build_record(
        AgentRecord,
        agent,
        id=agent.public_id,
        status=PUBLIC_STATUSES[agent.status],
        float_balance=money.format_decimal(agent.float_balance, agent.currency),
        commission_balance=money.format_decimal(agent.commission_balance, agent.currency),
    )


def to_balance(agent: Agent) -> AgentBalance:
    return build_record(AgentBalance, to_record(agent), agent_id=agent.public_id)


def decode_parent_id(registration: AgentRegistration) -> int | None:
    """Return the parent agent's id, or None if the registration has none.

    A parent is rejected for a super-agent.
    """
    if registration.parent_agent_id is None:
        return None
    if registration.agent_type == AgentType.SUPER_AGENT:
        raise invalid_field("parent_agent_id", "must not be set for a super_agent")
    return require_id(ids.AGENT, registration.parent_agent_id)


def require_valid_parent(parent: Agent) -> None:
    if parent.agent_type != AgentType.SUPER_AGENT:
        raise invalid_field("parent_agent_id", "must be a super_agent")
    if parent.status == AccountStatus.CLOSED:
        raise invalid_field("parent_agent_id", "must not be a terminated agent")


def apply_update(agent: Agent, update: AgentUpdate) -> Agent:
    require_not_terminated(agent)
    return msgspec.structs.replace(agent, **get_given_fields(update))


SUSPEND, ACTIVATE = build_suspension(AccountStatus.ACTIVE, AccountStatus.BLOCKED)
TERMINATE: Final[Transition[AccountStatus]] = Transition(
    "terminated",
    {AccountStatus.ACTIVE: AccountStatus.CLOSED, AccountStatus.BLOCKED: AccountStatus.CLOSED},
    Code.NOT_CLOSABLE,
)


#: Sentences in the notice to the agent, by language and new status.
STATUS_TEXTS: Final[Mapping[str, Mapping[str, str]]] = {
    "en": {
        AccountStatus.BLOCKED: "your agent account was suspended",
        AccountStatus.ACTIVE: "your agent account was activated",
        AccountStatus.CLOSED: "your agent account was terminated",
    },
    "fr": {
        AccountStatus.BLOCKED: "votre compte d'agent a été suspendu",
        AccountStatus.ACTIVE: "votre compte d'agent a été activé",
        AccountStatus.CLOSED: "votre compte d'agent a été résilié",
    },
}


def apply_transition(
    agent: Agent, transition: Transition[AccountStatus], reason: str | None
) -> Agent:
    """Return the agent with its next status; raise an error if the transition is not allowed.

    Termination requires zero balances and no funds on hold.
    """
    require_not_terminated(agent)
    status = transition.apply(agent.status)
    if status == AccountStatus.CLOSED and (
        agent.float_balance or agent.commission_balance or agent.held
    ):
        raise ApiError(
            Code.NOT_CLOSABLE,
            "The agent's float and commission balances must be zero, with no funds on hold.",
        )
    return msgspec.structs.replace(agent, status=status, status_reason=reason)


def require_not_terminated(agent: Agent) -> None:
    """Reject changes to a terminated agent. The status `terminated` is final."""
    if agent.status == AccountStatus.CLOSED:
        raise ApiError(Code.NOT_CLOSABLE, "The agent is terminated.")
