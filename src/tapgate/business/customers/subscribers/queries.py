"""SQL queries for subscribers.

Status, KYC level and balance are stored on the account row, with a copy of the name. The lock on
the account row also guards the subscriber row.
"""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Final

import asyncpg

from tapgate.auth.actors import Actor
from tapgate.auth.disclosure import Audience, Reader
from tapgate.auth.principals import Principal
from tapgate.business.customers.subscribers import phone_changes
from tapgate.business.customers.subscribers.model import Subscriber
from tapgate.business.customers.subscribers.restriction import (
    exclude_hidden,
    require_editable,
    require_subscriber_access,
)
from tapgate.ledger.accounts import lock_account
from tapgate.runtime.store.conditions import Conditions, PageConditions, start_name_page
from tapgate.runtime.store.database import Database
from tapgate.runtime.store.rows import insert_row, map_conflicts
from tapgate.runtime.store.transaction import Transaction
from tapgate_client import ids
from tapgate_client.errors import Code, invalid_field, require_found
from tapgate_client.schemas.pagination import INVALID_CURSOR, NameOrder, PageQuery
from tapgate_client.schemas.subscribers import KycStatus, SubscriberFilters

#: Fields of `Subscriber` that the row in `subscribers` does not have.
_JOINED_FIELDS: Final = {
    "kyc_level": "a.kyc_level",
    "status": "upper(a.status)",
    "status_reason": "a.status_reason",
    "balance": "a.balance",
    "held": "a.held",
    "currency": "a.currency",
    "cards_count": "(SELECT count(*) FROM cards WHERE subscriber_id = s.id)",
    "pin_locked_until": "(SELECT locked_until FROM pins WHERE holder_id = s.id)",
}
#: All other fields are columns with the same name.
_COLUMNS: Final = tuple(name for name in Subscriber.__struct_fields__ if name not in _JOINED_FIELDS)
_EXPRESSIONS: Final = {name: f"s.{name}" for name in _COLUMNS} | _JOINED_FIELDS
_SELECT: Final = f"""
    SELECT {", ".join(f"{expression} AS {name}" for name, expression in _EXPRESSIONS.items())}
    FROM subscribers s JOIN accounts a ON a.id = s.account_id"""

#: `id` and the columns that `save` updates, in the order of its parameters.
_MUTABLE_COLUMNS: Final = tuple(
    name for name in _COLUMNS if name not in ("account_id", "created_at")
)
_PARAMETERS: Final = {name: f"${number}" for number, name in enumerate(_MUTABLE_COLUMNS, 1)}
_UPDATE: Final = f"""
    UPDATE subscribers
    SET phone_number_changed_at = CASE WHEN phone_number = {_PARAMETERS["phone_number"]}
                                       THEN phone_number_changed_at
                                       ELSE {_PARAMETERS["updated_at"]} END,
        {", ".join(f"{name} = {value}" for name, value in _PARAMETERS.items() if name != "id")}
    WHERE id = {_PARAMETERS["id"]}"""

_SELECT_ID: Final = "SELECT s.id FROM subscribers s"
#: Index expressions for name prefixes.
_NAME_COLUMNS: Final = (
    "lower(s.first_name || ' ' || s.last_name)",
    "lower(s.last_name || ' ' || s.first_name)",
)

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MAX_MICROSECONDS: Final = (datetime.max.replace(tzinfo=UTC) - _EPOCH) // timedelta(microseconds=1)
#: Position in the KYC queue of all subscribers who are pending but do not wait for a decision.
_NOT_WAITING: Final = 0

_UNIQUE_VIOLATION_CODES = {
    "one_subscriber_per_phone": Code.DUPLICATE_PHONE,
    "one_subscriber_per_id_number": Code.DUPLICATE_ID_NUMBER,
}


async def get(reader: Reader, subscriber_id: int) -> Subscriber:
    row = await reader.fetchrow(f"{_SELECT} WHERE s.id = $1", subscriber_id)
    return Subscriber(**require_found(row, Code.SUBSCRIBER_NOT_FOUND))


async def get_accessible(
    reader: Reader, caller: Audience, now: datetime, subscriber_id: int
) -> Subscriber:
    """Return a subscriber that the caller may access, or raise `OTP_REQUIRED`."""
    subscriber = await get(reader, subscriber_id)
    await require_subscriber_access(
        reader, caller, now, subscriber_id, restricted=subscriber.restricted
    )
    return subscriber


