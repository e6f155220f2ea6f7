"""Settings that cannot change after the first start on a database."""

from tapgate.settings import SettingsError
from tapgate.store.database import Database


async def check_installation(database: Database, *, secret_fingerprint: str, currency: str) -> None:
    """Store the secret key's fingerprint and the currency on first start; later require the same.

    Raise SettingsError if one of them differs. With a different secret key, no PIN would match and
    no sealed value could be opened. With a different currency, every amount would be wrong.
    """
    for name, value, error in (
        (
            "secret_fingerprint",
            secret_fingerprint,
            "TAPGATE_SECRET_KEY does not match the key of this database",
        ),
        ("currency", currency, "TAPGATE_CURRENCY does not match the currency of this database"),
    ):
        stored = await database.fetchval(
            """INSERT INTO installation (name, value) VALUES ($1, $2)
               ON CONFLICT (name) DO UPDATE SET value = installation.value
               RETURNING value""",
            name,
            value,
        )
        if stored != value:
            raise SettingsError(error)
