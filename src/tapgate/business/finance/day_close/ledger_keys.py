"""Ed25519 keys that sign closed days. The vault seals the private keys."""

import base64
import hashlib
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from tapgate.auth.actors import Actor
from tapgate.core.vault import Vault
from tapgate.events.audit.trail import AuditTrail
from tapgate.runtime.store.transaction import Transaction
from tapgate_client.clock import format_rfc3339
from tapgate_client.schemas.day_close import LedgerKey

_trail = AuditTrail("ledger_key")


def build_vault_context(key_id: str) -> bytes:
    return f"ledger key {key_id}".encode()


async def load_current_key(
    tx: Transaction, vault: Vault, actor: Actor
) -> tuple[str, Ed25519PrivateKey]:
    """Return the ID and the private key that sign now. The first key is created here."""
    await _lock_keys(tx)
    row = await tx.fetchrow("SELECT key_id, private_key FROM ledger_keys WHERE retired_at IS NULL")
    if row is None:
        return await _create(tx, vault, actor)
    private = vault.open(row["private_key"], build_vault_context(row["key_id"]))
    return row["key_id"], Ed25519PrivateKey.from_private_bytes(private)


async def rotate_key(tx: Transaction, vault: Vault, actor: Actor) -> str:
    """Retire the current key and create another; return the new key ID.

    Days that the retired key signed stay verifiable, because its public key is still published.
    """
    await _lock_keys(tx)
    retired = await tx.fetchval(
        "UPDATE ledger_keys SET retired_at = $1 WHERE retired_at IS NULL RETURNING key_id",
        tx.now(),
    )
    if retired is not None:
        await _trail.record(tx, actor, retired, "retired")
    key_id, _ = await _create(tx, vault, actor)
    return key_id


async def _lock_keys(tx: Transaction) -> None:
    """Keep other sessions from creating or retiring a key, so that one key is current."""
    await tx.execute("LOCK TABLE ledger_keys IN SHARE ROW EXCLUSIVE MODE")


async def _create(tx: Transaction, vault: Vault, actor: Actor) -> tuple[str, Ed25519PrivateKey]:
    private = Ed25519PrivateKey.generate()
    public = private.public_key().public_bytes_raw()
    key_id = hashlib.sha256(public).hexdigest()[:16]
    await tx.execute(
        """INSERT INTO ledger_keys (key_id, public_key, private_key, created_at)
           VALUES ($1, $2, $3, $4)""",
        key_id,
        public,
        vault.seal(private.private_bytes_raw(), build_vault_context(key_id)),
        tx.now(),
    )
    await _trail.record(tx, actor, key_id, "created")
    return key_id, private


async def list_public_keys(reader: Any) -> list[LedgerKey]:
    rows = await reader.fetch(
        """SELECT key_id, public_key, created_at, retired_at FROM ledger_keys
           ORDER BY created_at, retired_at, key_id"""
    )
    return [
        LedgerKey(
            key_id=row["key_id"],
            public_key=base64.b64encode(row["public_key"]).decode(),
            created_at=format_rfc3339(row["created_at"]),
            **(
                {}
                if row["retired_at"] is None
                else {"retired_at": format_rfc3339(row["retired_at"])}
            ),
        )
        for row in rows
    ]
