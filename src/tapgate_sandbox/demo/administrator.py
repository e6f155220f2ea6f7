"""The administrator in whose name the demo acts."""

from tapgate.business.staff import queries
from tapgate.runtime.store.database import Database


class DemoError(Exception):
    """The demo cannot be built; the one-line message is for the operator."""


async def require_first_admin(database: Database) -> int:
    """Return the oldest active system_admin's ID, or raise DemoError if there is none."""
    admin_id = await queries.get_first_system_admin(database)
    if admin_id is None:
        raise DemoError("no administrator exists yet. Start Tapgate once and try again")
    return admin_id
