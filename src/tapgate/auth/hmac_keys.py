"""Signing keys for processors, terminals, and partners.

Verifying a signature requires the secret itself, so secrets are stored sealed by the vault instead
of hashed.
"""

import secrets
from datetime import datetime

import asyncpg
import msgspec

from tapgate.auth.cache import Cache
from tapgate.auth.last_seen import LastSeen
from tapgate.auth.principals import Principal
from tapgate.auth.rate_limit_cost import NO_COST, RateLimitCost
from tapgate.auth.secret_rows import delete_row, select_name
from tapgate.core.vault import Vault
from tapgate.runtime.store.conditions import PageConditions
from tapgate.runtime.store.database import Database
from tapgate.runtime.store.rows import insert_values
from tapgate.runtime.store.signals import Signals
from tapgate.runtime.store.transaction import Transaction
from tapgate_client import ids
from tapgate_client.clock import Clock
from tapgate_client.errors import Code
from tapgate_client.schemas.pagination import PageQuery
from tapgate_client.schemas.processors import TerminalStatus

#: Published when a signing key is deleted, or when a processor's, partner's, or terminal's status
#: changes.
HMAC_KEYS_TOPIC = "hmac_keys"
_RANDOM_BYTES = 32
_SELECT_KEY = """
    SELECT key.id, key.secret, key.processor_id, key.terminal_id, key.partner_id,
           account.holder_name, account.status AS owner_status, terminal.status AS terminal_status,
           scopes.owner AS owner_scope, scopes.former AS former_scopes
    FROM hmac_keys AS key
    LEFT JOIN processors ON processors.id = key.processor_id
    LEFT JOIN partners ON partners.id = key.partner_id
    LEFT JOIN terminals AS terminal ON terminal.id = key.terminal_id
    JOIN accounts AS account ON account.id = coalesce(processors.account_id, partners.account_id)
    CROSS JOIN LATERAL (
        SELECT min(id) FILTER (WHERE request_scope = 'owner') AS owner,
               array_agg(id ORDER BY id) FILTER (WHERE request_scope = 'former') AS former
        FROM hmac_keys
        WHERE coalesce(terminal_id, processor_id, partner_id)
              = coalesce(key.terminal_id, key.processor_id, key.partner_id)
          AND request_scope <> 'none'
    ) AS scopes
    WHERE key.id = $1 AND key.deleted_at IS NULL
"""


class NewHmacKey(msgspec.Struct, frozen=True):
    """New signing key. `secret` is returned once; its UTF-8 bytes are the HMAC key."""

    id: int
    secret: str


class SigningKey(msgspec.Struct, frozen=True, kw_only=True):
    """Signing key as stored, without its secret."""

    id: int
    terminal_id: int | None
    terminal_name: str | None
    created_at: datetime
    last_used_at: datetime | None
    #: The admin who created the key; None if unknown.
    created_by: int | None
    created_by_name: str | None


class HmacKey(msgspec.Struct, frozen=True):
    secret: bytes
    principal: Principal
    #: Required value of `X-Partner-ID`: the partner's id, or None if the header must be absent.
    partner_header: bytes | None
    #: Error code for requests with a valid signature; None if owner and terminal are active.
    rejection_code: Code | None


