"""SQL queries for agents.

Name, status and balances are stored on the rows of the agent's two accounts. The locks on those
rows also guard the agent's row.
"""

from collections.abc import Collection
from datetime import datetime

from tapgate.business.agents.model import PUBLIC_STATUSES, Agent, to_record
from tapgate.http.api.services import Services
from tapgate.ledger.accounts import lock_account
from tapgate.runtime.store.conditions import Conditions, PageConditions, start_name_page
from tapgate.runtime.store.database import Database
from tapgate.runtime.store.rows import insert_row, map_conflicts, update_row
from tapgate.runtime.store.transaction import Transaction
from tapgate_client import ids
from tapgate_client.errors import Code, require_found
from tapgate_client.schemas.agents import AgentFilters, AgentRecord
from tapgate_client.schemas.pagination import NameOrder

_COLUMNS = (
    "id", "account_id", "commission_account_id", "agent_type", "parent_agent_id", "business_name",
    "phone_number", "email", "address", "commission_tier", "created_at", "updated_at",
)  # fmt: skip
_MUTABLE_COLUMNS = (
    "business_name", "phone_number", "email", "address", "commission_tier", "updated_at",
)  # fmt: skip
_NAMED_AGENTS = "agents agent JOIN accounts float_account ON float_account.id = agent.account_id"
_SELECT = f"""
    SELECT {", ".join(f"agent.{column}" for column in _COLUMNS)},
           float_account.holder_name AS name, float_account.status,
           float_account.status_reason, float_account.currency,
           float_account.balance AS float_balance, commission_account.balance AS commission_balance,
           float_account.held + commission_account.held AS held
    FROM {_NAMED_AGENTS}
    JOIN accounts commission_account ON commission_account.id = agent.commission_account_id"""

#: Condition of an agent who may soon be unable to accept cash-ins.
HAS_LOW_FLOAT = "float_account.status = 'active' AND float_account.balance < {}"

_ACCOUNT_STATUSES: dict[str, str] = {
    public_status: status for status, public_status in PUBLIC_STATUSES.items()
}

_UNIQUE_VIOLATION_CODES = {"agents_phone_number_key": Code.DUPLICATE_PHONE}


async def get(reader: Database | Transaction, agent_id: int) -> Agent:
    row = await reader.fetchrow(f"{_SELECT} WHERE agent.id = $1", agent_id)
    return Agent(**require_found(row, Code.AGENT_NOT_FOUND))


async def load_records(services: Services, agent_ids: Collection[int]) -> dict[int, AgentRecord]:
    """Return the API records of agents by id, for event data."""
    rows = await services.database.fetch(
        f"{_SELECT} WHERE agent.id = ANY ($1::bigint[])", list(agent_ids)
    )
    return {row["id"]: to_record(Agent(**row)) for row in rows}


async def lock(tx: Transaction, agent_id: int) -> Agent:
    """Lock both accounts of an agent and return the agent.

    The locks serialize changes to profile, status and PIN, and block all transactions of the agent
    until the database transaction ends.
    """
    accounts = await tx.fetchrow(
        "SELECT account_id, commission_account_id FROM agents WHERE id = $1", agent_id
    )
    # Lock in the same order as the ledger, to prevent deadlocks.
    for account_id in sorted(require_found(accounts, Code.AGENT_NOT_FOUND)):
        await lock_account(tx, account_id)
    # Read after locking: another database transaction may have changed the row before the lock was
    # granted.
    return await get(tx, agent_id)


async def list_page(
    database: Database, filters: AgentFilters, low_float_threshold: int = 0
) -> list[Agent]:
    """Return a page of agents, plus one row if there are more."""
    conditions = PageConditions(filters, "agent.id")
    if filters.order == NameOrder.NAME:
        conditions = await start_name_page(
            database,
            filters,
            "agent.id",
            "lower(float_account.holder_name)",
            source=_NAMED_AGENTS,
            visible=Conditions(),
        )
    _add_filters(conditions, filters, low_float_threshold)
    return [Agent(**row) for row in await conditions.fetch(database, _SELECT)]


async def sum_floats(
    database: Database, filters: AgentFilters, low_float_threshold: int
) -> tuple[int, int]:
    """Return the number of agents in a list, and the sum of their floats."""
    conditions = Conditions()
    _add_filters(conditions, filters, low_float_threshold)
    row = await database.fetchrow(
        f"""SELECT count(*), coalesce(sum(float_account.balance), 0) FROM {_NAMED_AGENTS}
            WHERE {conditions}""",
        *conditions.values,
    )
    assert row is not None
    return int(row[0]), int(row[1])


def _add_filters(conditions: Conditions, filters: AgentFilters, low_float_threshold: int) -> None:
    conditions.where(
        "float_account.status = {}", filters.status and _ACCOUNT_STATUSES[filters.status]
    )
    conditions.where("agent.phone_number = {}", filters.phone_number)
    conditions.where_part("lower(agent.address)", filters.address)
    conditions.where("agent.agent_type = {}", filters.agent_type)
    conditions.where_id("agent.parent_agent_id", ids.AGENT, filters.parent_agent_id)
    conditions.search(filters.search, "agent.search_text", id_column="agent.id", prefix=ids.AGENT)
    if filters.low_float is not None:
        is_low = HAS_LOW_FLOAT.format(conditions.bind(low_float_threshold))
        conditions.add(is_low if filters.low_float else f"NOT ({is_low})")


async def get_phone_number_owned_since(database: Database, agent_id: int) -> datetime:
    since: datetime = await database.fetchval(
        "SELECT coalesce(phone_number_changed_at, created_at) FROM agents WHERE id = $1", agent_id
    )
    return since


async def add(tx: Transaction, agent: Agent) -> None:
    """Insert an agent. Both of its accounts must already be open."""
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
