"""Agents: who works for whom, how much float there is, one agent, and what can be done."""

import asyncio
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, NamedTuple

from tapgate.console.acts import Act, Field
from tapgate.console.site import Pages
from tapgate.console.visit import Visit, at
from tapgate.edge.endpoint import Reply

pages = Pages()

_ALL = "/api/v1/agents"
_ONE = "/api/v1/agents/{id}"
_TREES = 20  # on a page; each is asked for its own sub-agents
_BRANCHES = 100
_FEW = 10

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

ACTS = (
    Act(
        name="agent.register",
        endpoint=f"POST {_ALL}",
        title="Register a super-agent",
        explains="A super-agent works at a counter and passes float on to sub-agents. It starts "
        "with an empty float.",
        button="Register",
        fields=(Field("agent_type", "Type", "hidden", value="super_agent"), *_PROFILE),
        done="The super-agent is registered. Fund the float, then it can take cash in.",
        then="/console/agents/{agent_id}",
    ),
    Act(
        name="agent.register_sub",
        endpoint=f"POST {_ALL}",
        title="Register a sub-agent",
        explains="A sub-agent works at a counter of its own and gets float from its super-agent. "
        "It starts with an empty float.",
        button="Register",
        fields=(
            Field("agent_type", "Type", "hidden", value="sub_agent"),
            Field("parent_agent_id", "Super-agent", "hidden"),
            *_PROFILE,
        ),
        done="The sub-agent is registered. It needs float before it can take cash in.",
        then="/console/agents/{agent_id}",
    ),
    Act(
        name="agent.fund",
        endpoint=f"POST {_ONE}/fund",
        title="Fund the float",
        explains="Do this when the agent's money has reached you, in cash or at the bank. The "
        "platform's cash account pays, and the float grows at once.",
        button="Fund",
        fields=(_AMOUNT, _MEMO),
        done="The float is funded.",
        moves_money=True,
    ),
    Act(
        name="agent.transfer",
        endpoint=f"POST {_ALL}/transfer",
        title="Pass float on",
        explains="From the super-agent's float to the sub-agent's, at once. The super-agent types "
        "the PIN.",
        button="Pass on",
        fields=(
            Field("from_agent_id", "From", "hidden"),
            Field("to_agent_id", "To", "hidden"),
            _AMOUNT,
            _MEMO,
            Field("pin", "The super-agent's PIN", "pin"),
        ),
        done="The float is passed on.",
        moves_money=True,
    ),
    Act(
        name="agent.pay_out",
        endpoint=f"POST {_ONE}/payout-commission",
        title="Pay out the commission?",
        explains="All the commission that was earned until now goes into the float.",
        button="Pay out",
        done="The commission is in the float.",
        moves_money=True,
    ),
    Act(
        name="agent.suspend",
        endpoint=f"POST {_ONE}/suspend",
        title="Suspend this agent?",
        explains="From then on the agent moves no money and gets none. Sub-agents go on working. "
        "It can be undone.",
        button="Suspend",
        fields=(_REASON,),
        done="The agent is suspended.",
        dangerous=True,
    ),
    Act(
        name="agent.activate",
        endpoint=f"POST {_ONE}/activate",
        title="Activate this agent?",
        explains="The agent can take cash in and hand cash out again.",
        button="Activate",
        fields=(_REASON._replace(required=False),),
        done="The agent is active.",
    ),
    Act(
        name="agent.terminate",
        endpoint=f"POST {_ONE}/terminate",
        title="Terminate this agent for good?",
        explains="Float and commission must be zero. Sub-agents stay as they are. This cannot be "
        "undone, and the phone number stays taken.",
        button="Terminate for good",
        fields=(_REASON,),
        done="The agent is terminated.",
        dangerous=True,
    ),
    Act(
        name="agent.change_pin",
        endpoint=f"POST {_ONE}/change-pin",
        title="Change the PIN",
        explains="The agent sits in front of you and types both. Without the old PIN there is no "
        "new one.",
        button="Change PIN",
        fields=(
            Field("old_pin", "The old PIN", "pin"),
            Field("new_pin", "The new PIN", "pin", hint="Four digits"),
        ),
        done="The PIN is changed.",
    ),
)


class Tree(NamedTuple):
    """A super-agent with its sub-agents. `is_whole` is false when there are more of them."""

    agent: dict[str, Any]
    sub_agents: list[dict[str, Any]]
    is_whole: bool

    @property
    def float_balance(self) -> str:
        """Of all who are here."""
        everybody = (self.agent, *self.sub_agents)
        return str(sum(Decimal(one["float_balance"]) for one in everybody))


@pages.get("/console/agents")
async def agents(visit: Visit) -> Reply[bytes]:
    """Who asks for nothing in particular sees the trees; what was asked for is a list."""
    asked = visit.query.pick("search", "agent_type", "status", "parent_agent_id", "cursor")
    if asked.keys() - {"cursor"}:
        found = await visit.get(_ALL, asked)
        return _list(visit, found, trees=None)
    found = await visit.get(_ALL, {**asked, "agent_type": "super_agent", "limit": _TREES})
    trees = await asyncio.gather(*(_tree(visit, agent) for agent in found["data"]))
    return _list(visit, found, trees=trees)


def _list(visit: Visit, found: Any, trees: list[Tree] | None) -> Reply[bytes]:
    return visit.page("agents/list.html", found=found, trees=trees, float_low=_float_low(visit))


async def _tree(visit: Visit, agent: dict[str, Any]) -> Tree:
    found = await visit.get(_ALL, {"parent_agent_id": agent["id"], "limit": _BRANCHES})
    return Tree(agent, found["data"], not found["has_more"])


@pages.get("/console/agents/{id}")
async def agent(visit: Visit, id: str) -> Reply[bytes]:
    record = await visit.get(at(_ONE, {"id": id}))
    tree, parent, history, audit = await asyncio.gather(
        _tree(visit, record),
        _parent(visit, record),
        visit.get("/api/v1/transactions", {"user_id": id, "limit": _FEW}),
        visit.get_if_allowed(
            "GET /api/v1/audit/logs", "/api/v1/audit/logs", {"resource_id": id, "limit": _FEW}
        ),
    )
    return visit.page(
        "agents/agent.html",
        agent=record,
        tree=tree,
        parent=parent,
        history=history,
        audit=audit,
        float_low=_float_low(visit),
    )


async def _parent(visit: Visit, agent: Mapping[str, Any]) -> Any:
    parent_id = agent["parent_agent_id"]
    return None if parent_id is None else await visit.get(at(_ONE, {"id": parent_id}))


def _float_low(visit: Visit) -> int:
    """In whole units: below it, an agent soon cannot take cash in."""
    return visit.call.services.settings.float_low
