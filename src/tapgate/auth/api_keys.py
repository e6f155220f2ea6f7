"""Third-party API keys: returned once, stored as keyed hashes."""

import secrets
from collections.abc import Collection
from datetime import datetime

import asyncpg
import msgspec
import structlog

from tapgate.auth.cache import Cache
from tapgate.auth.last_seen import LastSeen
from tapgate.auth.owners import Owner, build_owner
from tapgate.auth.principals import Principal
from tapgate.auth.rate_limit_cost import NO_COST, RateLimitCost
from tapgate.auth.secret_rows import delete_row, rotate_secret, select_name
from tapgate.core.records import require_record
from tapgate.core.vault import Vault
from tapgate.runtime.client_addresses import Network
from tapgate.runtime.store.database import Database
from tapgate.runtime.store.rows import insert_row, update_row
from tapgate.runtime.store.signals import Signals
from tapgate.runtime.store.transaction import Transaction
from tapgate_client import ids
from tapgate_client.clock import Clock
from tapgate_client.errors import ApiError, Code
from tapgate_client.schemas.owners import OwnerType

_log = structlog.get_logger()

#: Prefix of every API key. Access tokens never start with it.
API_KEY_PREFIX = "svc_"
LIVE_PREFIX, TEST_PREFIX = f"{API_KEY_PREFIX}live_", f"{API_KEY_PREFIX}test_"

