"""SQL queries for cards. The lock on a wallet's account also guards the rows of its cards."""

from collections.abc import Collection, Iterable
from datetime import datetime

import asyncpg

from tapgate.auth.disclosure import Audience, Reader
from tapgate.auth.principals import Principal
from tapgate.business.customers.cards.model import Card, to_record
from tapgate.business.customers.cards.uids import parse_uid
from tapgate.business.customers.subscribers.restriction import (
    exclude_hidden,
    require_subscriber_access,
)
from tapgate.http.api.services import Services
from tapgate.ledger.accounts import lock_account
from tapgate.ledger.card_proofs.proof_verifier import format_uid
from tapgate.runtime.store.conditions import Conditions, PageConditions
from tapgate.runtime.store.database import Database
from tapgate.runtime.store.rows import update_row
from tapgate.runtime.store.transaction import Transaction
from tapgate_client import ids
from tapgate_client.errors import Code, require_found, unavailable
from tapgate_client.schemas.cards import CardFilters, CardRecord, CardStatus

_SELECT = """
    SELECT c.id, c.serial, c.uid, c.type, c.status, c.status_reason, c.subscriber_id, c.account_id,
           c.pin_holder_id, c.holder_name AS child_name,
           c.relationship AS child_relationship, c.daily_limit,
           c.usage_day, c.day_spent, c.expires_at, c.linked_at, c.created_at, c.updated_at,
           c.authenticity, c.keyset_id, c.key_version, c.last_counter, c.pending_keyset_id,
           c.pending_key_version, c.master_keyset_id,
           -- Keys that an earlier version issued are as old as the last change.
           CASE WHEN c.pending_keyset_id IS NOT NULL
                THEN coalesce(c.pending_since, c.updated_at) END AS pending_since,
           coalesce(k.status = 'retired', false) AS has_retired_keys,
           a.holder_name AS subscriber_name, coalesce(s.restricted, false) AS restricted
    FROM cards c LEFT JOIN subscribers s ON s.id = c.subscriber_id
                 LEFT JOIN accounts a ON a.id = c.account_id
                 LEFT JOIN card_keysets k ON k.id = c.keyset_id"""

_MUTABLE_COLUMNS = (
    "type", "status", "status_reason", "subscriber_id", "account_id", "pin_holder_id",
    "daily_limit", "linked_at", "updated_at",
)  # fmt: skip
_KEY_COLUMNS = (
    "authenticity", "keyset_id", "key_version", "last_counter", "pending_keyset_id",
    "pending_key_version", "pending_since", "master_keyset_id", "updated_at",
)  # fmt: skip


async def get(reader: Reader, serial: str) -> Card:
    return require_found(await find_by_serial(reader, serial), Code.CARD_NOT_FOUND)


async def get_visible(reader: Reader, serial: str, caller: Audience, now: datetime) -> Card:
    """Return a card, or raise `OTP_REQUIRED` if its subscriber is hidden from the caller."""
    card = await get(reader, serial)
    await require_card_access(reader, card, caller, now)
    return card


async def require_card_access(reader: Reader, card: Card, caller: Audience, now: datetime) -> None:
    if card.subscriber_id is not None:
        await require_subscriber_access(
            reader, caller, now, card.subscriber_id, restricted=card.restricted
        )


async def find_by_serial(reader: Reader, serial: str) -> Card | None:
    row = await reader.fetchrow(f"{_SELECT} WHERE c.serial = $1", serial)
    return None if row is None else Card(**row)


async def load_records(services: Services, card_ids: Collection[int]) -> dict[int, CardRecord]:
    """Return card API records by id, for event data."""
    rows = await services.database.fetch(
        f"{_SELECT} WHERE c.id = ANY ($1::bigint[])", list(card_ids)
    )
    now, settings = services.clock(), services.settings
    return {row["id"]: to_record(Card(**row), now, settings) for row in rows}


async def find(reader: Reader, identifier: str) -> Card | None:
    """Return the card with this serial or UID, or None.

    The UID may be in any notation. A serial takes precedence over a UID.
    """
    row = await reader.fetchrow(
        f"""{_SELECT} WHERE c.serial = $1 OR c.uid = $2
            ORDER BY c.serial = $1 DESC LIMIT 1""",
        identifier,
        parse_uid(identifier),
    )
    return None if row is None else Card(**row)


