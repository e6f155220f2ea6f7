"""Transfers between two books: every crash and lost message, against a model and real gateways."""

import contextlib
import itertools
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from decimal import Decimal
from pathlib import Path
from random import Random

import httpx2
import hypothesis
import pytest
from hypothesis import strategies

from databases import ScratchDatabases, build_database_url
from drivers.in_process import GATEWAY_URL, NO_BACKOFF, AppTransport
from harness import Harness
from tapgate.core.id_generator import IdGenerator
from tapgate.core.settings import load_settings
from tapgate.ledger.rules.loaded_rules import insert_defaults
from tapgate.server.gateway import create_app, open_gateway_services
from tapgate_client import AccessToken, AsyncTapgateClient, PartnerKey
from tools.two_books.coordinator import Book, Coordinator, GatewayBook
from tools.two_books.journal import Journal
from tools.two_books.protocol import Outcome, State, Transfer
from tools.two_books.simulation import (
    BOOK_NAMES,
    SimulatedBook,
    build_transfers,
    check_books,
    settle,
)

NORTH, SOUTH = BOOK_NAMES


class CrashError(Exception):
    """The coordinator was killed."""


#: What happens to a request: it is lost, its response is lost, it is executed later, or the
#: coordinator is killed before or after it.
FAULTS = ("none", "lost", "unanswered", "delayed", "crash before", "crash after")


class ModelBook:
    """A book that stores outcomes under idempotency keys, with faults in the network."""

    def __init__(self, faults: Iterator[str], *, is_blocked: bool = False) -> None:
        self._faults = faults
        self.balance = 10  # of its only wallet
        self.clearing = 0
        self.is_blocked = is_blocked
        self.refused_returns = 0
        self.executed: Counter[str] = Counter()
        self._stored: dict[str, Outcome] = {}
        self.delayed: list[tuple[str, str, int]] = []

    async def debit(self, transfer: Transfer) -> Outcome | None:
        return self._request(f"{transfer.id}-debit", "", -int(transfer.amount))

    async def credit(self, transfer: Transfer) -> Outcome | None:
        return self._request(f"{transfer.id}-credit", transfer.id, int(transfer.amount))

    async def return_to_payer(self, transfer: Transfer) -> Outcome | None:
        key = f"{transfer.id}-return-{transfer.attempt}"
        return self._request(key, f"{transfer.id}-return", int(transfer.amount))

    def _request(self, key: str, reference: str, amount: int) -> Outcome | None:
        fault = next(self._faults, "none")
        if fault == "crash before":
            raise CrashError
        if fault == "lost":
            return None
        if fault == "delayed":
            self.delayed.append((key, reference, amount))
            return None
        outcome = self.execute(key, reference, amount)
        if fault == "crash after":
            raise CrashError
        return None if fault == "unanswered" else outcome

    def execute(self, key: str, reference: str, amount: int) -> Outcome | None:
        """Execute a request, or replay it. A decline is final when it is replayed."""
        if key in self._stored:
            return self._stored[key]
        outcome = Outcome(self._get_decline(key, amount))
        self._stored[key] = outcome
        if outcome.code is None:
            self.executed[reference or key] += 1
            self.balance += amount
            self.clearing -= amount
            return outcome
        return None

    def _get_decline(self, key: str, amount: int) -> str | None:
        if self.balance + amount < 0:
            return "INSUFFICIENT_FUNDS"
        if "-return-" in key and self.refused_returns:
            self.refused_returns -= 1
            return "MAX_BALANCE_EXCEEDED"
        if amount > 0 and "-credit" in key and self.is_blocked:
            return "SUBSCRIBER_BLOCKED"
        return None

    def execute_delayed(self) -> None:
        while self.delayed:
            self.execute(*self.delayed.pop())


def build_transfer(number: int = 1, amount: int = 4, source: str = NORTH) -> Transfer:
    target = SOUTH if source == NORTH else NORTH
    return Transfer(f"t{number}", source, target, "payer", "recipient", str(amount))


async def complete(books: dict[str, ModelBook], journal: Journal, deliver: Random) -> None:
    """Process transfers until all are final. Delayed requests arrive at random times."""
    while transfers := journal.list_open():
        with contextlib.suppress(CrashError):
            for transfer in transfers:
                await Coordinator(journal, books).process(transfer)
        for book in books.values():
            if book.delayed and deliver.random() < 0.5:
                book.execute_delayed()
        in_flight = sum(book.clearing for book in books.values())
        assert in_flight >= 0
        assert sum(book.balance for book in books.values()) + in_flight == 20
    for book in books.values():
        book.execute_delayed()  # later than everything else