async def find_id_by_phone(reader: Reader, phone_number: str) -> int | None:
    subscriber_id: int | None = await reader.fetchval(
        "SELECT id FROM subscribers WHERE phone_number = $1", phone_number
    )
    return subscriber_id


async def lock(tx: asyncpg.Connection, subscriber_id: int) -> Subscriber:
    """Lock a subscriber's account and return the subscriber.

    The lock serializes changes to the profile, status and PIN, and blocks all transactions of the
    wallet until the database transaction ends.
    """
    account_id = await tx.fetchval(
        "SELECT account_id FROM subscribers WHERE id = $1", subscriber_id
    )
    await lock_account(tx, require_found(account_id, Code.SUBSCRIBER_NOT_FOUND))
    # Read after locking: another database transaction may have changed the row before the lock was
    # granted.
    return await get(tx, subscriber_id)


async def lock_editable(tx: Transaction, actor: Actor, subscriber_id: int) -> Subscriber:
    """Lock a subscriber that the actor may change. The lock also serializes PIN attempts."""
    subscriber = await lock(tx, subscriber_id)
    await require_editable(tx, actor, subscriber)
    return subscriber


async def has_open_book_transfer(tx: Transaction, account_id: int) -> bool:
    """Return whether a transfer from the account to another book may still come back.

    The caller must hold the lock on the account.
    """
    exists: bool = await tx.fetchval(
        """SELECT EXISTS (
               SELECT FROM book_transfers b JOIN transactions t ON t.id = b.id
               WHERE b.status IN ('pending', 'stopped') AND t.from_account = $1)""",
        account_id,
    )
    return exists


async def get_phone_number_owned_since(database: Database, subscriber_id: int) -> datetime:
    since: datetime = await database.fetchval(
        "SELECT coalesce(phone_number_changed_at, created_at) FROM subscribers WHERE id = $1",
        subscriber_id,
    )
    return since


async def list_page(
    database: Database, filters: SubscriberFilters, caller: Principal, now: datetime
) -> list[Subscriber]:
    """Return a page of subscribers visible to the caller, plus one row if there are more."""
    conditions = await _start_page(database, filters, caller, now)
    conditions.where("s.kyc_status = {}", None if _is_queue(filters) else filters.kyc_status)
    conditions.where("s.phone_number = {}", filters.phone_number)
    if filters.replaced_phone_number is not None:
        replaced = await phone_changes.list_replaced(database, filters.replaced_phone_number, now)
        conditions.where("s.id = ANY ({}::bigint[])", replaced)
    conditions.where("a.status = {}", filters.status and filters.status.lower())
    conditions.where("a.kyc_level = {}", filters.kyc_level)
    conditions.search(filters.search, "s.search_text", id_column="s.id", prefix=ids.SUBSCRIBER)
    exclude_hidden(conditions, caller, now)
    return [Subscriber(**row) for row in await conditions.fetch(database, _SELECT)]


async def _start_page(
    database: Database, filters: SubscriberFilters, caller: Principal, now: datetime
) -> PageConditions:
    if filters.order == NameOrder.NAME:
        visible = Conditions()
        exclude_hidden(visible, caller, now)
        return await start_name_page(
            database, filters, "s.id", _NAME_COLUMNS[0], source="subscribers s", visible=visible
        )
    return QueueConditions(filters) if _is_queue(filters) else PageConditions(filters, "s.id")


def _is_queue(filters: SubscriberFilters) -> bool:
    """Return whether the list starts with the longest wait for a KYC decision."""
    return filters.kyc_status == KycStatus.PENDING and filters.order == NameOrder.NEWEST


