"""Agent list, agent trees, agent details and actions."""

import asyncio
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, NamedTuple

from tapgate.console.actions import Action, Field
from tapgate.console.page_request import PageRequest, build_path
from tapgate.console.site import Pages
from tapgate.edge.endpoint import Reply

pages = Pages()

_LIST_PATH = "/api/v1/agents"
_ITEM_PATH = "/api/v1/agents/{id}"
_TREES_PER_PAGE = 20  # each tree takes another request for its sub-agents
_MAX_SUB_AGENTS = 100
_RECENT_LIMIT = 10

_REASON = Field("reason", "Reason", "long", hint="Kept in the audit trail")
_PROFILE = (
    Field("name", "Name", hint="The person who works at the counter"),
    Field("business_name", "Business", required=False, hint="What customers see instead"),
    Field("phone_number", "Phone", "tel", hint="With its country: +23276123456"),
    Field("email", "E-mail", "email", required=False),
    Field("address", "Address", required=False, hint="Where customers find the counter"),
    Field(
        "commission_tier",
        "Commission tier",
        "whole_choice",
        (("1", "1: the lowest rate"), ("2", "2"), ("3", "3: the highest rate")),
        hint="What the agent earns on each cash-in",
        value="1",
    ),
    Field("pin", "PIN", "pin", hint="Four digits, typed by the agent: every cash-in needs it"),
)
_AMOUNT = Field("amount", "Amount", "money", hint="Like 5000")
_MEMO = Field("description", "What for", required=False, hint="Kept with the transaction")

ACTIONS = (
    Action(
        name="agent.register",
        endpoint=f"POST {_LIST_PATH}",
        title="Register a super-agent",
        description="A super-agent works at a counter and passes float on to sub-agents. It starts "
        "with an empty float.",
        button="Register",
        fields=(Field("agent_type", "Type", "hidden", value="super_agent"), *_PROFILE),
        success_message="The super-agent is registered. Fund the float, then it can take cash in.",
        redirect_path="/console/agents/{agent_id}",
    ),
    Action(
        name="agent.register_sub",
        endpoint=f"POST {_LIST_PATH}",
        title="Register a sub-agent",
        description=(
            "A sub-agent works at a counter of its own and gets float from its super-agent."
            " It starts with an empty float."
        ),
        button="Register",
        fields=(
            Field("agent_type", "Type", "hidden", value="sub_agent"),
            Field("parent_agent_id", "Super-agent", "hidden"),
            *_PROFILE,
        ),
        success_message="The sub-agent is registered. It needs float before it can take cash in.",
        redirect_path="/console/agents/{agent_id}",
    ),
    Action(
        name="agent.fund",
        endpoint=f"POST {_ITEM_PATH}/fund",
        title="Fund the float",
        description="Do this when the agent's money has reached you, in cash or at the bank. The "
        "platform's cash account pays, and the float grows at once.",
        button="Fund",
        fields=(_AMOUNT, _MEMO),
        success_message="The float is funded.",
        moves_money=True,
    ),
    Action(
        name="agent.transfer",
        endpoint=f"POST {_LIST_PATH}/transfer",
        title="Pass float on",
        description=(
            "From the super-agent's float to the sub-agent's, at once. The super-agent"
            " types "
            "the PIN."
        ),
        button="Pass on",
        fields=(
            Field("from_agent_id", "From", "hidden"),
            Field("to_agent_id", "To", "hidden"),
            _AMOUNT,
            _MEMO,
            Field("pin", "The super-agent's PIN", "pin"),
        ),
        success_message="The float is passed on.",
        moves_money=True,
    ),
    Action(
        name="agent.pay_out",
        endpoint=f"POST {_ITEM_PATH}/payout-commission",
        title="Pay out the commission?",
        description="All the commission that was earned until now goes into the float.",
        button="Pay out",
        success_message="The commission is in the float.",
        moves_money=True,
    ),
    Action(
        name="agent.suspend",
        endpoint=f"POST {_ITEM_PATH}/suspend",
        title="Suspend this agent?",
        description=(
            "From then on the agent moves no money and gets none. Sub-agents go on working."
            " It can be undone."
        ),
        button="Suspend",
        fields=(_REASON,),
        success_message="The agent is suspended.",
        is_dangerous=True,
    ),
    Action(
        name="agent.activate",
        endpoint=f"POST {_ITEM_PATH}/activate",
        title="Activate this agent?",
        description="The agent can take cash in and hand cash out again.",
        button="Activate",
        fields=(_REASON._replace(required=False),),
        success_message="The agent is active.",
    ),
    Action(
        name="agent.terminate",
        endpoint=f"POST {_ITEM_PATH}/terminate",
        title="Terminate this agent for good?",
        description=(
            "Float and commission must be zero. Sub-agents stay as they are. This cannot be"
            " undone, and the phone number stays taken."
        ),
        button="Terminate for good",
        fields=(_REASON,),
        success_message="The agent is terminated.",
        is_dangerous=True,
    ),
    Action(
        name="agent.change_pin",
        endpoint=f"POST {_ITEM_PATH}/change-pin",
        title="Change the PIN",
        description=(
            "The agent sits in front of you and types both. Without the old PIN there is no"
            " new one."
        ),
        button="Change PIN",
        fields=(
            Field("old_pin", "The old PIN", "pin"),
            Field("new_pin", "The new PIN", "pin", hint="Four digits"),
        ),
        success_message="The PIN is changed.",
    ),
)