def require_exactly_once(books: dict[str, ModelBook], journal: Journal) -> None:
    balances = {NORTH: 10, SOUTH: 10}
    executed: dict[str, Counter[str]] = {NORTH: Counter(), SOUTH: Counter()}
    for transfer in journal.list_all():
        if transfer.state is not State.FAILED:
            executed[transfer.source][f"{transfer.id}-debit"] = 1
        if transfer.state is State.RETURNED:
            executed[transfer.source][f"{transfer.id}-return"] = 1
        if transfer.state is State.COMPLETED:
            executed[transfer.target][transfer.id] = 1
            balances[transfer.source] -= int(transfer.amount)
            balances[transfer.target] += int(transfer.amount)
    assert {name: book.balance for name, book in books.items()} == balances
    assert {name: book.executed for name, book in books.items()} == executed
    assert books[NORTH].clearing == -books[SOUTH].clearing


@pytest.mark.parametrize(
    ("amount", "is_blocked", "expected"),
    [(4, False, State.COMPLETED), (11, False, State.FAILED), (4, True, State.RETURNED)],
)
async def test_every_sequence_of_faults_leads_to_the_same_result(
    amount: int, is_blocked: bool, expected: State
) -> None:
    for faults in itertools.product(FAULTS, repeat=3):
        sequence = iter(faults)
        books = {NORTH: ModelBook(sequence), SOUTH: ModelBook(sequence, is_blocked=is_blocked)}
        books[NORTH].refused_returns = 1
        journal = Journal(Path(":memory:"))
        journal.add([build_transfer(amount=amount)])
        await complete(books, journal, Random(1))
        assert [transfer.state for transfer in journal.list_all()] == [expected], faults
        require_exactly_once(books, journal)
        journal.close()


@hypothesis.settings(max_examples=100)
@hypothesis.given(
    amounts=strategies.lists(strategies.tuples(strategies.integers(1, 8), strategies.booleans())),
    faults=strategies.lists(strategies.sampled_from(FAULTS), max_size=40),
    seed=strategies.integers(0, 1000),
)
async def test_concurrent_transfers_move_money_exactly_once(
    amounts: list[tuple[int, bool]], faults: list[str], seed: int
) -> None:
    sequence = iter(faults)
    books = {NORTH: ModelBook(sequence), SOUTH: ModelBook(sequence, is_blocked=seed % 3 == 0)}
    journal = Journal(Path(":memory:"))
    journal.add(
        build_transfer(number, amount, NORTH if is_north else SOUTH)
        for number, (amount, is_north) in enumerate(amounts)
    )
    await complete(books, journal, Random(seed))
    require_exactly_once(books, journal)
    journal.close()


async def test_step_of_a_second_coordinator_is_recorded_once() -> None:
    journal = Journal(Path(":memory:"))
    transfer = build_transfer()
    journal.add([transfer])
    journal.record(transfer, transfer._replace(state=State.DEBITED))
    journal.record(transfer, transfer._replace(state=State.FAILED))
    assert [found.state for found in journal.list_all()] == [State.DEBITED]
    journal.close()


class FaultyTransport(httpx2.AsyncBaseTransport):
    """Loses the response to the first attempt of every request that moves money."""

    def __init__(self, transport: httpx2.AsyncBaseTransport) -> None:
        self._transport = transport
        self._seen: set[bytes] = set()

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        response = await self._transport.handle_async_request(request)
        body = await request.aread()
        if request.method == "POST" and body not in self._seen:
            self._seen.add(body)
            raise httpx2.ReadError("the connection was lost", request=request)
        return response


class ReviewedBook(SimulatedBook):
    """Book with an admin who did not create the partner key, and so may release its credits."""

    reviewer: AsyncTapgateClient


@contextlib.asynccontextmanager
async def open_book(
    folder: Path, database_url: str, other: str
) -> AsyncIterator[tuple[ReviewedBook, GatewayBook]]:
    environ = {"TAPGATE_DATA_DIR": str(folder), "TAPGATE_DATABASE_URL": database_url}
    settings = load_settings(environ)
    async with open_gateway_services(settings, database_url) as services:
        async with services.transaction() as tx:
            await insert_defaults(tx, settings.currency, IdGenerator(1023))
        transport = AppTransport(create_app(services))
        async with httpx2.AsyncClient(transport=transport, base_url=GATEWAY_URL) as http:
            harness = Harness(services, http)
            tokens = {role: (await harness.create_admin(role)).credential for role in "ACF"}
        admin = AsyncTapgateClient(GATEWAY_URL, AccessToken(tokens["A"]), http=transport)
        book = ReviewedBook(GATEWAY_URL, admin)
        book.reviewer = AsyncTapgateClient(GATEWAY_URL, AccessToken(tokens["C"]), http=transport)
        await book.set_up(other, wallets=3)
        access, faulty = book.access, FaultyTransport(transport)
        key = PartnerKey(access.api_key_id, access.partner_id, access.hmac_secret)
        clients = [
            AsyncTapgateClient(GATEWAY_URL, credential, http=faulty, retries=NO_BACKOFF)
            for credential in (AccessToken(tokens["F"]), key)
        ]
        yield book, GatewayBook(access, *clients)


