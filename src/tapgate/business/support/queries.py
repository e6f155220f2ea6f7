"""SQL queries for support requests. Texts are sealed by the vault, bound to their row."""

from collections import defaultdict
from collections.abc import Collection
from datetime import datetime
from typing import Final

from tapgate.auth.disclosure import Audience, build_hidden_condition
from tapgate.auth.owners import SUPPORT_REQUESTS, Owner, OwnerView, limit_to_owner, parse_owner
from tapgate.business.support.model import ReceivedMessage, SupportMessage, SupportRequest
from tapgate.core.vault import Vault
from tapgate.runtime.store.conditions import PageConditions
from tapgate.runtime.store.database import Database
from tapgate.runtime.store.transaction import Transaction
from tapgate_client import ids
from tapgate_client.errors import Code, require_found
from tapgate_client.schemas.support import (
    MAX_COUNTED_REQUESTS,
    MAX_MESSAGES,
    SupportPriority,
    SupportRequestFilters,
)

_SELECT: Final = """SELECT r.id, r.subscriber_id,
    (SELECT first_name || ' ' || last_name FROM subscribers WHERE id = r.subscriber_id)
        AS subscriber_name,
    r.phone_number, r.owner_type, r.owner_id AS owner,
    (SELECT holder_name FROM accounts WHERE accounts.owner_id = r.owner_id LIMIT 1) AS owner_name,
    coalesce((SELECT language FROM subscribers WHERE id = r.subscriber_id),
             (SELECT language FROM admins WHERE id = r.opened_by), 'en') AS language,
    r.about, r.status, r.priority, r.assignee,
    (SELECT name FROM admins WHERE admins.id = r.assignee) AS assignee_name,
    r.created_at, r.updated_at FROM support_requests r"""


async def get(
    reader: Database | Transaction, request_id: int, *, for_update: bool = False
) -> SupportRequest:
    lock = "FOR UPDATE OF r" if for_update else ""
    row = await reader.fetchrow(f"{_SELECT} WHERE r.id = $1 {lock}", request_id)
    return SupportRequest(**require_found(row, Code.REQUEST_NOT_FOUND))


async def find_unclosed(tx: Transaction, phone_number: str) -> SupportRequest | None:
    """Return and lock the phone's request that is not closed, or None."""
    row = await tx.fetchrow(
        f"{_SELECT} WHERE r.phone_number = $1 AND r.status <> 'closed' FOR UPDATE OF r",
        phone_number,
    )
    return None if row is None else SupportRequest(**row)


async def find_received(
    tx: Transaction, phone_number: str, message_id: str | None
) -> ReceivedMessage | None:
    """Return the phone's message with this ID in any of its requests, or None."""
    if message_id is None:
        return None
    row = await tx.fetchrow(
        """SELECT m.request_id, m.number FROM support_messages m
           JOIN support_requests r ON r.id = m.request_id
           WHERE r.phone_number = $1 AND m.message_id = $2""",
        phone_number,
        message_id,
    )
    return None if row is None else ReceivedMessage(**row)


async def add(tx: Transaction, request_id: int, phone_number: str) -> bool:
    """Insert a request, unless the phone has one that is not closed; return whether it is new."""
    inserted = await tx.fetchval(
        """INSERT INTO support_requests (id, phone_number, subscriber_id, created_at, updated_at)
           VALUES ($1, $2, (SELECT id FROM subscribers WHERE phone_number = $2), $3, $3)
           ON CONFLICT (phone_number) WHERE status <> 'closed' DO NOTHING RETURNING true""",
        request_id,
        phone_number,
        tx.now(),
    )
    return inserted is not None


async def add_of_owner(
    tx: Transaction, request_id: int, owner: Owner, opened_by: int, about: str | None
) -> None:
    """Insert a request of an owner's user."""
    await tx.execute(
        """INSERT INTO support_requests
               (id, owner_type, owner_id, opened_by, about, created_at, updated_at)
           VALUES ($1, $2, $3, $4, $5, $6, $6)""",
        request_id,
        owner.type,
        owner.id,
        opened_by,
        about,
        tx.now(),
    )


async def count_unclosed(tx: Transaction, owner: Owner) -> int:
    """Return the number of an owner's requests that are not closed, and lock the owner's requests.

    Concurrent requests of an owner wait for each other, so they cannot exceed a limit.
    """
    await tx.execute(
        "SELECT pg_advisory_xact_lock(hashtextextended('support requests', $1))", owner.id
    )
    count: int = await tx.fetchval(
        "SELECT count(*) FROM support_requests WHERE owner_id = $1 AND status <> 'closed'", owner.id
    )
    return count


async def make_urgent(tx: Transaction, request_id: int, subscriber_id: int) -> None:
    await tx.execute(
        "UPDATE support_requests SET priority = 'urgent', subscriber_id = $2 WHERE id = $1",
        request_id,
        subscriber_id,
    )


async def save(tx: Transaction, request: SupportRequest) -> None:
    """Store the status and the assignee. The caller must hold the lock on the request.

    A customer who has registered since the request was opened becomes its subscriber.
    """
    await tx.execute(
        """UPDATE support_requests r SET status = $2, assignee = $3, updated_at = $4,
               subscriber_id = coalesce(subscriber_id, (
                   SELECT s.id FROM subscribers s WHERE s.phone_number = r.phone_number))
           WHERE id = $1""",
        request.id,
        request.status,
        request.assignee,
        request.updated_at,
    )


