"""SQL queries for an admin's sessions and passkeys."""

import asyncpg

from tapgate.auth.sessions import Sessions
from tapgate.runtime.store.conditions import PageConditions
from tapgate.runtime.store.database import Database
from tapgate.runtime.store.transaction import Transaction
from tapgate_client.schemas.branding import Preferences
from tapgate_client.schemas.pagination import PageQuery


async def list_sessions(
    database: Database, query: PageQuery, admin_id: int, *, sessions: Sessions
) -> list[asyncpg.Record]:
    """Return an admin's sessions that have not ended."""
    conditions = PageConditions(query)
    conditions.add(f"admin_id = {conditions.bind(admin_id)}")
    conditions.add("ended_at IS NULL")
    idle_times = [
        conditions.bind(sessions.get_idle_time(is_console=is_console))
        for is_console in (True, False)
    ]
    conditions.add(
        "coalesce(last_seen_at, created_at) > CASE WHEN is_console "
        f"THEN {idle_times[0]}::timestamptz ELSE {idle_times[1]}::timestamptz END"
    )
    conditions.add(
        "EXISTS (SELECT FROM refresh_tokens WHERE session_id = sessions.id AND used_at IS NULL)"
    )
    return await conditions.fetch(
        database,
        "SELECT id, is_console, is_sso, ip, user_agent, created_at, last_seen_at FROM sessions",
    )


async def get_preferences(reader: Database | Transaction, admin_id: int) -> asyncpg.Record:
    row = await reader.fetchrow(
        "SELECT theme, timezone, language FROM admins WHERE id = $1", admin_id
    )
    assert row is not None, "admins are never deleted"
    return row


async def set_preferences(tx: Transaction, admin_id: int, preferences: Preferences) -> None:
    await tx.execute(
        "UPDATE admins SET theme = $2, timezone = $3, language = $4 WHERE id = $1",
        admin_id,
        preferences.theme,
        preferences.timezone,
        preferences.language,
    )


async def owns_session(tx: Transaction, admin_id: int, session_id: int) -> bool:
    return bool(
        await tx.fetchval(
            "SELECT true FROM sessions WHERE id = $1 AND admin_id = $2 AND ended_at IS NULL",
            session_id,
            admin_id,
        )
    )


async def list_passkeys(
    database: Database, query: PageQuery, admin_id: int
) -> list[asyncpg.Record]:
    conditions = PageConditions(query)
    conditions.add(f"admin_id = {conditions.bind(admin_id)}")
    return await conditions.fetch(
        database, "SELECT id, name, created_at, last_used_at FROM admin_passkeys"
    )
