"""Keyed hashes. Moving one to another secret key requires the original value.

PINs and API keys move when they are used. Recovery codes last until the admin replaces them. All
other hashes expire. Most rows do not store which key they use: a row created before a key was
retired may need that key.
"""

from datetime import datetime
from typing import Any, Final, NamedTuple

from tapgate.auth.oidc.logins import LOGIN_LIFETIME
from tapgate.auth.sessions import REFRESH_LIFETIME
from tapgate.ledger.one_time_codes.codes import CODE_LIFETIME

_OLD_KEY: Final = """
    WITH old (key_id, newest, first_key, retired_at, now) AS (VALUES (
        $1::text, $2::text, $3::text, coalesce($4::timestamptz, $5), $5::timestamptz)) """


class OldKey(NamedTuple):
    """Secret key that is not the newest."""

    key_id: str
    name: str
    #: When all nodes had stopped using it for new data; None if they may still do.
    retired_at: datetime | None

    def __str__(self) -> str:
        return f"{self.name} ({self.key_id})"


class HashKind(NamedTuple):
    """Rows with hashes of one kind. `condition` selects those that an old key is needed for."""

    label: str
    table: str
    condition: str
    #: How they stop needing the old key.
    remedy: str
    #: When the last one expires.
    expires: str = "NULL"
    #: Statement that makes them invalid.
    discard: str = "DELETE FROM {table} USING old WHERE {condition}"


HASH_KINDS: Final = (
    HashKind(
        "PINs",
        "pins",
        "pins.key_id = old.key_id",
        "move at the next correct PIN",
        # No PIN matches an empty hash. The holder can reset the PIN.
        discard="UPDATE pins SET key_id = old.newest, verifier = '' FROM old WHERE {condition}",
    ),
    HashKind(
        "API keys",
        "api_keys",
        """coalesce(secret_key_id, old.first_key) = old.key_id AND deleted_at IS NULL
           AND coalesce(expires_at > old.now, true)""",
        "move at the next use, or rotate or delete them",
        discard="UPDATE api_keys SET deleted_at = old.now FROM old WHERE {condition}",
    ),
    HashKind(
        "previous API keys",
        "api_keys",
        "previous_until > old.now AND deleted_at IS NULL",
        "expire",
        "max(previous_until)",
        "UPDATE api_keys SET previous_key_hash = NULL, previous_until = NULL FROM old"
        " WHERE {condition}",
    ),
    HashKind(
        "recovery codes",
        "admin_recovery_codes",
        "used_at IS NULL AND coalesce(created_at < old.retired_at, true)",
        "the admin replaces them with new codes in My account",
    ),
    HashKind(
        "logins",
        "refresh_tokens",
        f"""used_at IS NULL AND expires_at > old.now
            AND expires_at < old.retired_at + interval '{REFRESH_LIFETIME.total_seconds()} s'
            AND EXISTS (SELECT FROM sessions WHERE id = session_id AND ended_at IS NULL)""",
        "move when the admin uses them, or expire",
        "max(expires_at)",
    ),
    HashKind(
        "invitations",
        "admin_invitations",
        "created_at < old.retired_at AND expires_at > old.now",
        "expire",
        "max(expires_at)",
    ),
    HashKind(
        "links to statements",
        "statements",
        "created_at < old.retired_at AND expires_at > old.now",
        "expire",
        "max(expires_at)",
    ),
    *(
        HashKind(
            label,
            table,
            f"""expires_at > old.now
                AND expires_at < old.retired_at + interval '{lifetime.total_seconds()} s'""",
            "expire",
            "max(expires_at)",
        )
        for label, table, lifetime in (
            ("one-time codes", "one_time_codes", CODE_LIFETIME),
            ("one-time codes in conversations", "messenger.codes", CODE_LIFETIME),
            ("single sign-ons", "oidc_logins", LOGIN_LIFETIME),
        )
    ),
)


class HashCount(NamedTuple):
    total: int
    expires_at: datetime | None


def _build_query(kind: HashKind, statement: str) -> str:
    return _OLD_KEY + statement.format(
        table=kind.table, condition=kind.condition, expires=kind.expires
    )


async def count_hashes(connection: Any, kind: HashKind, *parameters: object) -> HashCount:
    query = "SELECT count(*), {expires} FROM {table}, old WHERE {condition}"
    row = await connection.fetchrow(_build_query(kind, query), *parameters)
    return HashCount(*row)


async def discard_hashes(connection: Any, kind: HashKind, *parameters: object) -> None:
    await connection.execute(_build_query(kind, kind.discard), *parameters)