class AgentTree(NamedTuple):
    """Super-agent with its sub-agents. `is_complete` is False if it has more than are loaded."""

    agent: dict[str, Any]
    sub_agents: list[dict[str, Any]]
    is_complete: bool

    @property
    def float_balance(self) -> str:
        """Total float of the super-agent and the loaded sub-agents."""
        everybody = (self.agent, *self.sub_agents)
        return str(sum(Decimal(one["float_balance"]) for one in everybody))


@pages.get("/console/agents")
async def list_agents(visit: PageRequest) -> Reply[bytes]:
    """Render agent trees, or a flat list if any filter is set."""
    asked = visit.query.pick("search", "agent_type", "status", "parent_agent_id", "cursor")
    if asked.keys() - {"cursor"}:
        found = await visit.get(_LIST_PATH, asked)
        return _render_list(visit, found, trees=None)
    found = await visit.get(
        _LIST_PATH, {**asked, "agent_type": "super_agent", "limit": _TREES_PER_PAGE}
    )
    trees = await asyncio.gather(*(_load_tree(visit, agent) for agent in found["data"]))
    return _render_list(visit, found, trees=trees)


def _render_list(visit: PageRequest, found: Any, trees: list[AgentTree] | None) -> Reply[bytes]:
    return visit.render(
        "agents/list.html", found=found, trees=trees, float_low=_get_float_low(visit)
    )


async def _load_tree(visit: PageRequest, agent: dict[str, Any]) -> AgentTree:
    found = await visit.get(_LIST_PATH, {"parent_agent_id": agent["id"], "limit": _MAX_SUB_AGENTS})
    return AgentTree(agent, found["data"], not found["has_more"])


@pages.get("/console/agents/{id}")
async def show_agent(visit: PageRequest, id: str) -> Reply[bytes]:
    record = await visit.get(build_path(_ITEM_PATH, {"id": id}))
    tree, parent, history, audit = await asyncio.gather(
        _load_tree(visit, record),
        _load_parent(visit, record),
        visit.get("/api/v1/transactions", {"user_id": id, "limit": _RECENT_LIMIT}),
        visit.get_if_allowed(
            "GET /api/v1/audit/logs",
            "/api/v1/audit/logs",
            {"resource_id": id, "limit": _RECENT_LIMIT},
        ),
    )
    return visit.render(
        "agents/agent.html",
        agent=record,
        tree=tree,
        parent=parent,
        history=history,
        audit=audit,
        float_low=_get_float_low(visit),
    )


async def _load_parent(visit: PageRequest, agent: Mapping[str, Any]) -> Any:
    parent_id = agent["parent_agent_id"]
    return None if parent_id is None else await visit.get(build_path(_ITEM_PATH, {"id": parent_id}))


def _get_float_low(visit: PageRequest) -> int:
    """Return the low-float threshold, in whole currency units.

    An agent below it may soon be unable to take cash in.
    """
    return visit.context.services.settings.float_low
