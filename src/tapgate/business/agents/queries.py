"""SQL queries for agents, which have two accounts: float and commission."""

from collections.abc import Collection
from datetime import datetime
from functools import partial

from tapgate.auth.owners import AGENTS, OwnerView, limit_to_owner
from tapgate.business.agents.model import Agent, to_record
from tapgate.business.owners.owner_table import OwnerTable
from tapgate.http.api.services import Services
from tapgate.runtime.store.conditions import Conditions
from tapgate.runtime.store.database import Database
from tapgate.runtime.store.rows import insert_row, map_conflicts, update_row
from tapgate.runtime.store.transaction import Transaction
from tapgate_client import ids
from tapgate_client.errors import Code
from tapgate_client.schemas.agents import AgentFilters, AgentRecord

_COLUMNS = (
    "id", "account_id", "commission_account_id", "agent_type", "parent_agent_id", "business_name",
    "phone_number", "email", "address", "commission_tier", "created_at", "updated_at",
)  # fmt: skip
_SHARED_COLUMNS = ("id", "account_id", "created_at")
_MUTABLE_COLUMNS = (
    "business_name", "phone_number", "email", "address", "commission_tier", "updated_at",
)  # fmt: skip
TABLE = OwnerTable(
    "agent",
    Agent,
    ids.AGENT,
    ", ".join(f"p.{column}" for column in _COLUMNS if column not in _SHARED_COLUMNS)
    + """, a.status_reason, a.balance AS float_balance, c.balance AS commission_balance,
         a.held + c.held AS held""",
    joins="JOIN accounts c ON c.id = p.commission_account_id",
    account_columns=("account_id", "commission_account_id"),
    status="a.status",
)
get, lock = TABLE.get, TABLE.lock

#: SQL condition for an agent with account `a` who may soon be unable to accept cash-ins.
HAS_LOW_FLOAT = "a.status = 'active' AND a.balance < {}"

_UNIQUE_VIOLATION_CODES = {"agents_phone_number_key": Code.DUPLICATE_PHONE}


async def load_records(services: Services, agent_ids: Collection[int]) -> dict[int, AgentRecord]:
    """Return agent API records by id, for event data."""
    agents = await TABLE.get_many(services.database, list(agent_ids))
    return {agent.id: to_record(agent) for agent in agents}


async def list_page(
    database: Database,
    filters: AgentFilters,
    low_float_threshold: int = 0,
    view: OwnerView | None = None,
) -> list[Agent]:
    """Return a page of agents, plus one row if there are more."""
    visible = Conditions()
    limit_to_owner(visible, view, AGENTS)

    def add_filters(conditions: Conditions) -> None:
        limit_to_owner(conditions, view, AGENTS)
        _add_filters(filters, low_float_threshold, conditions)

    return await TABLE.list_page(database, filters, add_filters, visible)


async def sum_floats(
    database: Database, filters: AgentFilters, low_float_threshold: int
) -> tuple[int, int]:
    """Return the number of agents in a list, and the sum of their floats."""
    add_filters = partial(_add_filters, filters, low_float_threshold)
    return await TABLE.sum_balances(database, filters, add_filters)


def _add_filters(filters: AgentFilters, low_float_threshold: int, conditions: Conditions) -> None:
    conditions.where("p.phone_number = {}", filters.phone_number)
    conditions.where_part("lower(p.address)", filters.address)
    conditions.where("p.agent_type = {}", filters.agent_type)
    conditions.where_id("p.parent_agent_id", ids.AGENT, filters.parent_agent_id)
    if filters.low_float is not None:
        is_low = HAS_LOW_FLOAT.format(conditions.bind(low_float_threshold))
        conditions.add(is_low if filters.low_float else f"NOT ({is_low})")


async def get_phone_number_owned_since(database: Database, agent_id: int) -> datetime:
    since: datetime = await database.fetchval(
        "SELECT coalesce(phone_number_changed_at, created_at) FROM agents WHERE id = $1", agent_id
    )
    return since


async def add(tx: Transaction, agent: Agent) -> None:
    """Insert an agent. Both accounts must already be open."""
    with map_conflicts(_UNIQUE_VIOLATION_CODES):
        await insert_row(tx, "agents", agent, _COLUMNS)


async def save(tx: Transaction, agent: Agent) -> None:
    """Store all mutable fields except money. The caller must hold the agent's lock."""
    await tx.execute(
        """UPDATE accounts SET holder_name = $3, public_name = $4, status = $5, status_reason = $6,
                               updated_at = $7
           WHERE id IN ($1, $2)""",
        agent.account_id,
        agent.commission_account_id,
        agent.name,
        agent.public_name,
        agent.status,
        agent.status_reason,
        agent.updated_at,
    )
    await tx.execute(
        """UPDATE agents SET phone_number_changed_at = $3
           WHERE id = $1 AND phone_number <> $2""",
        agent.id,
        agent.phone_number,
        agent.updated_at,
    )
    with map_conflicts(_UNIQUE_VIOLATION_CODES):
        await update_row(tx, "agents", agent, _MUTABLE_COLUMNS)
