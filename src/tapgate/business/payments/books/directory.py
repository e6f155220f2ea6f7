"""Directory: in which book a customer lives, by phone number or card.

Each book answers for its own customers; `BookPeers.find_customer` asks the others.
"""

from collections.abc import Mapping
from typing import Final

from tapgate.core.public_names import build_public_name
from tapgate.http.api.book_peers import BookPeers, LookupKey
from tapgate.runtime.store.database import Database
from tapgate_client import ids
from tapgate_client.schemas.books import BookCustomer
from tapgate_client.schemas.cards import CardStatus

_SELECT: Final = """
    SELECT s.id, s.first_name, s.last_name, s.restricted, a.status = 'active' AS is_active,
           (extract(epoch FROM s.updated_at) * 1000)::bigint AS version"""
_SQL_BY_FIELD: Final[Mapping[str, str]] = {
    "phone_number": f"""{_SELECT}, true AS is_payable
        FROM subscribers s JOIN accounts a ON a.id = s.account_id
        WHERE s.phone_number = $1 AND a.status <> 'closed'""",
    "card_serial": f"""{_SELECT},
               c.status = '{CardStatus.ACTIVE}' AND coalesce(c.expires_at > now(), true)
                   AS is_payable
        FROM cards c JOIN accounts a ON a.id = c.account_id
        JOIN subscribers s ON s.account_id = a.id
        WHERE c.serial = $1 AND a.status <> 'closed'""",
}

_HAS_OWN_CARD: Final = """
    SELECT EXISTS (SELECT FROM cards c JOIN accounts a ON a.id = c.account_id
                   WHERE c.serial = $1 AND a.status <> 'closed')"""


async def find_own(database: Database, peers: BookPeers, key: LookupKey) -> BookCustomer | None:
    """Return a customer of this book, or None."""
    field, value = key
    row = await database.fetchrow(_SQL_BY_FIELD[field], value)
    if row is None:
        return None
    name = None if row["restricted"] else build_public_name(row["first_name"], row["last_name"])
    return BookCustomer(
        book=peers.own_code or "",
        subscriber_id=ids.encode(ids.SUBSCRIBER, row["id"]),
        name=name,
        can_receive=row["is_active"] and row["is_payable"],
        version=row["version"],
    )


async def has_own_card(database: Database, peers: BookPeers, serial: str) -> bool:
    """Return whether a card is a customer's of this book. Without other books, every card is.

    A card that is not assigned here, or whose wallet is closed, may pay in another book.
    """
    if not peers.codes:
        return True
    found: bool = await database.fetchval(_HAS_OWN_CARD, serial)
    return found