@pytest.fixture
async def gateways(
    postgres: str, scratch_databases: ScratchDatabases, tmp_path: Path
) -> AsyncIterator[dict[str, tuple[ReviewedBook, GatewayBook]]]:
    names = [await scratch_databases.acquire() for _ in BOOK_NAMES]
    urls = [build_database_url(name, postgres) for name in names]
    async with (
        open_book(tmp_path / NORTH, urls[0], SOUTH) as north,
        open_book(tmp_path / SOUTH, urls[1], NORTH) as south,
    ):
        yield {NORTH: north, SOUTH: south}
    for name in names:
        await scratch_databases.release(name)


Gateways = dict[str, tuple[ReviewedBook, GatewayBook]]


def split(gateways: Gateways) -> tuple[dict[str, ReviewedBook], dict[str, Book]]:
    return (
        {name: book for name, (book, _) in gateways.items()},
        {name: gateway for name, (_, gateway) in gateways.items()},
    )


async def test_lost_responses_of_real_gateways_move_no_money_twice(
    gateways: Gateways, tmp_path: Path
) -> None:
    books, steps = split(gateways)
    before = {name: await book.get_balances() for name, book in books.items()}
    transfers = build_transfers(books, 3, Random(5))
    first, second, third = transfers
    second = second._replace(recipient=books[second.target].wallets[-1])
    journal = Journal(tmp_path / "journal.sqlite")
    journal.add([first, second, third._replace(amount="5000000.00")])
    await Coordinator(journal, steps).run()
    states = {transfer.id: transfer.state for transfer in journal.list_all()}
    assert states == {
        first.id: State.COMPLETED,
        second.id: State.RETURNED,
        third.id: State.FAILED,
    }
    await check_books(books, journal.list_all(), before)
    assert await settle(books) == Decimal(first.amount)
    journal.close()


async def test_credit_under_review_completes_on_release_and_returns_on_rejection(
    gateways: Gateways, tmp_path: Path
) -> None:
    books, steps = split(gateways)
    north, south = books[NORTH], books[SOUTH]
    await south.admin.compliance.create_rule(
        name="Review",
        type="AMOUNT_THRESHOLD",
        subject="payee",
        transaction_types=["partner_fund"],
        threshold="10.00",
        action="review",
    )
    before = {name: await book.get_balances() for name, book in books.items()}
    journal = Journal(tmp_path / "journal.sqlite")
    decisions = {"release": State.COMPLETED, "reject": State.RETURNED}
    journal.add(
        Transfer(decision, NORTH, SOUTH, north.wallets[0], recipient, "20.00")
        for decision, recipient in zip(decisions, south.wallets, strict=False)
    )
    coordinator = Coordinator(journal, steps)
    for _ in range(2):  # while a transaction is under review, nothing changes
        for transfer in journal.list_open():
            await coordinator.process(transfer)
        assert {transfer.state for transfer in journal.list_all()} == {State.DEBITED}
    for decision, recipient in zip(decisions, south.wallets, strict=False):
        async for alert in south.reviewer.compliance.list_alerts(subscriber_id=recipient):
            await south.reviewer.compliance.resolve_alert(
                alert.id,
                status="resolved",
                resolution_notes="checked",
                transaction_decision=decision,
            )
    await coordinator.run()
    assert {transfer.id: transfer.state for transfer in journal.list_all()} == decisions
    await check_books(books, journal.list_all(), before)
    journal.close()


async def test_credit_that_is_rejected_and_not_stored_is_repeated(
    gateways: Gateways, tmp_path: Path
) -> None:
    books, steps = split(gateways)
    south = books[SOUTH]
    before = {name: await book.get_balances() for name, book in books.items()}
    journal = Journal(tmp_path / "journal.sqlite")
    payer, recipient = books[NORTH].wallets[0], south.wallets[0]
    journal.add([Transfer("once", NORTH, SOUTH, payer, recipient, "20.00")])
    coordinator = Coordinator(journal, steps)
    await south.admin.partners.suspend(south.access.partner_id, reason="incident")
    for transfer in journal.list_open() * 2:
        await coordinator.process(transfer)
    assert [transfer.state for transfer in journal.list_all()] == [State.DEBITED]
    await south.admin.partners.activate(south.access.partner_id, reason="resolved")
    await coordinator.run()
    assert [transfer.state for transfer in journal.list_all()] == [State.COMPLETED]
    await check_books(books, journal.list_all(), before)
    journal.close()
