"""Agent list, agent trees, agent details and actions."""

import asyncio
from collections.abc import Mapping
from decimal import Decimal
from functools import partial
from typing import Any, NamedTuple

from tapgate.http.endpoint import Reply
from tapgate.sites.console.actions import Action
from tapgate.sites.console.components import fields
from tapgate.sites.console.components.lists import add_totals_page, pick_filters
from tapgate.sites.console.components.owner_users import get_users
from tapgate.sites.console.components.pin_actions import (
    build_pin_change_action,
    build_pin_reset_action,
)
from tapgate.sites.console.components.related import (
    gather_by_name,
    get_audit,
    get_history,
    get_last_code,
)
from tapgate.sites.console.components.state_actions import build_state_action
from tapgate.sites.console.form_fields import Field
from tapgate.sites.console.page_request import PageRequest
from tapgate.sites.console.site import Pages
from tapgate_client.schemas.agents import AgentStatus

pages = Pages()

_LIST_PATH = "/api/v1/agents"
_ITEM_PATH = "/api/v1/agents/{id}"
_FLOAT_REQUESTS_PATH = "/api/v1/float-requests"
_MAX_FLOAT_REQUESTS = 5
_MAX_LIQUIDITY_ROWS = 100
_FILTERS = ("search", "agent_type", "status", "parent_agent_id", "low_float")
_TREES_PER_PAGE = 20  # each tree takes an additional request for its sub-agents
_MAX_SUB_AGENTS = 100

_PROFILE = (
    Field("name", hint="Full name of the person at the counter"),
    Field(
        "business_name",
        required=False,
        hint="Shown to customers instead of the name",
    ),
    fields.PHONE,
    Field("email", kind="email", required=False),
    Field("address", required=False, hint="Where customers find the counter"),
    Field(
        "commission_tier",
        kind="whole_choice",
        choices=(("1", "1 (lowest rate)"), ("2", "2"), ("3", "3 (highest rate)")),
        hint="Sets the commission rate of the agent",
        value="1",
    ),
)
_NEW_PROFILE = (
    *_PROFILE,
    Field("pin", kind="pin", hint="4 digits, entered by the agent. Required for cash-in."),
)

_build_state_action = partial(build_state_action, "agent", _ITEM_PATH, "agent")

ACTIONS = (
    Action(
        name="agent.register",
        endpoint=f"POST {_LIST_PATH}",
        title="Register a super-agent",
        description="Super-agents serve customers and distribute float to sub-agents. New agents "
        "start with no float.",
        button="Register",
        fields=(Field("agent_type", "Type", "hidden", value="super_agent"), *_NEW_PROFILE),
        success_message="Super-agent registered. Fund the float to start accepting cash-ins.",
        redirect_path="/console/agents/{agent_id}",
    ),
    Action(
        name="agent.register_sub",
        endpoint=f"POST {_LIST_PATH}",
        title="Register a sub-agent",
        description="Sub-agents serve customers and get float from their super-agent. New agents "
        "start with no float.",
        button="Register",
        fields=(
            Field("agent_type", "Type", "hidden", value="sub_agent"),
            Field("parent_agent_id", kind="hidden"),
            *_NEW_PROFILE,
        ),
        success_message="Sub-agent registered. Add float to start accepting cash-ins.",
        redirect_path="/console/agents/{agent_id}",
    ),
    Action(
        name="agent.update",
        endpoint=f"PUT {_ITEM_PATH}",
        title="Edit agent",
        description="Fields you leave blank keep their current value. A new commission tier "
        "applies from the next cash-in or cash-out.",
        button="Save",
        fields=_PROFILE,
        prefill_path=_ITEM_PATH,
        success_message="Agent updated.",
    ),
    Action(
        name="agent.fund",
        endpoint=f"POST {_ITEM_PATH}/fund",
        title="Fund float",
        description="Use this after you receive the agent's money in cash or by bank transfer. "
        "Moves the amount from the platform's cash account to the float immediately.",
        button="Fund",
        fields=(fields.AMOUNT, fields.BANK_REFERENCE, fields.MEMO),
        success_message="Float funded.",
        moves_money=True,
    ),
    Action(
        name="agent.transfer",
        endpoint=f"POST {_LIST_PATH}/transfer",
        title="Transfer float",
        description="Moves float from the super-agent to the sub-agent immediately. Ask the "
        "super-agent to enter their PIN.",
        fields=(
            Field("from_agent_id", "From", "hidden"),
            Field("to_agent_id", "To", "hidden"),
            fields.AMOUNT,
            fields.MEMO,
            Field("pin", "Super-agent's PIN", "pin"),
        ),
        success_message="Float transferred.",
        moves_money=True,
    ),
    Action(
        name="agent.pay_out",
        endpoint=f"POST {_ITEM_PATH}/payout-commission",
        title="Pay out commission?",
        description="Moves all earned commission to the agent's float.",
        button="Pay out",
        success_message="Commission paid out.",
        moves_money=True,
    ),
    _build_state_action(
        "suspend",
        "The agent can't send or receive money until you activate it again. "
        "Sub-agents are not affected.",
        fields.REASON,
    ),
    _build_state_action(
        "activate", "The agent can accept cash-ins and cash-outs again.", fields.OPTIONAL_REASON
    ),
    _build_state_action(
        "terminate",
        "Float and commission must be zero. Sub-agents are not affected. This can't be "
        "undone, and the phone number can't be used again.",
        fields.REASON,
    ),
    build_pin_change_action("agent", _ITEM_PATH, "Ask the agent to enter both PINs."),
    build_pin_reset_action("agent", _ITEM_PATH, "agent"),
)