_TOPIC = "api_keys"
_RANDOM_BYTES = 32
_VISIBLE_CHARACTERS = 4
_SELECT_KEY = """
    SELECT id, name, scopes, rate_limit, burst, allowed_ips, owner_type, owner_id,
           key_hash, least(expires_at, CASE WHEN key_hash <> ALL ($1) THEN previous_until END)
               AS valid_until
    FROM api_keys
    WHERE (key_hash = ANY ($1) OR previous_key_hash = ANY ($1)) AND deleted_at IS NULL
"""
#: Rehashes a caller's key with the newest secret key, unless the key was changed in between.
_MOVE_HASH = """
    UPDATE api_keys SET key_hash = $3, secret_key_id = $4 WHERE id = $1 AND key_hash = $2
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
    #: The admin who created the key; None for a key from the command line.
    created_by: int | None = None
    created_by_name: str | None = None
    #: The admin who rotated the key last.
    rotated_by: int | None = None
    rotated_by_name: str | None = None
    rotated_at: datetime | None = None
    owner_type: OwnerType | None = None
    owner_id: int | None = None

    @property
    def owner(self) -> Owner | None:
        return build_owner(self.owner_type, self.owner_id)


_STORED_FIELDS = (
    "id", "prefix", "name", "scopes", "expires_at", "created_at", "rate_limit", "burst",
    "allowed_ips", "last_used_at", "rotated_at", "owner_type", "owner_id",
)  # fmt: skip
_CREATOR = "CASE WHEN NOT has_unknown_holder THEN api_keys.created_by END"
_LAST_ROTATOR = "api_keys.rotated_by[cardinality(api_keys.rotated_by)]"
_COLUMNS = f"""{", ".join(_STORED_FIELDS)},
    {_CREATOR} AS created_by, {select_name(_CREATOR)} AS created_by_name,
    {_LAST_ROTATOR} AS rotated_by, {select_name(_LAST_ROTATOR)} AS rotated_by_name"""


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
        self._cache: Cache[tuple[bytes, ...], _CachedKey] = Cache(signals, _TOPIC, self._load)
        self.last_used = LastSeen(database, clock, "api_keys", "last_used_at")

    async def create(
        self,
        tx: Transaction,
        *,
        name: str,
        scopes: Collection[str],
        expires_at: datetime | None,
        created_by: int,
        has_unknown_holder: bool = False,
        rate_limit: int | None = None,
        burst: int | None = None,
        allowed_ips: list[Network] | None = None,
        owner: Owner | None = None,
    ) -> tuple[ApiKey, str]:
        """Create a key and return its record and the key itself, which is not stored.

        With `has_unknown_holder`, someone other than `created_by` may receive the key. With
        `owner`, the scopes apply to that owner only.
        """
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
            owner_type=None if owner is None else owner.type,
            owner_id=None if owner is None else owner.id,
        )
        others = {
            "key_hash": self._hash(key),
            "secret_key_id": self._vault.key_id,
            "created_by": created_by,
            "has_unknown_holder": has_unknown_holder,
        }
        await insert_row(tx, "api_keys", record, _STORED_FIELDS, **others)
        return await self.get(tx, record.id), key

    async def save(self, tx: Transaction, key: ApiKey) -> None:
        """Update settings for a key that `tx` has locked."""
        columns = ("name", "scopes", "rate_limit", "burst", "allowed_ips", "expires_at")
        await update_row(tx, "api_keys", key, columns)
        await self._signals.publish_and_wait(tx, _TOPIC, str(key.id))

    async def rotate(
        self, tx: Transaction, key: ApiKey, *, grace_seconds: int, rotated_by: int
    ) -> tuple[ApiKey, str]:
        """Replace a key's secret. `tx` must have locked the key.

        The previous secret stays valid until the grace period ends or the key expires; older
        secrets become invalid. The key then also acts for the admin who receives the new secret.
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
            secret_key_id=self._vault.key_id,
        )
        await tx.execute(
            """UPDATE api_keys SET rotated_by = array_remove(rotated_by, $2) || $2, rotated_at = $3,
                      has_unknown_holder = has_unknown_holder AND previous_until IS NOT NULL
               WHERE id = $1""",
            key.id,
            rotated_by,
            tx.now(),
        )
        await self._signals.publish_and_wait(tx, _TOPIC, str(key.id))
        return await self.get(tx, key.id), secret

    async def delete(self, tx: Transaction, key_id: int) -> None:
        require_record(ids.KEY, await delete_row(tx, "api_keys", key_id))
        await self._signals.publish_and_wait(tx, _TOPIC, str(key_id))

    async def get(
        self, reader: Database | Transaction, key_id: int, *, for_update: bool = False
    ) -> ApiKey:
        key = await self.find(reader, key_id, for_update=for_update)
        return require_record(ids.KEY, key)

    async def find(
        self, reader: Database | Transaction, key_id: int, *, for_update: bool = False
    ) -> ApiKey | None:
        """Return a key, or None if it was deleted."""
        lock = "FOR NO KEY UPDATE" if for_update else ""
        row = await reader.fetchrow(
            f"SELECT {_COLUMNS} FROM api_keys WHERE id = $1 AND deleted_at IS NULL {lock}", key_id
        )
        return None if row is None else ApiKey(**row)

    async def list_page(
        self, *, before: int | None, limit: int, admin_id: int | None = None
    ) -> list[ApiKey]:
        """Return keys that are not deleted, newest first, with ids below `before` if it is set.

        With `admin_id`, only keys that this admin created or was the last to rotate.
        """
        rows = await self._database.fetch(
            f"""SELECT {_COLUMNS} FROM api_keys WHERE deleted_at IS NULL
                AND ($1::bigint IS NULL OR id < $1)
                AND ($3::bigint IS NULL OR $3 IN ({_CREATOR}, {_LAST_ROTATOR}))
                ORDER BY id DESC LIMIT $2""",
            before,
            limit,
            admin_id,
        )
        return [ApiKey(**row) for row in rows]

    async def list_known(self, admin_id: int, *, limit: int) -> list[ApiKey]:
        """Return keys with a valid secret that an admin has received, newest first."""
        rows = await self._database.fetch(
            f"""SELECT {_COLUMNS} FROM api_keys WHERE deleted_at IS NULL
                AND ($1 = coalesce({_LAST_ROTATOR}, {_CREATOR})
                     OR previous_until > $3 AND $1 = ANY (rotated_by || created_by))
                ORDER BY id DESC LIMIT $2""",
            admin_id,
            limit,
            self._clock(),
        )
        return [ApiKey(**row) for row in rows]

    async def authenticate(self, key: str, cost: RateLimitCost = NO_COST) -> Principal:
        if not key.startswith(self._prefix):
            raise ApiError(
                Code.UNAUTHORIZED, f"API keys start with {self._prefix} in this environment."
            )
        cached = await self._cache.get(self._list_hashes(key), cost)
        if cached is None or (
            cached.valid_until is not None and cached.valid_until <= self._clock()
        ):
            raise ApiError(Code.UNAUTHORIZED, "The API key is unknown, expired or deleted.")
        return cached.principal

    async def _load(self, hashes: tuple[bytes, ...]) -> _CachedKey | None:
        """Load a key by its hashes under all secret keys, newest first."""
        row = await self._database.fetchrow(_SELECT_KEY, hashes)
        if row is None:
            return None
        if row["key_hash"] in hashes[1:]:
            await self._move(row["id"], row["key_hash"], hashes[0])
        principal = Principal(
            kind="api_key",
            id=ids.encode(ids.KEY, row["id"]),
            name=row["name"],
            scopes=frozenset(row["scopes"]),
            key_id=row["id"],
            rate_limit=row["rate_limit"],
            burst=row["burst"],
            allowed_ips=tuple(row["allowed_ips"] or ()),
            owner=build_owner(row["owner_type"], row["owner_id"]),
        )
        return _CachedKey(principal, row["valid_until"])

    async def _move(self, key_id: int, old_hash: bytes, new_hash: bytes) -> None:
        try:
            await self._database.execute(_MOVE_HASH, key_id, old_hash, new_hash, self._vault.key_id)
        except (ApiError, asyncpg.PostgresError) as error:
            # The old hash remains valid, and the next lookup moves it.
            _log.warning("api_keys.not_moved", error=type(error).__name__)

    def _generate_secret(self) -> tuple[str, str]:
        """Return a new key and its prefix, which is stored in plain text to identify the key."""
        key = self._prefix + secrets.token_urlsafe(_RANDOM_BYTES)
        return key, key[: len(self._prefix) + _VISIBLE_CHARACTERS]

    def _hash(self, key: str) -> bytes:
        return self._vault.keyed_hash("api_key", key.encode())

    def _list_hashes(self, key: str) -> tuple[bytes, ...]:
        return tuple(self._vault.list_keyed_hashes("api_key", key.encode()))
