"""Owners: callers that see and change only data of one processor, partner or agent.

Only this module knows which rows belong to an owner. `http.api.owner_access` hides
foreign objects that a request names, and list queries add the condition of `limit_to_owner`.
"""

from collections.abc import Mapping
from datetime import datetime, time, timedelta
from typing import Final, NamedTuple
from zoneinfo import ZoneInfo

import asyncpg
import msgspec

from tapgate.core.records import NOT_FOUND_CODES
from tapgate.runtime.store.conditions import Conditions
from tapgate.runtime.store.database import Database
from tapgate_client import ids
from tapgate_client.clock import get_platform_day
from tapgate_client.errors import ApiError, invalid_field
from tapgate_client.schemas.admin import AdminRole
from tapgate_client.schemas.owners import OwnerType

OWNER_PREFIXES: Final[Mapping[OwnerType, str]] = {
    OwnerType.PROCESSOR: ids.PROCESSOR,
    OwnerType.PARTNER: ids.PARTNER,
    OwnerType.AGENT: ids.AGENT,
}
#: Type of the owner that a user with a role belongs to.
OWNER_TYPES: Final[Mapping[str, OwnerType]] = {
    AdminRole.MERCHANT_MANAGER: OwnerType.PROCESSOR,
    AdminRole.MERCHANT_CASHIER: OwnerType.PROCESSOR,
    AdminRole.PARTNER_USER: OwnerType.PARTNER,
    AdminRole.AGENT_USER: OwnerType.AGENT,
}
#: Role whose operations an owner's API key may call, within its scopes.
KEY_ROLES: Final[Mapping[OwnerType, AdminRole]] = {
    OwnerType.PROCESSOR: AdminRole.MERCHANT_MANAGER,
    OwnerType.PARTNER: AdminRole.PARTNER_USER,
    OwnerType.AGENT: AdminRole.AGENT_USER,
}


class Owner(msgspec.Struct, frozen=True):
    type: OwnerType
    id: int

    @property
    def public_id(self) -> str:
        return ids.encode(OWNER_PREFIXES[self.type], self.id)


def parse_owner(public_id: str) -> Owner | None:
    """Return the owner for a public ID, or None if the ID is not valid. It may not exist."""
    for owner_type, prefix in OWNER_PREFIXES.items():
        number = ids.decode(prefix, public_id)
        if number is not None:
            return Owner(owner_type, number)
    return None


def build_owner(owner_type: str | None, owner_id: int | None) -> Owner | None:
    """Return the owner in a row's columns, or None for a row of the platform."""
    return (
        None if owner_type is None or owner_id is None else Owner(OwnerType(owner_type), owner_id)
    )


class OwnerView(NamedTuple):
    """What an owner's caller sees: the rows of the owner, of some tables only since a time."""

    owner: Owner
    #: Start of yesterday for a cashier; None for everyone else.
    since: datetime | None = None
    #: The cashier; None for everyone else.
    user_id: int | None = None


def build_view(
    owner: Owner | None, role: str | None, now: datetime, zone: ZoneInfo, user_id: int | None
) -> OwnerView | None:
    """Return what a caller sees, or None for a caller of the platform."""
    if owner is None:
        return None
    if role != AdminRole.MERCHANT_CASHIER:
        return OwnerView(owner)
    yesterday = get_platform_day(now, zone) - timedelta(days=1)
    return OwnerView(owner, datetime.combine(yesterday, time(), zone), user_id)


class OwnedRows(NamedTuple):
    """Table whose rows can belong to an owner.

    `condition` is the SQL condition on the row `alias` with which it belongs to `{owner}`, and
    `time` its column with the time if a cashier sees only recent rows, and `user` the column with
    the user if a cashier sees only own rows.
    """

    table: str
    alias: str
    condition: str
    time: str | None = None
    user: str | None = None