class AgentTree(NamedTuple):
    """Agent with its sub-agents. `is_complete` is False if some sub-agents are not loaded."""

    agent: dict[str, Any]
    sub_agents: list[dict[str, Any]]
    is_complete: bool

    @property
    def float_balance(self) -> str:
        """The agent's and the loaded sub-agents' total float."""
        agents = (self.agent, *self.sub_agents)
        return str(sum(Decimal(agent["float_balance"]) for agent in agents))


add_totals_page(pages, "/console/agents", _LIST_PATH, _FILTERS)


@pages.get("/console/agents")
async def list_agents(request: PageRequest) -> Reply[bytes]:
    """Render agent trees, or a flat list if any filter is set."""
    filters = pick_filters(request, *_FILTERS, "order", "cursor")
    if filters.keys() - {"order", "cursor"}:
        page = await request.get(_LIST_PATH, filters)
        return _render_list(request, page, trees=None)
    page = await request.get(
        _LIST_PATH, {**filters, "agent_type": "super_agent", "limit": _TREES_PER_PAGE}
    )
    trees = await asyncio.gather(*(_load_tree(request, agent) for agent in page["data"]))
    return _render_list(request, page, trees=trees)


def _render_list(request: PageRequest, page: Any, trees: list[AgentTree] | None) -> Reply[bytes]:
    return request.render(
        "agents/list.html", page=page, trees=trees, float_low=_get_float_low(request)
    )


async def _load_tree(request: PageRequest, agent: dict[str, Any]) -> AgentTree:
    page = await request.get(_LIST_PATH, {"parent_agent_id": agent["id"], "limit": _MAX_SUB_AGENTS})
    return AgentTree(agent, page["data"], not page["has_more"])


@pages.get("/console/agents/liquidity")
async def show_liquidity(request: PageRequest) -> Reply[bytes]:
    """Render agent floats, with the agents who run out first at the top."""
    filters: dict[str, str | int] = {
        "limit": _MAX_LIQUIDITY_ROWS,
        **request.query.pick("parent_agent_id"),
    }
    liquidity = await request.get(f"{_LIST_PATH}/liquidity", filters)
    parent_id = filters.get("parent_agent_id")
    parent = None if parent_id is None else await request.get(_ITEM_PATH, id=str(parent_id))
    return request.render("agents/liquidity.html", liquidity=liquidity, parent=parent)


@pages.get("/console/agents/{id}")
async def show_agent(request: PageRequest, id: str) -> Reply[bytes]:
    record = await request.get(_ITEM_PATH, id=id)
    parts = await gather_by_name(
        tree=_load_tree(request, record),
        parent=_load_parent(request, record),
        history=get_history(request, id),
        audit=get_audit(request, id),
        code=get_last_code(request, _ITEM_PATH, id),
        float_requests=_load_float_requests(request, id),
        users=get_users(request, id),
    )
    return request.render(
        "agents/agent.html",
        agent=record,
        owner_id=id,
        invite=None if record["status"] == AgentStatus.TERMINATED else "agent_user.create",
        float_low=_get_float_low(request),
        **parts,
    )


async def _load_float_requests(request: PageRequest, agent_id: str) -> Any:
    """Return the agent's newest float requests, or none for an admin who may not read them."""
    if not request.can_access(f"GET {_FLOAT_REQUESTS_PATH}"):
        return {"data": []}
    return await request.get(
        _FLOAT_REQUESTS_PATH, {"agent_id": agent_id, "limit": _MAX_FLOAT_REQUESTS}
    )


async def _load_parent(request: PageRequest, agent: Mapping[str, Any]) -> Any:
    parent_id = agent["parent_agent_id"]
    return None if parent_id is None else await request.get(_ITEM_PATH, id=parent_id)


def _get_float_low(request: PageRequest) -> int:
    """Return the low-float threshold, in whole currency units.

    An agent below it may soon be unable to accept cash-ins.
    """
    return request.context.services.settings.float_low
