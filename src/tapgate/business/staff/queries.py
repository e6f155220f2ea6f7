"""SQL queries for admins. `auth` manages their sessions and checks their passwords."""

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

import asyncpg

from tapgate.auth.owners import USERS, Owner, OwnerView, limit_to_owner, parse_owner
from tapgate.auth.second_factors import build_factors_sql
from tapgate.core.records import require_record
from tapgate.runtime.store.conditions import PageConditions
from tapgate.runtime.store.database import Database
from tapgate.runtime.store.transaction import Transaction
from tapgate_client import ids
from tapgate_client.schemas.admin import AdminFilters, AdminRole, UserType

_COLUMNS = f"""id, email, name, role, status, created_at, last_login_at, owner_type, owner_id,
    CASE WHEN status = 'active' THEN NULL
         WHEN owner_id = (SELECT owner_id FROM admins disabler WHERE id = admins.disabled_by)
         THEN 'owner' ELSE 'platform' END AS disabled_by,
    EXISTS (SELECT FROM admin_identities WHERE admin_id = admins.id) AS sso,
    {build_factors_sql("admins.id")} AS factors,
    ARRAY(SELECT viewer_id FROM admin_link_views
          WHERE admin_id = admins.id AND confirmed_at IS NULL ORDER BY viewer_id) AS link_viewers"""


async def get(
    source: Database | asyncpg.Connection, admin_id: int, *, for_update: bool = False
) -> asyncpg.Record:
    lock = "FOR NO KEY UPDATE" if for_update else ""
    row = await source.fetchrow(f"SELECT {_COLUMNS} FROM admins WHERE id = $1 {lock}", admin_id)
    return require_record(ids.ADMIN, row)


async def list_page(
    database: Database, query: AdminFilters, view: OwnerView | None
) -> list[asyncpg.Record]:
    conditions = PageConditions(query)
    limit_to_owner(conditions, view, USERS)
    owner = None if query.owner_id is None else parse_owner(query.owner_id)
    conditions.where("owner_id = {}", None if owner is None else owner.id)
    if query.type is not None:
        conditions.add(f"owner_id IS {'NOT ' if query.type == UserType.OWNER else ''}NULL")
    return await conditions.fetch(database, f"SELECT {_COLUMNS} FROM admins")


async def insert(
    tx: Transaction, email: str, name: str, role: str, password_hash: str, owner: Owner | None
) -> asyncpg.Record | None:
    """Insert an admin and return the row, or return None if the email is already in use."""
    return await tx.fetchrow(
        f"""INSERT INTO admins (id, email, name, role, password_hash, created_at, owner_type,
                                owner_id)
            VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
            ON CONFLICT ON CONSTRAINT one_admin_per_email DO NOTHING
            RETURNING {_COLUMNS}""",
        tx.new_id(),
        email,
        name,
        role,
        password_hash,
        tx.now(),
        owner and owner.type,
        owner and owner.id,
    )


async def set_status(
    tx: asyncpg.Connection, admin_id: int, status: str, *, disabled_by: int | None = None
) -> asyncpg.Record:
    return await tx.fetchrow(
        f"""UPDATE admins SET status = $2, disabled_by = $3 WHERE id = $1
            RETURNING {_COLUMNS}""",
        admin_id,
        status,
        disabled_by,
    )


async def change_email(tx: Transaction, admin_id: int, email: str) -> None:
    await tx.execute("UPDATE admins SET email = $2 WHERE id = $1", admin_id, email)


async def lock_by_email(tx: Transaction, email: str) -> asyncpg.Record | None:
    return await tx.fetchrow(
        f"SELECT {_COLUMNS} FROM admins WHERE email = $1 FOR NO KEY UPDATE", email.lower()
    )


async def update(tx: Transaction, admin_id: int, *, name: str, role: str) -> asyncpg.Record:
    return await tx.fetchrow(
        f"UPDATE admins SET name = $2, role = $3 WHERE id = $1 RETURNING {_COLUMNS}",
        admin_id,
        name,
        role,
    )


async def set_password(tx: Transaction, admin_id: int, password_hash: str) -> None:
    await tx.execute("UPDATE admins SET password_hash = $2 WHERE id = $1", admin_id, password_hash)