async def search(
    database: Database,
    caller: Principal,
    now: datetime,
    *,
    text: str,
    name: str,
    phones: Sequence[str],
    words: str | None,
    limit: int,
) -> list[Subscriber]:
    """Return visible subscribers by document number, or by the start of a phone number or name.

    A name starts with the first or the last name, and must be in lowercase. If there are fewer than
    `limit`, further subscribers are found by parts of words, in no particular order: sorting them
    would read all that match, which can be a large part of the table.
    """
    conditions = Conditions()
    exclude_hidden(conditions, caller, now)
    columns = [("s.phone_number", phone) for phone in phones]
    columns += [(column, name) for column in _NAME_COLUMNS]
    branches = [
        f"{_SELECT_ID} WHERE s.id_number = {conditions.bind(text)} AND {conditions}",
        *(
            conditions.build_prefix_query(_SELECT_ID, column, prefix, limit)
            for column, prefix in columns
        ),
    ]
    query = " UNION ALL ".join(f"({branch})" for branch in branches)
    found = [row["id"] for row in await database.fetch(query, *conditions.values)]
    if words is not None and len(set(found)) < limit:
        conditions = Conditions()
        exclude_hidden(conditions, caller, now)
        conditions.search(words, "s.search_text")
        query = f"{_SELECT_ID} WHERE {conditions} LIMIT {limit}"
        found += [row["id"] for row in await database.fetch(query, *conditions.values)]
    numbers = list(dict.fromkeys(found))[:limit]
    rows = await database.fetch(f"{_SELECT} WHERE s.id = ANY ($1::bigint[])", numbers)
    return sorted(
        (Subscriber(**row) for row in rows), key=lambda subscriber: numbers.index(subscriber.id)
    )


class QueueConditions(PageConditions):
    """KYC queue conditions: longest-waiting subscribers first, subscribers who do not wait last."""

    def __init__(self, filters: PageQuery) -> None:
        super().__init__(filters, "s.id", order="s.kyc_pending_since, s.id")
        self.add("s.kyc_status = 'PENDING'")

    def _add_position(self, query: PageQuery) -> None:
        if not query.position:
            return
        if len(query.position) != 2:
            raise invalid_field("cursor", INVALID_CURSOR)
        microseconds, last_id = query.position
        if microseconds == _NOT_WAITING:
            self.add(f"s.kyc_pending_since IS NULL AND s.id > {self.bind(last_id)}")
        else:
            since = _EPOCH + timedelta(microseconds=min(microseconds, _MAX_MICROSECONDS))
            self.add(
                f"""(s.kyc_pending_since IS NULL OR
                     (s.kyc_pending_since, s.id) > ({self.bind(since)}, {self.bind(last_id)}))"""
            )


def get_position(filters: SubscriberFilters, subscriber: Subscriber) -> int | tuple[int, int]:
    """Return a subscriber's position in the list with these filters."""
    if not _is_queue(filters):
        return subscriber.id
    return get_queue_position(subscriber.kyc_pending_since, subscriber.id)


def get_queue_position(waiting_since: datetime | None, subscriber_id: int) -> tuple[int, int]:
    """Return a subscriber's position in the KYC queue."""
    if waiting_since is None:
        return _NOT_WAITING, subscriber_id
    return (waiting_since - _EPOCH) // timedelta(microseconds=1), subscriber_id


async def add(tx: Transaction, subscriber: Subscriber) -> None:
    """Insert a subscriber. The wallet's account must already be open."""
    with map_conflicts(_UNIQUE_VIOLATION_CODES):
        await insert_row(tx, "subscribers", subscriber, _COLUMNS)


async def save(tx: asyncpg.Connection, subscriber: Subscriber) -> None:
    """Store all mutable fields except money. The caller must hold the subscriber's lock."""
    with map_conflicts(_UNIQUE_VIOLATION_CODES):
        values = (getattr(subscriber, column) for column in _MUTABLE_COLUMNS)
        await tx.execute(_UPDATE, *values)
    await tx.execute(
        """UPDATE accounts
           SET holder_name = $2, public_name = $3, status = $4, status_reason = $5,
               kyc_level = $6, updated_at = $7
           WHERE id = $1""",
        subscriber.account_id,
        subscriber.name,
        subscriber.public_name,
        subscriber.status.lower(),
        subscriber.status_reason,
        subscriber.kyc_level,
        subscriber.updated_at,
    )


async def delete_statement_links(tx: asyncpg.Connection, subscriber_id: int) -> None:
    """Delete a subscriber's statement files.

    Statement links work without credentials. The caller must already have saved the change that
    ends them, so that a concurrent `lock_restriction` waits for this database transaction.
    """
    await tx.execute("DELETE FROM statements WHERE subscriber_id = $1", subscriber_id)


async def lock_restriction(tx: asyncpg.Connection, subscriber_id: int) -> bool:
    """Lock a subscriber's row; return whether the subscriber is restricted.

    The lock is exclusive: with a shared lock, two database transactions that both upgrade to a
    stronger lock on the row would deadlock.
    """
    restricted: bool = await tx.fetchval(
        "SELECT restricted FROM subscribers WHERE id = $1 FOR NO KEY UPDATE", subscriber_id
    )
    return restricted
