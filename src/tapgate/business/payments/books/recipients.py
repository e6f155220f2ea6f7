"""Recipients of transfers, who may live in another book."""

from typing import Any, Final, NamedTuple

from tapgate.business.payments.books import directory
from tapgate.http.api.services import Services
from tapgate.ledger import commands
from tapgate.ledger.commands import NewBookTransfer, Party
from tapgate_client.errors import Code
from tapgate_client.schemas.books import BookCustomer

_FIND_BY_PHONE: Final = """
    SELECT s.id, a.status = 'closed' AS is_closed
    FROM subscribers s JOIN accounts a ON a.id = s.account_id WHERE s.phone_number = $1"""


class Recipient(NamedTuple):
    """Payee of a transfer. `customer` is set if the recipient lives in another book."""

    party: Party
    customer: BookCustomer | None = None

    @property
    def book_transfer(self) -> NewBookTransfer | None:
        customer = self.customer
        if customer is None:
            return None
        return NewBookTransfer(
            book=customer.book,
            recipient_id=customer.subscriber_id,
            recipient_name=customer.name or "",
        )

    @property
    def caller_error(self) -> Code | None:
        is_blocked = self.customer is not None and not self.customer.can_receive
        return Code.SUBSCRIBER_BLOCKED if is_blocked else None

    def add_context(self, context: dict[str, str] | None) -> dict[str, Any] | None:
        if self.customer is None:
            return context
        return {**(context or {}), **build_context(self.customer.book, self.customer.name)}


def build_context(book: str, name: str | None) -> dict[str, str]:
    """Return what a transaction stores about its party in another book."""
    return {"book": book, "book_party": f"{name} ({book})" if name else book}


async def find_by_phone(services: Services, phone_number: str) -> Recipient:
    """Return a phone number's owner: of this book, or else of another one.

    The number of a closed customer may belong to another book now.
    """
    row = await services.database.fetchrow(_FIND_BY_PHONE, phone_number)
    if row is None or row["is_closed"]:
        recipient = await _find_elsewhere(services, "phone_number", phone_number)
        if recipient is not None:
            return recipient
    # If the number is not registered, the ledger rejects the command after its replay check.
    return Recipient(commands.subscriber_party(row["id"] if row is not None else 0))


async def find_by_card(services: Services, serial: str) -> Recipient:
    """Return the wallet that a card spends from, in this book or else in another one."""
    if not await directory.has_own_card(services.database, services.book_peers, serial):
        recipient = await _find_elsewhere(services, "card_serial", serial)
        if recipient is not None:
            return recipient
    return Recipient(commands.card_party(serial))


async def _find_elsewhere(services: Services, field: str, value: str) -> Recipient | None:
    peers = services.book_peers
    customer = await peers.find_customer((field, value))
    if customer is None:
        return None
    return Recipient(commands.partner_party(peers.get_partner_id(customer.book)), customer)
