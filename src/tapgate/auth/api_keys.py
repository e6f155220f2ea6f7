"""API keys of third parties: returned once, stored as keyed hashes."""

import secrets
from collections.abc import Collection
from datetime import datetime, timedelta

import asyncpg
import msgspec

from tapgate import ids
from tapgate.auth.cache import Cache
from tapgate.auth.charges import NO_CHARGE, Charge
from tapgate.auth.last_seen import LastSeen
from tapgate.auth.principals import Principal
from tapgate.clock import Clock
from tapgate.errors import ApiError, Code
from tapgate.http.client_addresses import Network
from tapgate.store.database import Database
from tapgate.store.signals import Signals, Ticket
from tapgate.vault import Vault

#: Prefix of every API key. Access tokens never start with it.
API_KEY_PREFIX = "svc_"
LIVE_PREFIX, TEST_PREFIX = f"{API_KEY_PREFIX}live_", f"{API_KEY_PREFIX}test_"

_TOPIC = "api_keys"
_RANDOM_BYTES = 32
_VISIBLE_CHARACTERS = 4
_COLUMNS = (
    "id, prefix, name, scopes, expires_at, created_at, rate_limit, burst, allowed_ips, last_used_at"
)
_SELECT_KEY = """
    SELECT id, name, scopes, rate_limit, burst, allowed_ips,
           least(expires_at, CASE WHEN key_hash <> $1 THEN previous_until END) AS valid_until
    FROM api_keys WHERE (key_hash = $1 OR previous_key_hash = $1) AND deleted_at IS NULL
"""


class ApiKey(msgspec.Struct, frozen=True, kw_only=True):
    """API key as stored, without the key itself."""

    id: int
    prefix: str
    name: str
    scopes: list[str]
    expires_at: datetime | None
    created_at: datetime
    rate_limit: int | None = None
    burst: int | None = None
    allowed_ips: list[Network] | None = None
    last_used_at: datetime | None = None


class _CachedKey(msgspec.Struct, frozen=True):
    principal: Principal
    valid_until: datetime | None


