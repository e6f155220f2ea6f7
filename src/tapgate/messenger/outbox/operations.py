"""Enqueuing of messages in the outbox."""

import hashlib
import re
from collections.abc import Callable
from datetime import datetime

import asyncpg

from tapgate.messenger.model import OutgoingMessage
from tapgate.messenger.outbox.sealing import seal_message
from tapgate.vault import Vault

_KEY_PATTERN = re.compile(r"[!-~]{1,200}", re.ASCII)


async def enqueue(
    tx: asyncpg.Connection,
    vault: Vault,
    *,
    new_id: Callable[[], int],
    now: datetime,
    address: str,
    message: OutgoingMessage,
    key: str | None = None,
) -> tuple[int, bool]:
    """Enqueue a message that is sent after `tx` commits; return its ID and whether it is new.

    If the outbox has a message with the same idempotency key, nothing is enqueued, and the ID of
    that message is returned.
    """
    key = None if key is None else _to_storable_key(key)
    while True:
        row_id = new_id()
        if await _insert(tx, row_id, address, seal_message(vault, row_id, message), key, now):
            return row_id, True
        # None if the first message was deleted between the two statements.
        first = await tx.fetchval("SELECT id FROM messenger.outbox WHERE key = $1", key)
        if first is not None:
            return first, False


async def _insert(
    tx: asyncpg.Connection,
    row_id: int,
    address: str,
    content: bytes,
    key: str | None,
    now: datetime,
) -> bool:
    inserted = await tx.fetchval(
        """INSERT INTO messenger.outbox (id, address, content, key, next_attempt_at, created_at)
           VALUES ($1, $2, $3, $4, $5, $5)
           ON CONFLICT (key) DO NOTHING RETURNING id""",
        row_id,
        address,
        content,
        key,
        now,
    )
    return inserted is not None


def _to_storable_key(key: str) -> str:
    """Return the key, or its hash if it is too long or not printable ASCII without spaces."""
    if _KEY_PATTERN.fullmatch(key):
        return key
    return hashlib.sha256(key.encode(errors="surrogatepass")).hexdigest()
