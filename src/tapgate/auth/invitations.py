"""Links that let an admin set a password."""

import secrets
from datetime import datetime, timedelta
from typing import Final

import asyncpg

from tapgate.core.vault import Vault
from tapgate.runtime.store.database import Database
from tapgate.runtime.store.transaction import Transaction

INVITATION_LIFETIME: Final = timedelta(days=3)
#: Pages that take the token, for the platform's own people and for owner users. The token is in
#: the fragment, which browsers do not send, so it appears neither in logs nor in a proxy's history.
_PATH: Final = "/console/invitation#"
_OWNER_PATH: Final = "/portal/invitation#"
_RANDOM_BYTES: Final = 32
_HASH_PURPOSE: Final = "invitation"


class Invitations:
    def __init__(self, database: Database, vault: Vault, public_url: str) -> None:
        self._database = database
        self._vault = vault
        self._public_url = public_url.rstrip("/")

    async def create(self, tx: Transaction, admin_id: int) -> tuple[str, datetime]:
        """Return a new link's URL and expiry time. An earlier link becomes invalid."""
        token, expires_at = secrets.token_urlsafe(_RANDOM_BYTES), tx.now() + INVITATION_LIFETIME
        has_owner = await tx.fetchval(
            """INSERT INTO admin_invitations (admin_id, token_hash, created_at, expires_at)
               VALUES ($1, $2, $3, $4)
               ON CONFLICT (admin_id) DO UPDATE SET token_hash = excluded.token_hash,
                   created_at = excluded.created_at, expires_at = excluded.expires_at
               RETURNING (SELECT owner_id IS NOT NULL FROM admins WHERE id = admin_id)""",
            admin_id,
            self._vault.keyed_hash(_HASH_PURPOSE, token.encode()),
            tx.now(),
            expires_at,
        )
        path = _OWNER_PATH if has_owner else _PATH
        return f"{self._public_url}{path}{token}", expires_at

    async def find(self, token: str, now: datetime) -> asyncpg.Record | None:
        """Return the active admin for a valid link, or None."""
        return await self._database.fetchrow(
            """SELECT id, email, name FROM admin_invitations JOIN admins ON admins.id = admin_id
               WHERE token_hash = ANY ($1) AND expires_at > $2 AND status = 'active'""",
            self._list_hashes(token),
            now,
        )

    async def use(self, tx: Transaction, token: str) -> int | None:
        """Delete a link; return its admin, or None if it was used or replaced."""
        admin_id: int | None = await tx.fetchval(
            """DELETE FROM admin_invitations WHERE token_hash = ANY ($1) AND expires_at > $2
               RETURNING admin_id""",
            self._list_hashes(token),
            tx.now(),
        )
        return admin_id

    async def revoke(self, tx: Transaction, admin_id: int) -> None:
        """End the link. Its row remains and shows that the admin has no password."""
        await tx.execute(
            "UPDATE admin_invitations SET expires_at = least(expires_at, $2) WHERE admin_id = $1",
            admin_id,
            tx.now(),
        )

    def _list_hashes(self, token: str) -> list[bytes]:
        return self._vault.list_keyed_hashes(_HASH_PURPOSE, token.encode())