async def exists_with_uid(tx: Transaction, uids: Iterable[bytes]) -> bool:
    """Return whether a card has one of these UIDs."""
    exists: bool = await tx.fetchval(
        "SELECT EXISTS (SELECT FROM cards WHERE uid = ANY ($1::text[]))",
        [format_uid(uid) for uid in uids],
    )
    return exists


async def lock(tx: asyncpg.Connection, serial: str) -> Card:
    """Lock a card's account and return the card. Payments with the card wait for the lock.

    An unlinked card has no account to lock. Only linking changes an unlinked card.
    """
    card = await get(tx, serial)
    if card.account_id is None:
        return card
    await lock_account(tx, card.account_id)
    return await get(tx, serial)


async def lock_for_linking(tx: asyncpg.Connection, serial: str) -> Card:
    """Lock a card's row, so that concurrent attempts to link it are serialized.

    To keep the lock order, the caller must already hold the lock on the wallet's account.
    """
    await tx.execute("SELECT FROM cards WHERE serial = $1 FOR NO KEY UPDATE", serial)
    return await get(tx, serial)


async def lock_with_row(tx: asyncpg.Connection, serial: str) -> Card:
    """Lock a card's account and its row, because an unlinked card has no account to lock.

    The ledger does not lock the rows of unlinked cards, which no payment can be made with.
    """
    before = await lock(tx, serial)
    card = await lock_for_linking(tx, serial)
    if card.account_id != before.account_id:
        raise unavailable("The card is being linked. Try again shortly.")
    return card


async def save_keys(tx: Transaction, card: Card) -> None:
    """Store a card chip's keys. The caller must hold the locks of `lock_with_row`."""
    await update_row(tx, "cards", card, _KEY_COLUMNS)


async def count_child_cards(tx: asyncpg.Connection, subscriber_id: int, now: datetime) -> int:
    """Count a subscriber's child cards that are neither lost nor expired.

    The caller must hold the subscriber's lock.
    """
    count: int = await tx.fetchval(
        """SELECT count(*) FROM cards
           WHERE subscriber_id = $1 AND type = 'CHILD' AND status <> 'LOST'
             AND (expires_at IS NULL OR expires_at > $2)""",
        subscriber_id,
        now,
    )
    return count


async def list_page(
    database: Database, filters: CardFilters, caller: Principal, now: datetime
) -> list[Card]:
    """Return a page of matching cards visible to the caller, plus one row if there are more."""
    conditions = PageConditions(filters, "c.id")
    conditions.where_id("c.subscriber_id", ids.SUBSCRIBER, filters.subscriber_id)
    if filters.status is not None:
        _filter_by_status(conditions, filters.status, now)
    conditions.where("c.type = {}", filters.type)
    conditions.search(
        filters.search, "card_words(c.serial, c.uid)", fold="upper", spellings=_list_spellings
    )
    exclude_hidden(conditions, caller, now)
    return [Card(**row) for row in await conditions.fetch(database, _SELECT)]


async def list_by_serial_prefix(
    database: Database, caller: Principal, now: datetime, prefix: str, limit: int
) -> list[Card]:
    """Return visible cards whose serial starts with the prefix, ignoring case."""
    conditions = Conditions()
    exclude_hidden(conditions, caller, now)
    query = conditions.build_prefix_query(_SELECT, "upper(c.serial)", prefix.upper(), limit)
    return [Card(**row) for row in await database.fetch(query, *conditions.values)]


def _filter_by_status(conditions: PageConditions, status: str, now: datetime) -> None:
    """Filter by status, with the same rules as `Card.status_at`."""
    if status == CardStatus.EXPIRED:
        conditions.where("c.status <> 'LOST' AND c.expires_at <= {}", now)
        return
    conditions.where("c.status = {}", status)
    if status != CardStatus.LOST:
        conditions.where("(c.expires_at IS NULL OR c.expires_at > {})", now)


def _list_spellings(word: str) -> Iterable[str]:
    """Return the word as typed, for serials, and without separators, for UIDs in any notation."""
    return dict.fromkeys((word, word.replace(":", "").replace("-", "")))


async def save(tx: Transaction, card: Card) -> None:
    """Store all mutable fields except spending. The caller must hold the card's lock."""
    await update_row(
        tx,
        "cards",
        card,
        _MUTABLE_COLUMNS,
        holder_name=card.child_name,
        relationship=card.child_relationship,
    )
