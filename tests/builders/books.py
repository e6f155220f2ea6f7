"""Two books: installations in this process that exchange transfers, with faults between them."""

import contextlib
import itertools
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import httpx2

from builders.payments import build_party
from drivers.in_process import GATEWAY_URL, AppTransport
from harness import PIN, Harness, HmacAuth
from tapgate.business.payments.books.outgoing import BookTransferWorker
from tapgate.business.payments.books.recipients import build_context
from tapgate.core.id_generator import IdGenerator
from tapgate.core.settings import load_settings
from tapgate.core.settings.books import BookPeer
from tapgate.http.api.book_peers import BookPeers
from tapgate.http.api.services import Services
from tapgate.ledger import chart, commands
from tapgate.ledger.commands import Command, NewBookTransfer
from tapgate.ledger.rules.loaded_rules import insert_defaults
from tapgate.runtime.store.database import Database
from tapgate.server.gateway import create_app, open_gateway_services
from tapgate_client import ids, money

V1 = "/api/v1"
#: What a book may owe the other one.
CREDIT_LIMIT = 1_000_000_00


class FaultyTransport(httpx2.AsyncBaseTransport):
    """Connection to another book, in which requests and responses are lost."""

    def __init__(self, transport: httpx2.AsyncBaseTransport) -> None:
        self.transport = transport
        self.faults: Iterator[str] = iter(())
        self.requests: list[str] = []

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        is_transfer = "/transfers" in request.url.path
        fault = next(self.faults, "none") if is_transfer else "none"
        if fault == "lost":
            raise httpx2.ConnectError("the request was lost", request=request)
        self.requests.append(request.url.path)
        response = await self.transport.handle_async_request(request)
        if fault == "unanswered":
            raise httpx2.ReadError("the response was lost", request=request)
        return response


class Book:
    def __init__(self, code: str, harness: Harness, app: Any) -> None:
        self.code = code
        self.harness = harness
        self.services = harness.services
        self.transport = AppTransport(app)
        self.peer: HmacAuth  # the partner that represents the other book, with its key
        self.link: FaultyTransport  # to the other book
        self.worker = BookTransferWorker(self.services)

    def connect(self, other: "Book") -> None:
        """Configure the other book. Both books have a partner for each other."""
        assert self.peer.partner_id is not None
        assert other.peer.partner_id is not None
        self.link = FaultyTransport(other.transport)
        peer = BookPeer(
            url=GATEWAY_URL,
            partner=self.peer.partner_id,
            own_partner=other.peer.partner_id,
            key=other.peer.key_id,
        )
        self.configure(book_peers={other.code: peer}, book_secrets={other.code: other.peer.secret})

    def disconnect(self) -> None:
        """Remove the other book from the settings."""
        self.configure(book_peers={}, book_secrets={})

    def configure(self, **fields: Any) -> None:
        settings = self.services.settings.replace(book=self.code, **fields)
        self.services.settings = settings
        self.services.book_peers = BookPeers(settings, self.link)

    async def send(
        self, sender: dict[str, Any], recipient: dict[str, Any], amount: str, **fields: Any
    ) -> httpx2.Response:
        """Send money to a phone number, wherever it lives."""
        body = {
            "sender_id": sender["id"],
            "recipient_phone_number": recipient["phone_number"],
            "amount": amount,
            "pin": PIN,
            **fields,
        }
        return await self.harness.post(
            f"{V1}/wallet/transfer-p2p", json=body, auth=self.harness.get_service_auth()
        )

    async def deliver(self) -> None:
        """Deliver all pending transfers, including those that wait for their next attempt."""
        await self.services.database.execute(
            "UPDATE book_transfers SET next_attempt_at = '2000-01-01Z' WHERE status = 'pending'"
        )
        await self.worker.deliver_due()

    async def get_balance(self, user_id: str) -> str:
        response = await self.harness.get(
            f"{V1}/balance/{user_id}", auth=self.harness.get_service_auth()
        )
        balance: str = response.json()["balance"]
        return balance

    async def get_clearing_balance(self) -> int:
        """Return what this book owes the other one, in minor units."""
        balance: int = await self.services.database.fetchval(
            "SELECT balance FROM accounts WHERE owner_id = $1",
            ids.decode(ids.PARTNER, self.peer.partner_id or ""),
        )
        return balance

    async def list_pending(self) -> list[str]:
        return [status for status in await self.list_statuses() if status == "pending"]

    async def list_statuses(self) -> list[str]:
        rows = await self.services.database.fetch("SELECT status FROM book_transfers ORDER BY id")
        return [row["status"] for row in rows]


async def allow_debt(database: Database, partner: HmacAuth) -> None:
    """Let the clearing account of a partner be overdrawn up to the credit limit."""
    await database.execute(
        "UPDATE accounts SET overdraft = $2 WHERE owner_id = $1",
        ids.decode(ids.PARTNER, partner.partner_id or ""),
        CREDIT_LIMIT,
    )


async def configure_peer(harness: Harness, code: str = "south") -> HmacAuth:
    """Create a partner that represents another book, which cannot be reached."""
    partner = await harness.create_partner()
    assert partner.partner_id is not None
    await allow_debt(harness.database, partner)
    set_peer(harness.services, code, partner.partner_id)
    return partner


def set_peer(services: Services, code: str, partner_id: str) -> None:
    """Let a partner represent another book, which cannot be reached."""
    key = ids.encode(ids.KEY, 1)
    peer = BookPeer(url="http://127.0.0.1:1", partner=partner_id, own_partner=partner_id, key=key)
    services.book_peers = BookPeers(
        services.settings.replace(
            book="north", book_peers={code: peer}, book_secrets={code: "secret"}
        )
    )


async def send_elsewhere(
    services: Services, partner_id: str, sender_id: str, amount: str, *, book: str = "south"
) -> str:
    """Send money to a customer of another book, and return the transaction ID."""
    command = Command(
        type=chart.TRANSFER_P2P,
        channel="messaging",
        payer=build_party(sender_id),
        payee=commands.partner_party(ids.decode(ids.PARTNER, partner_id) or 0),
        amount=money.parse(amount, services.settings.currency),
        book_transfer=NewBookTransfer(
            book=book, recipient_id="sub_0800000000000", recipient_name="Fatu S."
        ),
        context=build_context(book, "Fatu S."),
    )
    outcome = await services.ledger.submit(command)
    return ids.encode(ids.TRANSACTION, outcome.require_accepted().transaction_id)


@contextlib.asynccontextmanager
async def _open_book(code: str, folder: Path, url: str) -> AsyncIterator[Book]:
    environ = {"TAPGATE_DATA_DIR": str(folder), "TAPGATE_DATABASE_URL": url}
    async with open_gateway_services(load_settings(environ), url) as services:
        async with services.transaction() as tx:
            await insert_defaults(tx, services.settings.currency, IdGenerator(1023))
        app = create_app(services)
        transport = AppTransport(app)
        async with httpx2.AsyncClient(transport=transport, base_url=GATEWAY_URL) as client:
            harness = Harness(services, client)
            book = Book(code, harness, app)
            book.peer = await harness.create_partner(f"Book of {code}'s peer")
            await allow_debt(services.database, book.peer)
            yield book


@contextlib.asynccontextmanager
async def open_books(folder: Path, urls: list[str]) -> AsyncIterator[tuple[Book, Book]]:
    """Open two connected books, north and south, on two databases."""
    async with (
        _open_book("north", folder / "north", urls[0]) as north,
        _open_book("south", folder / "south", urls[1]) as south,
    ):
        for book, other in itertools.permutations((north, south)):
            book.connect(other)
        yield north, south