class ApiKeys:
    def __init__(
        self,
        database: Database,
        signals: Signals,
        vault: Vault,
        clock: Clock,
        new_id: ids.IdGenerator,
        *,
        production: bool,
    ) -> None:
        self._database = database
        self._signals = signals
        self._vault = vault
        self._clock = clock
        self._new_id = new_id
        self._prefix = LIVE_PREFIX if production else TEST_PREFIX
        self._cache: Cache[bytes, _CachedKey] = Cache(signals, _TOPIC, self._load)
        self.last_used = LastSeen(database, clock, "api_keys", "last_used_at")

    async def create(
        self,
        tx: asyncpg.Connection,
        *,
        name: str,
        scopes: Collection[str],
        expires_at: datetime | None,
        created_by: int,
        rate_limit: int | None = None,
        burst: int | None = None,
        allowed_ips: list[Network] | None = None,
    ) -> tuple[ApiKey, str]:
        """Create a key and return its record and the key itself, which is not stored."""
        key, prefix = self._generate_secret()
        record = ApiKey(
            id=self._new_id(),
            prefix=prefix,
            name=name,
            scopes=list(dict.fromkeys(scopes)),
            expires_at=expires_at,
            created_at=self._clock(),
            rate_limit=rate_limit,
            burst=burst,
            allowed_ips=allowed_ips,
        )
        await tx.execute(
            f"INSERT INTO api_keys ({_COLUMNS}, key_hash, created_by) "
            "VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)",
            *msgspec.structs.astuple(record),
            self._hash(key),
            created_by,
        )
        return record, key

    async def lock(self, tx: asyncpg.Connection, key_id: int) -> ApiKey | None:
        row = await tx.fetchrow(
            f"SELECT {_COLUMNS} FROM api_keys WHERE id = $1 AND deleted_at IS NULL "
            "FOR NO KEY UPDATE",
            key_id,
        )
        return None if row is None else ApiKey(**row)

    async def save(self, tx: asyncpg.Connection, key: ApiKey) -> Ticket:
        """Update the settings of a key that `tx` has locked.

        Pass the ticket to `Signals.wait_for_acks` after the commit.
        """
        await tx.execute(
            "UPDATE api_keys SET name = $2, scopes = $3, rate_limit = $4, burst = $5, "
            "allowed_ips = $6, expires_at = $7 WHERE id = $1",
            key.id,
            key.name,
            key.scopes,
            key.rate_limit,
            key.burst,
            key.allowed_ips,
            key.expires_at,
        )
        return await self._signals.publish(tx, _TOPIC, str(key.id))

    async def rotate(
        self, tx: asyncpg.Connection, key: ApiKey, *, grace_seconds: int
    ) -> tuple[ApiKey, str, Ticket]:
        """Replace the secret of a key that `tx` has locked.

        The previous secret stays valid until the grace period ends or the key expires; older
        secrets become invalid. Pass the ticket to `Signals.wait_for_acks` after the commit.
        """
        secret, prefix = self._generate_secret()
        await tx.execute(
            "UPDATE api_keys SET key_hash = $2, prefix = $3, previous_until = $4::timestamptz, "
            "previous_key_hash = CASE WHEN $4 IS NOT NULL THEN key_hash END WHERE id = $1",
            key.id,
            self._hash(secret),
            prefix,
            self._clock() + timedelta(seconds=grace_seconds) if grace_seconds else None,
        )
        ticket = await self._signals.publish(tx, _TOPIC, str(key.id))
        return msgspec.structs.replace(key, prefix=prefix), secret, ticket

    async def delete(self, tx: asyncpg.Connection, key_id: int) -> Ticket | None:
        """Delete a key and return a ticket, or return None if the key does not exist.

        Pass the ticket to `Signals.wait_for_acks` after the commit.
        """
        deleted = await tx.fetchval(
            "UPDATE api_keys SET deleted_at = $2 WHERE id = $1 AND deleted_at IS NULL RETURNING id",
            key_id,
            self._clock(),
        )
        if deleted is None:
            return None
        return await self._signals.publish(tx, _TOPIC, str(key_id))

    async def get(self, key_id: int) -> ApiKey | None:
        row = await self._database.fetchrow(
            f"SELECT {_COLUMNS} FROM api_keys WHERE id = $1 AND deleted_at IS NULL", key_id
        )
        return None if row is None else ApiKey(**row)

    async def list_page(self, *, before: int | None, limit: int) -> list[ApiKey]:
        """Return keys that are not deleted, newest first, with ids below `before` if it is set."""
        rows = await self._database.fetch(
            f"SELECT {_COLUMNS} FROM api_keys WHERE deleted_at IS NULL "
            "AND ($1::bigint IS NULL OR id < $1) ORDER BY id DESC LIMIT $2",
            before,
            limit,
        )
        return [ApiKey(**row) for row in rows]

    async def authenticate(self, key: str, charge: Charge = NO_CHARGE) -> Principal:
        if not key.startswith(self._prefix):
            raise ApiError(
                Code.UNAUTHORIZED, f"API keys start with {self._prefix} in this environment."
            )
        cached = await self._cache.get(self._hash(key), charge)
        if cached is None or (
            cached.valid_until is not None and cached.valid_until <= self._clock()
        ):
            raise ApiError(Code.UNAUTHORIZED, "The API key is unknown, expired or deleted.")
        return cached.principal

    async def _load(self, key_hash: bytes) -> _CachedKey | None:
        row = await self._database.fetchrow(_SELECT_KEY, key_hash)
        if row is None:
            return None
        principal = Principal(
            kind="api_key",
            id=ids.encode(ids.KEY, row["id"]),
            name=row["name"],
            scopes=frozenset(row["scopes"]),
            key_id=row["id"],
            rate_limit=row["rate_limit"],
            burst=row["burst"],
            allowed_ips=tuple(row["allowed_ips"] or ()),
        )
        return _CachedKey(principal, row["valid_until"])

    def _generate_secret(self) -> tuple[str, str]:
        """Return a new key and its prefix, which is stored in plain text to identify the key."""
        key = self._prefix + secrets.token_urlsafe(_RANDOM_BYTES)
        return key, key[: len(self._prefix) + _VISIBLE_CHARACTERS]

    def _hash(self, key: str) -> bytes:
        return self._vault.keyed_hash("api_key", key.encode())