class HmacKeys:
    def __init__(self, database: Database, signals: Signals, vault: Vault, clock: Clock) -> None:
        self._database = database
        self._signals = signals
        self._vault = vault
        # Keyed by the raw header bytes, so that requests with a cached key need not decode the id.
        self._cache: Cache[bytes, HmacKey] = Cache(signals, HMAC_KEYS_TOPIC, self._load)
        self.last_used = LastSeen(database, clock, "hmac_keys", "last_used_at")

    async def create(
        self,
        tx: Transaction,
        *,
        created_by: int | None = None,
        processor_id: int | None = None,
        terminal_id: int | None = None,
        partner_id: int | None = None,
    ) -> NewHmacKey:
        """Create a key for a partner, for a processor, or for one of the processor's terminals."""
        key = NewHmacKey(tx.new_id(), secrets.token_urlsafe(_RANDOM_BYTES))
        await insert_values(
            tx,
            "hmac_keys",
            id=key.id,
            processor_id=processor_id,
            terminal_id=terminal_id,
            partner_id=partner_id,
            secret=self._vault.seal(key.secret.encode(), build_vault_context(key.id)),
            created_at=tx.now(),
            created_by=created_by,
            request_scope="none",
        )
        return key

    async def delete(self, tx: Transaction, key_id: int, *, owner_id: int) -> bool:
        """Delete a key, and return whether the owner had such a key."""
        condition = "coalesce(processor_id, partner_id) = $3"
        if not await delete_row(tx, "hmac_keys", key_id, condition, owner_id):
            return False
        await self.publish_owner_change(tx)
        return True

    async def publish_owner_change(self, tx: Transaction) -> None:
        """Invalidate cached keys and terminals after a change to a key, its owner, or a terminal.

        Waits after the commit for every process to apply the change.
        """
        await self._signals.publish_and_wait(tx, HMAC_KEYS_TOPIC)

    async def list_page(self, owner_id: int, query: PageQuery) -> list[SigningKey]:
        """Return keys for a partner, or for a processor and its terminals, newest first."""
        conditions = PageConditions(query)
        conditions.where("(processor_id = {0} OR partner_id = {0})", owner_id)
        conditions.add("deleted_at IS NULL")
        rows = await conditions.fetch(
            self._database,
            f"""SELECT id, terminal_id,
                   (SELECT name FROM terminals WHERE id = terminal_id) AS terminal_name, created_at,
                   last_used_at, created_by,
                   {select_name("hmac_keys.created_by")} AS created_by_name
               FROM hmac_keys""",
        )
        return [SigningKey(**row) for row in rows]

    async def find(self, public_id: bytes, cost: RateLimitCost = NO_COST) -> HmacKey | None:
        return await self._cache.get(public_id, cost)

    async def _load(self, public_id: bytes) -> HmacKey | None:
        key_id = ids.decode(ids.KEY, public_id.decode("latin-1"))
        row = None if key_id is None else await self._database.fetchrow(_SELECT_KEY, key_id)
        if row is None:
            return None
        return HmacKey(
            secret=self._vault.open(row["secret"], build_vault_context(row["id"])),
            principal=_build_principal(row),
            partner_header=_get_partner_header(row),
            rejection_code=_get_rejection_code(row),
        )


def _build_principal(row: asyncpg.Record) -> Principal:
    scope = (
        _get_owner_id(row)
        if row["owner_scope"] is None
        else ids.encode(ids.KEY, row["owner_scope"])
    )
    former = [ids.encode(ids.KEY, key_id) for key_id in row["former_scopes"] or ()]
    public_id = ids.encode(ids.KEY, row["id"])
    return Principal(
        kind="processor" if row["partner_id"] is None else "partner",
        id=public_id,
        name=row["holder_name"],
        key_id=row["id"],
        processor_id=row["processor_id"],
        terminal_id=row["terminal_id"],
        partner_id=row["partner_id"],
        owner_scope=scope,
        lookup_scopes=tuple(
            sorted((scope, *former), key=lambda lookup_scope: lookup_scope != public_id)
        )
        if former
        else (),
    )


def _get_owner_id(row: asyncpg.Record) -> str:
    if row["partner_id"] is not None:
        return ids.encode(ids.PARTNER, row["partner_id"])
    if row["terminal_id"] is not None:
        return ids.encode(ids.TERMINAL, row["terminal_id"])
    return ids.encode(ids.PROCESSOR, row["processor_id"])


def _get_partner_header(row: asyncpg.Record) -> bytes | None:
    partner_id = row["partner_id"]
    return None if partner_id is None else ids.encode(ids.PARTNER, partner_id).encode()


def _get_rejection_code(row: asyncpg.Record) -> Code | None:
    if row["owner_status"] != "active":
        return Code.PROCESSOR_SUSPENDED if row["partner_id"] is None else Code.PARTNER_SUSPENDED
    if row["terminal_status"] == TerminalStatus.BLOCKED:
        return Code.TERMINAL_BLOCKED
    return None


def build_vault_context(key_id: int) -> bytes:
    return b"hmac_key %d" % key_id
