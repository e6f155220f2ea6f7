"""Restricted subscribers: who may see and change them, and how an admin gets to.

They are closed to API keys always, and to an admin until that admin has verified a code that was
sent to the subscriber's phone. Services, terminals and partners are not touched.
"""

from collections.abc import Collection
from datetime import datetime

import asyncpg

from tapgate.credentials.principals import Principal
from tapgate.edge.call import Call
from tapgate.errors import ApiError, Code
from tapgate.store.conditions import Conditions
from tapgate.store.database import Database
from tapgate.subscribers.model import Subscriber, require_not_closed


async def require_open(
    reader: Database | asyncpg.Connection, call: Call, subscriber_id: int, *, restricted: bool
) -> None:
    """Refuse a caller to whom this subscriber is closed."""
    if not restricted:
        return
    match call.principal.kind:
        case "api_key":
            raise ApiError(Code.OTP_REQUIRED, "Restricted subscribers are closed to API keys")
        case "admin":
            if not await _has_access(reader, call, subscriber_id):
                raise ApiError(
                    Code.OTP_REQUIRED, "Verify a code sent to the subscriber's phone first"
                )


async def require_open_accounts(
    reader: Database | asyncpg.Connection, call: Call, account_ids: Collection[int | None]
) -> None:
    """Refuse a caller to whom the holder of any of these accounts is closed."""
    rows = await reader.fetch(
        "SELECT id FROM subscribers WHERE account_id = ANY ($1::bigint[]) AND restricted",
        list(account_ids),
    )
    for row in rows:
        await require_open(reader, call, row["id"], restricted=True)


async def closed_accounts(call: Call, account_ids: Collection[int | None]) -> set[int]:
    """Those of the accounts whose holders are closed to the caller."""
    conditions = Conditions()
    closed = _is_closed(conditions, call.principal, call.services.clock())
    if closed is None or not account_ids:
        return set()
    accounts = conditions.bind(list(account_ids))
    rows = await call.services.database.fetch(
        f"""SELECT s.account_id FROM subscribers s
            WHERE s.account_id = ANY ({accounts}::bigint[]) AND {closed}""",
        *conditions.values,
    )
    return {row["account_id"] for row in rows}


async def require_changeable(
    reader: Database | asyncpg.Connection, call: Call, subscriber: Subscriber
) -> None:
    """Refuse to change whoever is closed to the caller, or closed for good."""
    await require_open(reader, call, subscriber.id, restricted=subscriber.restricted)
    require_not_closed(subscriber)


async def _has_access(
    reader: Database | asyncpg.Connection, call: Call, subscriber_id: int
) -> bool:
    found: bool = await reader.fetchval(
        """SELECT EXISTS (SELECT FROM restricted_access
                          WHERE admin_id = $1 AND subscriber_id = $2 AND expires_at > $3)""",
        call.principal.admin_id,
        subscriber_id,
        call.services.clock(),
    )
    return found


def show_only_open(conditions: Conditions, caller: Principal, now: datetime) -> None:
    """Leave out of a list over `subscribers s` whoever is closed to the caller.

    What belongs to no subscriber, in a list that joins them from the left, stays in.
    """
    closed = _is_closed(conditions, caller, now)
    if closed is not None:
        conditions.add(f"({closed}) IS NOT TRUE")


def show_only_open_accounts(
    conditions: Conditions, caller: Principal, now: datetime, *columns: str
) -> None:
    """Leave out of a list every row that names, in one of these columns, the account of somebody
    who is closed to the caller."""
    closed = _is_closed(conditions, caller, now)
    if closed is not None:
        for column in columns:
            # Not as NOT EXISTS: PostgreSQL would join, and read the whole list for its first page.
            conditions.hardly_ever_fails(
                f"""(SELECT true FROM subscribers s
                     WHERE s.account_id = {column} AND {closed}) IS NULL"""
            )


def _is_closed(conditions: Conditions, caller: Principal, now: datetime) -> str | None:
    """Whether `subscribers s` is closed to the caller; None for those to whom nobody is."""
    match caller.kind:
        case "api_key":
            return "s.restricted"
        case "admin":
            return f"""s.restricted AND NOT EXISTS (
                SELECT FROM restricted_access access
                WHERE access.subscriber_id = s.id
                  AND access.admin_id = {conditions.bind(caller.admin_id)}
                  AND access.expires_at > {conditions.bind(now)})"""
    return None
