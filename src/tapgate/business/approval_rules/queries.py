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
           owner_type, owner_id
    FROM admins"""
#: Row of `installation` while approvals are suspended.
_SUSPENSION_ROW: Final = "approvals_suspended"


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
    rows = await reader.fetch(
        """SELECT admin.email, viewer.email AS viewer_email
           FROM admin_link_views
           JOIN admins admin ON admin.id = admin_id JOIN admins viewer ON viewer.id = viewer_id
           WHERE confirmed_at IS NULL"""
    )
    return LinkedPeople(
        (identify_person(row["email"]), identify_person(row["viewer_email"])) for row in rows
    )


def _to_person(row: asyncpg.Record) -> Person:
    is_active = row["status"] == AdminStatus.ACTIVE
    return Person(
        row["id"],
        row["name"],
        row["role"],
        is_active,
        identify_person(row["email"]),
        row["can_sign_in"],
        build_owner(row["owner_type"], row["owner_id"]),
    )
