"""Ends what an earlier state of the database would revive: sessions, codes and delivery numbers."""

from datetime import datetime
from typing import Any, Final

from tapgate.core.id_generator import first_id_at

#: Kind of credential, its table, and the statement that ends all of them. They may have been
#: revoked after the recovered time. Their owners can obtain new ones.
_STATEMENTS: Final = (
    ("sessions", "sessions", "UPDATE sessions SET ended_at = now() WHERE ended_at IS NULL"),
    ("refresh tokens", "refresh_tokens", "DELETE FROM refresh_tokens"),
    ("one-time codes", "one_time_codes", "DELETE FROM one_time_codes"),
    ("accesses to restricted records", "restricted_access", "DELETE FROM restricted_access"),
    ("statement files", "statements", "DELETE FROM statements"),
    ("chat codes", "messenger.codes", "DELETE FROM messenger.codes"),
)
#: Receivers deduplicate deliveries by number. They may have seen numbers assigned after the
#: recovered time, so the sequence continues above every number that could have been assigned.
_ADVANCE_DELIVERY_SEQUENCE: Final = """
    SELECT setval('deliveries_id_seq', greatest(last_value, $1)) FROM deliveries_id_seq"""


async def revoke_credentials(tx: Any) -> dict[str, int]:
    """End all sessions and codes, and return their number by kind.

    A table that the schema does not have yet is skipped.
    """
    counts = {}
    for kind, table, statement in _STATEMENTS:
        if await tx.fetchval("SELECT to_regclass($1::text) IS NOT NULL", table):
            status: str = await tx.execute(statement)
            counts[kind] = int(status.rpartition(" ")[2])
    return counts


async def advance_delivery_numbers(tx: Any, now: datetime) -> None:
    """Continue delivery numbers above those that receivers may know from the lost time."""
    if await tx.fetchval("SELECT to_regclass('deliveries_id_seq') IS NOT NULL"):
        await tx.execute(_ADVANCE_DELIVERY_SEQUENCE, first_id_at(now))
