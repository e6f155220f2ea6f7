"""API keys of third parties: shown once, kept as a keyed hash."""

import secrets
from collections.abc import Collection
from datetime import datetime

import asyncpg
import msgspec

from tapgate import ids
from tapgate.clock import Clock
from tapgate.credentials.cache import Cache
from tapgate.credentials.charges import FREE, Charge
from tapgate.credentials.principals import Principal
from tapgate.errors import ApiError, Code
from tapgate.store.database import Database
from tapgate.store.signals import Signals, Ticket
from tapgate.vault import Vault

#: What every API key begins with, and no access token does.
PREFIX = "svc_"
LIVE, TEST = f"{PREFIX}live_", f"{PREFIX}test_"

_TOPIC = "api_keys"
_RANDOM_BYTES = 32
_SHOWN_CHARACTERS = 4
_COLUMNS = "id, prefix, name, scopes, expires_at, created_at"


class ApiKey(msgspec.Struct, frozen=True, kw_only=True):
    """What may be known about a key afterwards."""

    id: int
    prefix: str
    name: str
    scopes: list[str]
    expires_at: datetime | None
    created_at: datetime


class _Known(msgspec.Struct, frozen=True):
    principal: Principal
    expires_at: datetime | None


class ApiKeys:
    def __init__(
        self,
        database: Database,
        signals: Signals,
        vault: Vault,
        clock: Clock,
        new_id: ids.IdSource,
        *,
        production: bool,
    ) -> None:
        self._database = database
        self._signals = signals
        self._vault = vault
        self._clock = clock
        self._new_id = new_id
        self._begins_with = LIVE if production else TEST
        self._known: Cache[bytes, _Known] = Cache(signals, _TOPIC, self._load)

    async def create(
        self,
        tx: asyncpg.Connection,
        *,
        name: str,
        scopes: Collection[str],
        expires_at: datetime | None,
        created_by: int,
    ) -> tuple[ApiKey, str]:
        """A new key's record and the key itself, which nobody can be shown again."""
        key = self._begins_with + secrets.token_urlsafe(_RANDOM_BYTES)
        record = ApiKey(
            id=self._new_id(),
            prefix=key[: len(self._begins_with) + _SHOWN_CHARACTERS],
            name=name,
            scopes=list(dict.fromkeys(scopes)),
            expires_at=expires_at,
            created_at=self._clock(),
        )
        await tx.execute(
            f"INSERT INTO api_keys ({_COLUMNS}, key_hash, created_by) "
            "VALUES ($1, $2, $3, $4, $5, $6, $7, $8)",
            *msgspec.structs.astuple(record),
            self._hash(key),
            created_by,
        )
        return record, key

    async def delete(self, tx: asyncpg.Connection, key_id: int) -> Ticket | None:
        """Settle the ticket after the commit; None: there is no such key."""
        deleted = await tx.fetchval(
            "UPDATE api_keys SET deleted_at = $2 WHERE id = $1 AND deleted_at IS NULL RETURNING id",
            key_id,
            self._clock(),
        )
        if deleted is None:
            return None
        return await self._signals.publish(tx, _TOPIC, str(key_id))

    async def page(self, *, before: int | None, limit: int) -> list[ApiKey]:
        """The newest keys that are not deleted; `before` is the last one of the page before."""
        rows = await self._database.fetch(
            f"SELECT {_COLUMNS} FROM api_keys WHERE deleted_at IS NULL "
            "AND ($1::bigint IS NULL OR id < $1) ORDER BY id DESC LIMIT $2",
            before,
            limit,
        )
        return [ApiKey(**row) for row in rows]

    async def authenticate(self, key: str, charge: Charge = FREE) -> Principal:
        if not key.startswith(self._begins_with):
            raise ApiError(
                Code.UNAUTHORIZED, f"API keys begin with {self._begins_with} in this environment"
            )
        known = await self._known.get(self._hash(key), charge)
        if known is None or (known.expires_at is not None and known.expires_at <= self._clock()):
            raise ApiError(Code.UNAUTHORIZED, "Unknown, expired or deleted API key")
        return known.principal

    async def _load(self, key_hash: bytes) -> _Known | None:
        row = await self._database.fetchrow(
            "SELECT id, name, scopes, expires_at FROM api_keys "
            "WHERE key_hash = $1 AND deleted_at IS NULL",
            key_hash,
        )
        if row is None:
            return None
        principal = Principal(
            kind="api_key",
            id=ids.show(ids.KEY, row["id"]),
            name=row["name"],
            scopes=frozenset(row["scopes"]),
            key_id=row["id"],
        )
        return _Known(principal, row["expires_at"])

    def _hash(self, key: str) -> bytes:
        return self._vault.keyed_hash("api_key", key.encode())
