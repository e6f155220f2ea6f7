"""Keysets: issuer keys for cards that sign their taps."""

from collections.abc import Collection
from datetime import datetime
from typing import Final, Literal

import msgspec

from tapgate.auth.actors import Actor
from tapgate.core.records import build_record
from tapgate.core.vault import Vault
from tapgate.events.audit.trail import AuditTrail, diff_records
from tapgate.ledger.card_proofs.issuer_keys import IssuerKeys, generate_master_key
from tapgate.ledger.card_proofs.proof_verifier import KEYSETS_CHANGED
from tapgate.runtime.store.conditions import PageConditions
from tapgate.runtime.store.database import Database
from tapgate.runtime.store.rows import insert_row
from tapgate.runtime.store.signals import Signals
from tapgate.runtime.store.transaction import Transaction
from tapgate_client import ids
from tapgate_client.errors import ApiError, Code, invalid_field, require_found
from tapgate_client.schemas.card_proofs import KeysetRecord, KeysetStatus, NewKeyset
from tapgate_client.schemas.pagination import PageQuery

_trail = AuditTrail("keyset")

_SELECT: Final = """
    SELECT id, name, version, kcv, keys, master_key, status, created_at FROM card_keysets"""
#: Advisory lock for determining a name's next version.
_VERSION_LOCK_KEY: Final = 0x6B_6579_7365_7473  # "keysets" in ASCII


class Keyset(msgspec.Struct, frozen=True, kw_only=True):
    id: int
    name: str
    version: int
    kcv: str
    keys: bytes  # sealed
    #: Sealed. None for a keyset from an earlier release, until a card is personalized with it.
    master_key: bytes | None
    status: KeysetStatus
    created_at: datetime

    def require_active(self) -> None:
        if self.status != KeysetStatus.ACTIVE:
            raise ApiError(Code.KEYSET_RETIRED)


def to_record(keyset: Keyset, cards: int = 0) -> KeysetRecord:
    """Return a keyset's record, with the number of cards that have its keys."""
    return build_record(
        KeysetRecord, keyset, id=ids.encode(ids.CARD_KEYSET, keyset.id), cards=cards
    )


async def create(
    tx: Transaction, actor: Actor, new: NewKeyset, *, vault: Vault, signals: Signals
) -> Keyset:
    """Create a keyset. Further keysets with the same name are its next versions."""
    keyset_id = tx.new_id()
    keys = IssuerKeys.create(new.meta_read_key, new.file_read_key)
    await tx.execute("SELECT pg_advisory_xact_lock($1)", _VERSION_LOCK_KEY)
    keyset = Keyset(
        id=keyset_id,
        name=new.name,
        version=await tx.fetchval(
            "SELECT coalesce(max(version), 0) + 1 FROM card_keysets WHERE name = $1", new.name
        ),
        kcv=keys.compute_kcv(),
        keys=keys.seal(vault, keyset_id),
        master_key=generate_master_key(vault, keyset_id),
        status=KeysetStatus.ACTIVE,
        created_at=tx.now(),
    )
    columns = Keyset.__struct_fields__
    await insert_row(tx, "card_keysets", keyset, columns, updated_at=keyset.created_at)
    record = to_record(keyset)
    await _trail.record(tx, actor, record.id, "created", changes=diff_records(None, record))
    await signals.publish_and_wait(tx, KEYSETS_CHANGED, record.id)
    return keyset


async def retire(
    tx: Transaction,
    actor: Actor,
    keyset_id: int,
    *,
    confirmed_cards: int | None,
    signals: Signals,
) -> KeysetRecord:
    """Retire a keyset. From then on, card proofs with its keys are rejected.

    `confirmed_cards` must be the number of its cards, if it is given.
    """
    before = await get(tx, keyset_id, lock="FOR UPDATE")
    before.require_active()
    cards = (await count_cards(tx, [keyset_id]))[keyset_id]
    if confirmed_cards not in (None, cards):
        raise invalid_field("cards", f"must be {cards}, the number of cards with these keys")
    after = msgspec.structs.replace(before, status=KeysetStatus.RETIRED)
    await tx.execute(
        "UPDATE card_keysets SET status = $2, updated_at = $3 WHERE id = $1",
        keyset_id,
        after.status,
        tx.now(),
    )
    record = to_record(after, cards)
    await _trail.record_change(tx, actor, record.id, "retired", to_record(before, cards), record)
    await signals.publish_and_wait(tx, KEYSETS_CHANGED, record.id)
    return record


async def lock_for_use(tx: Transaction, keyset_id: int | None, *, vault: Vault) -> Keyset:
    """Return a keyset with a master key. It cannot be retired before the transaction ends."""
    keyset = await get(tx, keyset_id)
    if keyset.master_key is None:
        await tx.execute(
            "UPDATE card_keysets SET master_key = $2 WHERE id = $1 AND master_key IS NULL",
            keyset.id,
            generate_master_key(vault, keyset.id),
        )
    return await get(tx, keyset_id, lock="FOR SHARE")


async def get(
    reader: Database | Transaction,
    keyset_id: int | None,
    *,
    lock: Literal["", "FOR SHARE", "FOR UPDATE"] = "",
) -> Keyset:
    row = await reader.fetchrow(f"{_SELECT} WHERE id = $1 {lock}", keyset_id)
    return Keyset(**require_found(row, Code.KEYSET_NOT_FOUND))


async def count_cards(
    reader: Database | Transaction, keyset_ids: Collection[int]
) -> dict[int, int]:
    """Return the number of cards with the keys of each keyset."""
    rows = await reader.fetch(
        "SELECT keyset_id, count(*) FROM cards WHERE keyset_id = ANY ($1::bigint[]) GROUP BY 1",
        keyset_ids,
    )
    return dict.fromkeys(keyset_ids, 0) | dict(rows)


async def list_page(database: Database, query: PageQuery) -> list[Keyset]:
    return [Keyset(**row) for row in await PageConditions(query).fetch(database, _SELECT)]


async def lock_active(tx: Transaction) -> dict[str, int]:
    """Return the IDs of active keysets by public ID and by name.

    A name refers to its newest active version. None of them can be retired before the transaction
    ends.
    """
    rows = await tx.fetch(
        "SELECT id, name FROM card_keysets WHERE status = $1 ORDER BY version FOR SHARE",
        KeysetStatus.ACTIVE,
    )
    by_name = {row["name"]: row["id"] for row in rows}
    return by_name | {ids.encode(ids.CARD_KEYSET, row["id"]): row["id"] for row in rows}