async def add_link_views(tx: Transaction, admin_id: int, linked_to: Sequence[int]) -> None:
    """Store who may have an admin's new link, also if an earlier one was confirmed.

    The people who may use the account of one of these admins may have the link too, even after that
    account is confirmed.
    """
    await tx.execute(
        """WITH RECURSIVE people (id) AS (
               SELECT unnest($2::bigint[])
               UNION
               SELECT viewer_id FROM admin_link_views earlier JOIN people ON people.id = admin_id
               WHERE confirmed_at IS NULL
           )
           INSERT INTO admin_link_views (admin_id, viewer_id, seen_at)
           SELECT $1, id, $3 FROM people WHERE id <> $1
           ON CONFLICT (admin_id, viewer_id) DO UPDATE
           SET seen_at = excluded.seen_at, confirmed_at = NULL, confirmed_by = NULL""",
        admin_id,
        linked_to,
        tx.now(),
    )


async def get_link_expiry(database: Database, admin_id: int) -> datetime | None:
    """Return when an admin's unused link expires or expired, or None if there is no such link."""
    expires_at: datetime | None = await database.fetchval(
        "SELECT expires_at FROM admin_invitations WHERE admin_id = $1", admin_id
    )
    return expires_at


async def has_unused_link(tx: Transaction, admin_id: int) -> bool:
    """Return whether the admin has a link that was not used, even if it has expired."""
    return bool(
        await tx.fetchval(
            "SELECT EXISTS (SELECT FROM admin_invitations WHERE admin_id = $1)", admin_id
        )
    )


async def confirm_link_views(tx: Transaction, admin_id: int, confirmed_by: int | None) -> None:
    await tx.execute(
        """UPDATE admin_link_views SET confirmed_at = $2, confirmed_by = $3
           WHERE admin_id = $1 AND confirmed_at IS NULL""",
        admin_id,
        tx.now(),
        confirmed_by,
    )


async def delete_identity(tx: Transaction, admin_id: int) -> str | None:
    """Delete the identity with which an admin signs in; return its subject, or None.

    It is kept as a former identity, by which a later sign-in finds the admin.
    """
    subject: str | None = await tx.fetchval(
        """WITH deleted AS (
               DELETE FROM admin_identities WHERE admin_id = $1 RETURNING issuer, subject, admin_id
           ), kept AS (
               INSERT INTO admin_former_identities (issuer, subject, admin_id)
               SELECT * FROM deleted
               ON CONFLICT (issuer, subject) DO UPDATE SET admin_id = excluded.admin_id
           )
           SELECT subject FROM deleted""",
        admin_id,
    )
    return subject


async def find_by_email(source: Database | asyncpg.Connection, email: str) -> asyncpg.Record | None:
    return await source.fetchrow(f"SELECT {_COLUMNS} FROM admins WHERE email = $1", email.lower())


async def find_sso_candidate(
    source: Database | asyncpg.Connection, email: str
) -> asyncpg.Record | None:
    """Return the admin with an identity's address, unless a new account would get the address."""
    found = await find_by_email(source, email)
    if found is not None and found["owner_id"] is not None and found["status"] == "disabled":
        return None
    return found


async def list_signed_in(tx: Transaction) -> list[int]:
    """Return the IDs of admins who have a session."""
    rows = await tx.fetch("SELECT DISTINCT admin_id FROM sessions WHERE ended_at IS NULL")
    return [row["admin_id"] for row in rows]


class ActiveSystemAdmins(NamedTuple):
    all: set[int]
    local: set[int]  # those who sign in with a password

    def is_required(self, admin_id: int) -> bool:
        """Return whether this is the last one, or the last one who does not use SSO."""
        return {admin_id} in self


async def lock_active_system_admins(tx: asyncpg.Connection) -> ActiveSystemAdmins:
    """Lock the active system admins against concurrent changes and return their ids."""
    locked = await tx.fetch(
        """SELECT id FROM admins WHERE role = $1 AND status = 'active'
           ORDER BY id FOR NO KEY UPDATE""",
        AdminRole.SYSTEM_ADMIN,
    )
    # A separate statement, which sees what was committed before the locks were granted.
    linked = await tx.fetch("SELECT admin_id FROM admin_identities")
    system_admins = {row["id"] for row in locked}
    return ActiveSystemAdmins(system_admins, system_admins - {row["admin_id"] for row in linked})


async def has_system_admin(source: Database | asyncpg.Connection) -> bool:
    return bool(
        await source.fetchval(
            "SELECT EXISTS (SELECT FROM admins WHERE role = $1)", AdminRole.SYSTEM_ADMIN
        )
    )


async def get_first_system_admin(source: Database | asyncpg.Connection) -> int | None:
    """Return the oldest active `system_admin`'s id, or None if there is none.

    The command line and the demo create API keys in this admin's name.
    """
    admin_id: int | None = await source.fetchval(
        "SELECT id FROM admins WHERE role = $1 AND status = 'active' ORDER BY id LIMIT 1",
        AdminRole.SYSTEM_ADMIN,
    )
    return admin_id
