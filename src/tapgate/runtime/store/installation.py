"""Settings that a database is bound to: its currency and its secret keys."""

from typing import Any, Final

from tapgate.core.settings.declaration import SettingsError
from tapgate.core.vault import Vault
from tapgate.runtime.store.database import Database

_FIRST_KEY = "secret_fingerprint"

#: Row for an installation that started without data, until an admin dismisses the steps.
ONBOARDING_ROW: Final = "onboarding"


async def check_installation(database: Database, vault: Vault, *, currency: str) -> None:
    """Store the secret key's fingerprint and the currency on first start; later require the same.

    Raise SettingsError if one of them differs. Without a secret key that data is sealed with, no
    PIN would match and no sealed value could be opened. With a different currency, every amount
    would be wrong.
    """
    async with database.transaction() as tx:
        first_key = await _store_once(tx, _FIRST_KEY, vault.key_id)
        if await _store_once(tx, "currency", currency) != currency:
            raise SettingsError("TAPGATE_CURRENCY does not match this database's currency")
        await _register_key(tx, vault, first_key)


async def get_first_key_id(tx: Any) -> str:
    """Return the key fingerprint for data that does not name its key."""
    key_id: str = await tx.fetchval("SELECT value FROM installation WHERE name = $1", _FIRST_KEY)
    return key_id


async def set_first_key_id(tx: Any, key_id: str) -> None:
    await tx.execute("UPDATE installation SET value = $2 WHERE name = $1", _FIRST_KEY, key_id)


async def _store_once(tx: Any, name: str, value: str) -> str:
    stored: str = await tx.fetchval(
        """INSERT INTO installation (name, value) VALUES ($1, $2)
           ON CONFLICT (name) DO UPDATE SET value = installation.value
           RETURNING value""",
        name,
        value,
    )
    return stored


async def _register_key(tx: Any, vault: Vault, first_key: str) -> None:
    """Require all keys that data may be sealed with, and add the newest one to them.

    The row lock on the first key serializes nodes that start at the same time.
    """
    rows = await tx.fetch("SELECT key_id, name FROM secret_keys ORDER BY added_at")
    if not {first_key, *(row["key_id"] for row in rows)} & vault.key_names.keys():
        raise SettingsError(f"TAPGATE_SECRET_KEY does not match this database's key ({first_key})")
    for key_id, name in rows:
        if key_id not in vault.key_names:
            raise SettingsError(
                f"TAPGATE_SECRET_KEY lacks key {name} ({key_id}), which data in the database still"
                " needs. Add it to the list, and remove it when `tapgate rekey` has confirmed that"
                " you can"
            )
    await tx.execute(
        """INSERT INTO secret_keys AS kept (key_id, name) VALUES ($1, $2)
           ON CONFLICT (key_id) DO UPDATE SET name = excluded.name, retired_at = NULL
           WHERE kept.name <> excluded.name OR kept.retired_at IS NOT NULL""",
        vault.key_id,
        vault.key_names[vault.key_id],
    )


async def start_onboarding(database: Database) -> None:
    """Show setup steps for a new installation on its overview."""
    await database.execute(
        "INSERT INTO installation (name, value) VALUES ($1, 'open') ON CONFLICT DO NOTHING",
        ONBOARDING_ROW,
    )