TRANSACTIONS: Final = OwnedRows(
    "transactions",
    "t",
    """EXISTS (SELECT FROM accounts owned WHERE owned.owner_id = {owner}
               AND owned.id IN (t.from_account, t.to_account))""",
    time="t.created_at",
)
USERS: Final = OwnedRows("admins", "admins", "admins.owner_id = {owner}")
PAYOUTS: Final = OwnedRows("payouts", "p", "p.owner_id = {owner}")
BANK_ACCOUNTS: Final = OwnedRows("bank_accounts", "b", "b.owner_id = {owner}")
DISPUTES: Final = OwnedRows("disputes", "d", "d.processor_id = {owner}")
WEBHOOK_ENDPOINTS: Final = OwnedRows(
    "webhook_endpoints", "webhook_endpoints", "webhook_endpoints.owner_id = {owner}"
)
REQUEST_LOGS: Final = OwnedRows("request_logs", "request_logs", "request_logs.owner_id = {owner}")
FLOAT_REQUESTS: Final = OwnedRows("float_requests", "f", "f.agent_id = {owner}")
SUPPORT_REQUESTS: Final = OwnedRows(
    "support_requests", "r", "r.owner_id = {owner}", user="r.opened_by"
)
APPROVALS: Final = OwnedRows(
    "approvals",
    "a",
    """EXISTS (SELECT FROM admins requester
               WHERE requester.id = a.maker_id AND requester.owner_id = {owner})""",
    user="a.maker_id",
)
AGENTS: Final = OwnedRows("agents", "p", "{owner} IN (p.id, p.parent_agent_id)")


def limit_to_owner(conditions: Conditions, view: OwnerView | None, rows: OwnedRows) -> None:
    """Limit a query to the rows that the caller sees. None, for the platform, is no limit."""
    if view is None:
        return
    conditions.add(rows.condition.format(owner=conditions.bind(view.owner.id)))
    if rows.time is not None and view.since is not None:
        conditions.add(f"{rows.time} >= {conditions.bind(view.since)}")
    if rows.user is not None and view.user_id is not None:
        conditions.add(f"{rows.user} = {conditions.bind(view.user_id)}")


async def is_visible(
    reader: Database | asyncpg.Connection, view: OwnerView, rows: OwnedRows, row_id: int
) -> bool:
    """Return whether a row exists that the caller sees."""
    conditions = Conditions()
    conditions.where(f"{rows.alias}.id = {{}}", row_id)
    limit_to_owner(conditions, view, rows)
    sql = f"SELECT EXISTS (SELECT FROM {rows.table} {rows.alias} WHERE {conditions})"
    return bool(await reader.fetchval(sql, *conditions.values))


async def require_exists(reader: Database | asyncpg.Connection, owner: Owner) -> None:
    """Raise 404 if the owner does not exist."""
    sql = "SELECT EXISTS (SELECT FROM accounts WHERE owner_id = $1)"
    if not await reader.fetchval(sql, owner.id):
        raise ApiError(NOT_FOUND_CODES[OWNER_PREFIXES[owner.type]])


async def require_not_terminated(reader: Database | asyncpg.Connection, owner: Owner) -> None:
    """Raise 404 if the owner does not exist, and 422 if nothing can be created for it any longer.

    For users, API keys and webhook endpoints. A terminated agent's bank account can still be added,
    so that the rest of its float can be paid out.
    """
    await require_exists(reader, owner)
    sql = "SELECT bool_and(status = 'closed') FROM accounts WHERE owner_id = $1"
    if await reader.fetchval(sql, owner.id):
        raise invalid_field("owner_id", "must not be a terminated agent")


async def is_active(reader: Database | asyncpg.Connection, owner: Owner) -> bool:
    """Return whether an owner may change anything: it is neither suspended nor terminated."""
    return bool(
        await reader.fetchval(
            "SELECT bool_and(status = 'active') FROM accounts WHERE owner_id = $1", owner.id
        )
    )
