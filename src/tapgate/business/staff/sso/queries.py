"""SQL queries for the identities with which admins sign in."""

import asyncpg

from tapgate.auth.oidc.id_tokens import Identity
from tapgate.runtime.store.database import Database
from tapgate.runtime.store.rows import insert_values, map_conflicts
from tapgate.runtime.store.transaction import Transaction
from tapgate_client.errors import Code

_CONSTRAINTS = ("admin_identities_pkey", "one_admin_per_identity")


async def find_admin(source: Database | asyncpg.Connection, identity: Identity) -> int | None:
    """Return the admin who signs in with an identity, or None."""
    admin_id: int | None = await source.fetchval(
        "SELECT admin_id FROM admin_identities WHERE issuer = $1 AND subject = $2",
        identity.issuer,
        identity.subject,
    )
    return admin_id


async def find_former_admin(database: Database, identity: Identity) -> int | None:
    """Return the admin who signed in with an identity before the password was reset, or None."""
    admin_id: int | None = await database.fetchval(
        "SELECT admin_id FROM admin_former_identities WHERE issuer = $1 AND subject = $2",
        identity.issuer,
        identity.subject,
    )
    return admin_id


async def insert(tx: Transaction, admin_id: int, identity: Identity) -> None:
    # Concurrent sign-ins can create or link the same admin.
    with map_conflicts(dict.fromkeys(_CONSTRAINTS, Code.DUPLICATE_EMAIL)):
        await insert_values(
            tx,
            "admin_identities",
            admin_id=admin_id,
            issuer=identity.issuer,
            subject=identity.subject,
            created_at=tx.now(),
        )
