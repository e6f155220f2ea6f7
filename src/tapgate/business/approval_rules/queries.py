"""SQL queries for approval rules, their suspension, and the people who can satisfy them."""

from typing import Final

import asyncpg
import msgspec

from tapgate.auth.owners import build_owner
from tapgate.business.approval_rules.model import Rule
from tapgate.business.approval_rules.people import LinkedPeople, Person, identify_person
from tapgate.runtime.store.database import Database
from tapgate.runtime.store.transaction import Transaction
from tapgate_client.errors import Code, require_found
from tapgate_client.schemas.admin import AdminStatus
from tapgate_client.schemas.approvals import ApprovalSuspension

_RULE_COLUMNS: Final = ", ".join(Rule.__struct_fields__)
_SELECT_ADMINS: Final = """
    SELECT id, name, role, status, email,
           NOT EXISTS (SELECT FROM admin_invitations WHERE admin_id = admins.id)
           OR EXISTS (SELECT FROM admin_identities WHERE admin_id = admins.id) AS can_sign_in,
           owner_type, owner_id,
           NOT EXISTS (SELECT FROM admin_link_views
                       WHERE admin_id = admins.id AND confirmed_at IS NULL) AS is_confirmed
    FROM admins"""
#: Row of `installation` while approvals are suspended.
_SUSPENSION_ROW: Final = "approvals_suspended"
#: Links that count. An owner user never uses a platform account, and an account that was disabled
#: before anyone signed in has never been used.
_SELECT_LINKS: Final = """
    SELECT admin.email, admin.owner_type, admin.owner_id, viewer.email AS viewer_email,
           viewer.owner_type AS viewer_owner_type, viewer.owner_id AS viewer_owner_id
    FROM admin_link_views
    JOIN admins admin ON admin.id = admin_id JOIN admins viewer ON viewer.id = viewer_id
    WHERE confirmed_at IS NULL
      AND (viewer.owner_id IS NULL OR admin.owner_id IS NOT NULL)
      AND (admin.status = 'active' OR admin.last_login_at IS NOT NULL)"""


async def list_rules(reader: Database | Transaction) -> list[Rule]:
    rows = await reader.fetch(f"SELECT {_RULE_COLUMNS} FROM approval_rules ORDER BY id")
    return [Rule(**row) for row in rows]


async def list_rules_in_force(reader: Database | Transaction) -> list[Rule]:
    """Return the rules, or none while approvals are suspended."""
    return [] if await get_suspension(reader) is not None else await list_rules(reader)


async def get_suspension(reader: Database | Transaction) -> ApprovalSuspension | None:
    value = await reader.fetchval("SELECT value FROM installation WHERE name = $1", _SUSPENSION_ROW)
    return None if value is None else msgspec.json.decode(value, type=ApprovalSuspension)


async def insert_suspension(tx: Transaction, suspension: ApprovalSuspension) -> None:
    await tx.execute(
        "INSERT INTO installation (name, value) VALUES ($1, $2)",
        _SUSPENSION_ROW,
        msgspec.json.encode(suspension).decode(),
    )


async def delete_suspension(tx: Transaction) -> None:
    await tx.execute("DELETE FROM installation WHERE name = $1", _SUSPENSION_ROW)


async def lock(tx: Transaction) -> None:
    """Serialize changes to the rules and to the people who can satisfy them."""
    await tx.execute("SELECT pg_advisory_xact_lock(hashtextextended('approval rules', 0))")


async def find_admin(
    reader: Database | Transaction, admin_id: int, *, for_share: bool = False
) -> Person:
    """Return an admin. With `for_share`, its role and status cannot change until the commit."""
    suffix = "FOR SHARE" if for_share else ""
    row = await reader.fetchrow(f"{_SELECT_ADMINS} WHERE id = $1 {suffix}", admin_id)
    return _to_person(require_found(row, Code.NOT_FOUND))


async def list_active_admins(reader: Database | Transaction) -> list[Person]:
    rows = await reader.fetch(f"{_SELECT_ADMINS} WHERE status = $1 ORDER BY id", AdminStatus.ACTIVE)
    return [_to_person(row) for row in rows]


async def load_linked_people(reader: Database | Transaction) -> LinkedPeople:
    """Return who may use the accounts of other people: those who may have had a link to them."""
    return LinkedPeople(
        (
            _identify(row),
            identify_person(
                row["viewer_email"],
                build_owner(row["viewer_owner_type"], row["viewer_owner_id"]),
            ),
        )
        for row in await reader.fetch(_SELECT_LINKS)
    )


async def list_unconfirmed(reader: Database | Transaction, admin_id: int) -> list[str]:
    """Return the email addresses of accounts with links that connect an admin with others."""
    person = (await find_admin(reader, admin_id)).person
    rows = await reader.fetch(_SELECT_LINKS)
    return sorted({row["email"] for row in rows if _identify(row) == person})


def _identify(row: asyncpg.Record) -> str:
    return identify_person(row["email"], build_owner(row["owner_type"], row["owner_id"]))


def _to_person(row: asyncpg.Record) -> Person:
    return Person(
        row["id"],
        row["name"],
        row["role"],
        row["status"] == AdminStatus.ACTIVE,
        _identify(row),
        row["can_sign_in"],
        build_owner(row["owner_type"], row["owner_id"]),
        row["is_confirmed"],
    )
