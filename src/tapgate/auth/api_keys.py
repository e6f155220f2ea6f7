"""API keys of third parties: returned once, stored as keyed hashes."""

import secrets
from collections.abc import Collection
from datetime import datetime

import msgspec

from tapgate import ids
from tapgate.auth.cache import Cache
from tapgate.auth.charges import NO_CHARGE, Charge
from tapgate.auth.last_seen import LastSeen
from tapgate.auth.principals import Principal
from tapgate.auth.secret_rows import delete_row, rotate_secret
from tapgate.clock import Clock
from tapgate.errors import ApiError, Code
from tapgate.http.client_addresses import Network
from tapgate.schemas.records import require_record
from tapgate.store.database import Database
from tapgate.store.rows import insert_row, update_row
from tapgate.store.signals import Signals
from tapgate.store.transaction import Transaction
from tapgate.vault import Vault

#: Prefix of every API key. Access tokens never start with it.
API_KEY_PREFIX = "svc_"
LIVE_PREFIX, TEST_PREFIX = f"{API_KEY_PREFIX}live_", f"{API_KEY_PREFIX}test_"

_TOPIC = "api_keys"
_RANDOM_BYTES = 32
_VISIBLE_CHARACTERS = 4
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


_COLUMNS = ", ".join(ApiKey.__struct_fields__)


class _CachedKey(msgspec.Struct, frozen=True):
    principal: Principal
    valid_until: datetime | None


class ApiKeys:
    def __init__(
        self, database: Database, signals: Signals, vault: Vault, clock: Clock, *, production: bool
    ) -> None:
        self._database = database
        self._signals = signals
        self._vault = vault
        self._clock = clock
        self._prefix = LIVE_PREFIX if production else TEST_PREFIX
        self._cache: Cache[bytes, _CachedKey] = Cache(signals, _TOPIC, self._load)
        self.last_used = LastSeen(database, clock, "api_keys", "last_used_at")

    async def create(
        self,
        tx: Transaction,
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
            id=tx.new_id(),
            prefix=prefix,
            name=name,
            scopes=list(dict.fromkeys(scopes)),
            expires_at=expires_at,
            created_at=tx.now(),
            rate_limit=rate_limit,
            burst=burst,
            allowed_ips=allowed_ips,
        )
        columns = ApiKey.__struct_fields__
        others = {"key_hash": self._hash(key), "created_by": created_by}
        await insert_row(tx, "api_keys", record, columns, **others)
        return record, key

    async def save(self, tx: Transaction, key: ApiKey) -> None:
        """Update the settings of a key that `tx` has locked."""
        columns = ("name", "scopes", "rate_limit", "burst", "allowed_ips", "expires_at")
        await update_row(tx, "api_keys", key, columns)
        await self._signals.publish_and_wait(tx, _TOPIC, str(key.id))

    async def rotate(
        self, tx: Transaction, key: ApiKey, *, grace_seconds: int
    ) -> tuple[ApiKey, str]:
        """Replace the secret of a key that `tx` has locked.

        The previous secret stays valid until the grace period ends or the key expires; older
        secrets become invalid.
        """
        secret, prefix = self._generate_secret()
        await rotate_secret(
            tx,
            "api_keys",
            key.id,
            self._hash(secret),
            column="key_hash",
            until_column="previous_until",
            grace_seconds=grace_seconds,
            prefix=prefix,
        )
        await self._signals.publish_and_wait(tx, _TOPIC, str(key.id))
        return msgspec.structs.replace(key, prefix=prefix), secret

    async def delete(self, tx: Transaction, key_id: int) -> None:
        require_record(ids.KEY, await delete_row(tx, "api_keys", key_id))
        await self._signals.publish_and_wait(tx, _TOPIC, str(key_id))

    async def get(
        self, reader: Database | Transaction, key_id: int, *, for_update: bool = False
    ) -> ApiKey:
        lock = "FOR NO KEY UPDATE" if for_update else ""
        row = await reader.fetchrow(
            f"SELECT {_COLUMNS} FROM api_keys WHERE id = $1 AND deleted_at IS NULL {lock}", key_id
        )
        return ApiKey(**require_record(ids.KEY, row))

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