async def list_page(
    database: Database,
    filters: SupportRequestFilters,
    audience: Audience,
    now: datetime,
    view: OwnerView | None,
) -> list[SupportRequest]:
    """Return a page of matching requests, plus one row if there are more."""
    conditions = PageConditions(filters, "r.id")
    limit_to_owner(conditions, view, SUPPORT_REQUESTS)
    if filters.owner_id is not None:
        owner = parse_owner(filters.owner_id)
        conditions.where("r.owner_id = {}", 0 if owner is None else owner.id)
    conditions.where_word("r.status", filters.status)
    conditions.where_assignee("r.assignee", filters.assignee)
    conditions.where_id("r.subscriber_id", ids.SUBSCRIBER, filters.subscriber_id)
    if filters.phone_number is not None:
        conditions.where("r.phone_number = {}", filters.phone_number)
        # A match would reveal the phone number of a restricted subscriber.
        hidden = build_hidden_condition(conditions, audience, now) or "false"
        conditions.add(
            f"""NOT EXISTS (SELECT FROM subscribers s
                WHERE (s.id = r.subscriber_id OR s.phone_number = r.phone_number) AND {hidden})"""
        )
    return [SupportRequest(**row) for row in await conditions.fetch(database, _SELECT)]


async def count_open(database: Database) -> int:
    """Return the number of open requests, at most `MAX_COUNTED_REQUESTS`."""
    count: int = await database.fetchval(
        """SELECT count(*) FROM (
               SELECT FROM support_requests WHERE status = 'open' LIMIT $1) AS counted""",
        MAX_COUNTED_REQUESTS,
    )
    return count


async def add_message(
    tx: Transaction,
    vault: Vault,
    request_id: int,
    number: int,
    sender: str,
    text: str,
    *,
    message_id: str | None = None,
) -> None:
    """Add a message. `number` is its position. The caller must hold the lock on the request."""
    await tx.execute(
        """INSERT INTO support_messages (request_id, number, sender, sealed, created_at,
               message_id)
           VALUES ($1, $2, $3, $4, $5, $6)""",
        request_id,
        number,
        sender,
        vault.seal(text.encode(), get_seal_context(request_id, number)),
        tx.now(),
        message_id,
    )


async def count_messages(tx: Transaction, request_id: int, sender: str) -> tuple[int, int]:
    """Return the number of messages in the request, and of those from the sender."""
    total, from_sender = await tx.fetchrow(
        """SELECT count(*), count(*) FILTER (WHERE sender = $2)
           FROM support_messages WHERE request_id = $1""",
        request_id,
        sender,
    )
    return total, from_sender


async def load_messages(
    reader: Database | Transaction,
    vault: Vault,
    request_ids: Collection[int],
    limit: int = 2 * MAX_MESSAGES,
) -> dict[int, list[SupportMessage]]:
    """Return the latest messages of each request, oldest first, by request ID."""
    rows = await reader.fetch(
        """SELECT message.* FROM unnest($1::bigint[]) AS request (id), LATERAL (
               SELECT request_id, number, sender, sealed, created_at FROM support_messages
               WHERE request_id = request.id ORDER BY number DESC LIMIT $2) AS message
           ORDER BY message.number""",
        list(request_ids),
        limit,
    )
    messages = defaultdict[int, list[SupportMessage]](list)
    for row in rows:
        context = get_seal_context(row["request_id"], row["number"])
        text = vault.open(row["sealed"], context).decode()
        messages[row["request_id"]].append(
            SupportMessage(sender=row["sender"], text=text, created_at=row["created_at"])
        )
    return messages


async def has_lost_number(tx: Transaction, request: SupportRequest) -> bool:
    """Return whether a request's subscriber now has another phone number.

    Whoever objects to a phone number change writes from the replaced number, so an urgent request
    keeps its number.
    """
    if request.priority == SupportPriority.URGENT:
        return False
    number = await tx.fetchval(
        "SELECT phone_number FROM subscribers WHERE id = $1", request.subscriber_id
    )
    return number not in (None, request.phone_number)


async def get_recipient(tx: Transaction, request: SupportRequest) -> tuple[str, str] | None:
    """Return the customer's current phone number and language; None for an owner's user.

    An unregistered customer's language is English. Replies about a disputed phone number change go
    to the number that objects.
    """
    if request.phone_number is None:
        return None
    if request.priority == SupportPriority.URGENT:
        language = await tx.fetchval(
            "SELECT language FROM subscribers WHERE id = $1", request.subscriber_id
        )
        return request.phone_number, language or "en"
    row = await tx.fetchrow(
        """SELECT phone_number, language FROM subscribers
           WHERE id = $1 OR $1 IS NULL AND phone_number = $2""",
        request.subscriber_id,
        request.phone_number,
    )
    return (request.phone_number, "en") if row is None else (row[0], row[1] or "en")


def get_seal_context(request_id: int, number: int) -> bytes:
    return b"support message %d %d" % (request_id, number)
