"""Recipients of transfers, who may live in another book."""

from typing import Any, NamedTuple

from tapgate.business.customers.subscribers import queries as subscribers
from tapgate.http.api.services import Services
from tapgate.ledger import commands
from tapgate.ledger.commands import NewBookTransfer, Party
from tapgate_client.errors import Code
from tapgate_client.schemas.books import BookCustomer


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
    """Return a phone number's owner: of this book, or else of another one."""
    subscriber_id = await subscribers.find_id_by_phone(services.database, phone_number)
    if subscriber_id is None:
        recipient = await _find_elsewhere(services, "phone_number", phone_number)
        if recipient is not None:
            return recipient
    # If the number is not registered, the ledger rejects the command after its replay check.
    return Recipient(commands.subscriber_party(subscriber_id or 0))


async def find_by_card(services: Services, serial: str) -> Recipient:
    """Return the wallet that a card spends from, in this book or else in another one."""
    if services.book_peers.codes:
        is_own = await services.database.fetchval("SELECT 1 FROM cards WHERE serial = $1", serial)
        recipient = None if is_own else await _find_elsewhere(services, "card_serial", serial)
        if recipient is not None:
            return recipient
    return Recipient(commands.card_party(serial))


async def _find_elsewhere(services: Services, field: str, value: str) -> Recipient | None:
    peers = services.book_peers
    customer = await peers.find_customer((field, value))
    if customer is None:
        return None
    return Recipient(commands.partner_party(peers.get_partner_id(customer.book)), customer)
