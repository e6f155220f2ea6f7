"""Link that signs the first admin in once, printed at the start in development.

It is valid for minutes, and only its hash is stored. The token is in the fragment, which browsers
do not send.
"""

import secrets
from datetime import timedelta
from typing import Final

from tapgate.core.settings import Settings
from tapgate.core.vault import Vault
from tapgate.runtime.store.database import Database

PATH: Final = "/simulator/sign-in"
LIFETIME: Final = timedelta(minutes=15)
_ROW_NAME: Final = "sign_in_link"
_RANDOM_BYTES: Final = 32

#: The oldest system admin.
_SELECT_ADMIN: Final = """
    SELECT id FROM admins WHERE role = 'system_admin' AND status = 'active'
    ORDER BY id LIMIT 1"""


async def create_link(settings: Settings, database: Database) -> str:
    """Return a new link's URL. An earlier link becomes invalid."""
    token = secrets.token_urlsafe(_RANDOM_BYTES)
    await database.execute(
        """INSERT INTO installation (name, value)
           VALUES ($1, $2 || ' ' || extract(epoch FROM clock_timestamp() + $3::interval))
           ON CONFLICT (name) DO UPDATE SET value = excluded.value""",
        _ROW_NAME,
        _hash(Vault(settings.secret_key), token),
        LIFETIME,
    )
    return f"{settings.public_url}{PATH}#{token}"


async def use_link(database: Database, vault: Vault, token: str | None) -> int | None:
    """Delete the link; return its admin, or None if the token is wrong or expired."""
    used = await database.fetchval(
        """DELETE FROM installation
           WHERE name = $1 AND split_part(value, ' ', 1) = $2
             AND to_timestamp(split_part(value, ' ', 2)::float8) > clock_timestamp()
           RETURNING true""",
        _ROW_NAME,
        _hash(vault, token or ""),
    )
    admin_id: int | None = await database.fetchval(_SELECT_ADMIN) if used else None
    return admin_id


def _hash(vault: Vault, token: str) -> str:
    return vault.keyed_hash("sign-in link", token.encode()).hex()
