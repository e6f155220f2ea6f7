"""Saved replies: texts that support staff insert into replies, in one order for all."""

from datetime import datetime
from typing import Final

import msgspec
from msgspec.structs import replace

from tapgate.auth.actors import Actor
from tapgate.core.records import build_record, get_given_fields, require_record
from tapgate.events.audit.trail import AuditTrail, diff_records
from tapgate.runtime.store.database import Database
from tapgate.runtime.store.rows import insert_row, update_row
from tapgate.runtime.store.transaction import Transaction
from tapgate_client import ids
from tapgate_client.errors import ApiError, Code, invalid_field
from tapgate_client.schemas.saved_replies import (
    MAX_SAVED_REPLIES,
    NewSavedReply,
    SavedReplyRecord,
    SavedReplyTexts,
    SavedReplyUpdate,
)

_SELECT: Final = "SELECT id, label, texts, position, created_at, updated_at FROM saved_replies"
_trail = AuditTrail("saved_reply")


class SavedReply(msgspec.Struct, frozen=True, kw_only=True):
    id: int
    label: str
    texts: SavedReplyTexts
    position: int
    created_at: datetime
    updated_at: datetime


def to_record(reply: SavedReply) -> SavedReplyRecord:
    return build_record(SavedReplyRecord, reply, id=ids.encode(ids.SAVED_REPLY, reply.id))


async def list_all(reader: Database | Transaction) -> list[SavedReply]:
    rows = await reader.fetch(f"{_SELECT} ORDER BY position, id")
    return [msgspec.convert(dict(row), SavedReply) for row in rows]


async def get(reader: Database | Transaction, reply_id: int) -> SavedReply:
    row = await reader.fetchrow(f"{_SELECT} WHERE id = $1", reply_id)
    return msgspec.convert(dict(require_record(ids.SAVED_REPLY, row)), SavedReply)


async def create(tx: Transaction, actor: Actor, new: NewSavedReply) -> SavedReply:
    """Create a saved reply, at the end unless it has a position."""
    await _lock(tx)
    count = len(await list_all(tx))
    if count >= MAX_SAVED_REPLIES:
        raise ApiError(
            Code.VALIDATION_FAILED,
            f"The limit of {MAX_SAVED_REPLIES} saved replies is reached. Delete one first.",
        )
    reply = SavedReply(
        id=tx.new_id(),
        label=new.label,
        texts=new.texts,
        position=min(new.position or MAX_SAVED_REPLIES, count + 1),
        created_at=tx.now(),
        updated_at=tx.now(),
    )
    await _require_unused_label(tx, reply)
    await insert_row(tx, "saved_replies", reply, SavedReply.__struct_fields__)
    await _renumber(tx, reply)
    await _record_change(tx, actor, "created", None, reply)
    return reply


async def update(
    tx: Transaction, actor: Actor, reply_id: int, update: SavedReplyUpdate
) -> SavedReply:
    """Update a saved reply. A new position moves the replies between the two positions."""
    await _lock(tx)
    before = await get(tx, reply_id)
    after = replace(before, **get_given_fields(update))
    after = replace(after, position=min(after.position, len(await list_all(tx))))
    if after == before:
        return before
    after = replace(after, updated_at=tx.now())
    await _require_unused_label(tx, after)
    await update_row(tx, "saved_replies", after, ("label", "texts", "updated_at"))
    await _renumber(tx, after)
    await _record_change(tx, actor, "updated", before, after)
    return after


async def delete(tx: Transaction, actor: Actor, reply_id: int) -> None:
    await _lock(tx)
    reply = await get(tx, reply_id)
    await tx.execute("DELETE FROM saved_replies WHERE id = $1", reply_id)
    await _renumber(tx)
    await _record_change(tx, actor, "deleted", reply, None)


async def _lock(tx: Transaction) -> None:
    """Lock the table, so that no other transaction changes the labels, the order or the count."""
    await tx.execute("LOCK TABLE saved_replies IN SHARE ROW EXCLUSIVE MODE")


async def _require_unused_label(tx: Transaction, reply: SavedReply) -> None:
    is_used = await tx.fetchval(
        "SELECT EXISTS (SELECT FROM saved_replies WHERE lower(label) = lower($1) AND id <> $2)",
        reply.label,
        reply.id,
    )
    if is_used:
        raise invalid_field(
            "label", "is already used by another saved reply", Code.DUPLICATE_REFERENCE
        )


async def _renumber(tx: Transaction, placed: SavedReply | None = None) -> None:
    """Number the replies from 1 without gaps, with one of them at its new position."""
    order = [reply.id for reply in await list_all(tx) if placed is None or reply.id != placed.id]
    if placed is not None:
        order.insert(placed.position - 1, placed.id)
    await tx.execute(
        """UPDATE saved_replies reply SET position = placed.position
           FROM unnest($1::bigint[]) WITH ORDINALITY AS placed (id, position)
           WHERE reply.id = placed.id AND reply.position <> placed.position""",
        order,
    )


async def _record_change(
    tx: Transaction,
    actor: Actor,
    action: str,
    before: SavedReply | None,
    after: SavedReply | None,
) -> None:
    reply = after or before
    assert reply is not None
    old, new = (item and to_record(item) for item in (before, after))
    await _trail.record(tx, actor, to_record(reply).id, action, changes=diff_records(old, new))
