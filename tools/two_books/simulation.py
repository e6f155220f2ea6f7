"""Two installations that know each other, with wallets and random transfers between them."""

import asyncio
import contextlib
import itertools
import secrets
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any, Final, NamedTuple

import asyncpg
import msgspec

from bench.payments.installation import Installation, find_free_port, run_installation
from tapgate_client import ApiError, AsyncTapgateClient, Login, TapgateError
from tapgate_client.schemas.transactions import TransactionRecord

BOOK_NAMES: Final = ("north", "south")
_ADMIN_EMAIL: Final = "admin@example.com"
_PIN: Final = "4071"
_WALLETS: Final = 12
_INITIAL_BALANCE: Final = Decimal("1000.00")
#: Limit of what a book can owe the other before a settlement.
_OVERDRAFT: Final = "100000.00"
_PAUSE_SECONDS: Final = 0.2
_MAX_CONCURRENT_TRANSFERS: Final = 8
_PHONE_PREFIXES: Final = {"north": "+23276", "south": "+23277"}
_NAMES: Final = {"north": ("Aminata", "Aminata K."), "south": ("Fatu", "Fatu K.")}


class SimulationError(Exception):
    """A check at the end failed."""


class Transfer(NamedTuple):
    """A transfer from one book to the other, and its decline code or transaction ID."""

    request_id: str
    source: str
    target: str
    payer: int
    recipient: int
    amount: Decimal
    code: str | None = None
    transaction_id: str = ""
    fee: Decimal = Decimal(0)


class Book:
    """An installation whose last wallet is full, so that credits to it are refused."""

    def __init__(self, name: str, folder: Path) -> None:
        self.name = name
        self.folder = folder
        self.port = find_free_port()
        self.password = secrets.token_urlsafe(16)
        self.wallets: list[str] = []
        self.partner = self.partner_account = self.key = self.secret = ""
        self.installation: Installation
        self.admin: AsyncTapgateClient

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def get_phone(self, number: int) -> str:
        return f"{_PHONE_PREFIXES[self.name]}{number:06}"

    @contextlib.asynccontextmanager
    async def run(self, **settings: str) -> AsyncIterator[None]:
        settings = {
            "TAPGATE_ADMIN_EMAIL": _ADMIN_EMAIL,
            "TAPGATE_ADMIN_PASSWORD": self.password,
            **settings,
        }
        async with run_installation(
            self.folder, workers=2, settings=settings, port=self.port
        ) as self.installation:
            login = Login(_ADMIN_EMAIL, self.password)
            async with AsyncTapgateClient(self.url, login) as self.admin:
                yield

    async def set_up(self, other: str) -> None:
        """Create wallets with money, and the partner that represents the other book."""
        created = await self.admin.partners.create(name=f"Book {other}", overdraft_limit=_OVERDRAFT)
        self.partner, self.partner_account = created.partner.id, created.partner.account_id
        self.key, self.secret = created.api_key_id, created.hmac_secret
        treasury = (await self.admin.partners.create(name="Treasury")).partner
        await self.admin.partners.fund(treasury.id, amount=_INITIAL_BALANCE * _WALLETS)
        for number in range(_WALLETS):
            registered = await self.admin.subscribers.register(
                phone_number=self.get_phone(number),
                first_name=_NAMES[self.name][0],
                last_name="Kamara",
                pin=_PIN,
            )
            self.wallets.append(registered.subscriber.id)
            await self.admin.partners.fund_from_partner(
                subscriber_id=self.wallets[-1],
                partner_id=treasury.id,
                partner_reference=f"initial-{number}",
                amount=_INITIAL_BALANCE,
            )
        # The gateway loads the rules when it is started again.
        await self.fetch("UPDATE account_rules SET max_balance = 1 WHERE kyc_level = 3")
        await self.fetch(
            """UPDATE accounts SET kyc_level = 3 WHERE id = (
                   SELECT account_id FROM subscribers WHERE phone_number = $1)""",
            self.get_phone(_WALLETS - 1),
        )

    def build_settings(self, other: "Book") -> dict[str, str]:
        peer = {
            "url": other.url, "partner": self.partner, "own_partner": other.partner,
            "key": other.key,
        }  # fmt: skip
        return {
            "TAPGATE_BOOK": self.name,
            "TAPGATE_BOOK_PEERS": msgspec.json.encode({other.name: peer}).decode(),
            "TAPGATE_BOOK_SECRETS": msgspec.json.encode({other.name: other.secret}).decode(),
        }

    async def fetch(self, sql: str, *values: object) -> list[Any]:
        connection = await asyncpg.connect(self.installation.database_url)
        try:
            return list(await connection.fetch(sql, *values))
        finally:
            await connection.close()

    async def wait_for_deliveries(self) -> None:
        """Wait until every transfer was delivered or returned."""
        pending = "SELECT FROM book_transfers WHERE status IN ('pending', 'stopped') LIMIT 1"
        while await self.fetch(pending):  # noqa: ASYNC110 - another process delivers them
            await asyncio.sleep(_PAUSE_SECONDS)

    async def get_balance(self, user_id: str) -> Decimal:
        return Decimal((await self.admin.wallet.get_balance(user_id)).balance)

    async def get_balances(self) -> list[Decimal]:
        return [await self.get_balance(wallet) for wallet in self.wallets]

    async def list_received(self) -> list[TransactionRecord]:
        """Return the transfers from the other book that were credited."""
        page = self.admin.transactions.list(
            user_id=self.partner, type="transfer_p2p", status="completed", limit=100
        )
        return [record async for record in page if record.to and record.to.id in self.wallets]


@contextlib.asynccontextmanager
async def run_books(folder: Path) -> AsyncIterator[dict[str, Book]]:
    """Set up two books, and run them again with each other in their settings."""
    books = {name: Book(name, folder / name) for name in BOOK_NAMES}
    for book, other in itertools.permutations(books.values()):
        async with book.run():
            await book.set_up(other.name)
    first, second = books.values()
    async with (
        first.run(**first.build_settings(second)),
        second.run(**second.build_settings(first)),
    ):
        yield books


def build_transfers(count: int, rng: Random) -> list[Transfer]:
    """Return transfers in both directions; some are declined, and some refused."""
    transfers = []
    for _ in range(count):
        source, target = rng.sample(BOOK_NAMES, 2)
        amount = Decimal(rng.randint(1, 2_000)) / 100
        if rng.random() < 0.05:
            amount += _INITIAL_BALANCE * count
        transfers.append(
            Transfer(
                request_id=secrets.token_hex(8),
                source=source,
                target=target,
                payer=rng.randrange(_WALLETS - 1),
                recipient=rng.randrange(_WALLETS),
                amount=amount,
            )
        )
    return transfers


async def send(books: Mapping[str, Book], transfer: Transfer) -> Transfer:
    """Send a transfer, and repeat it with the same key until its outcome is known."""
    source, target = books[transfer.source], books[transfer.target]
    while True:
        try:
            receipt = await source.admin.wallet.transfer_p2p(
                sender_id=source.wallets[transfer.payer],
                recipient_phone_number=target.get_phone(transfer.recipient),
                amount=transfer.amount,
                pin=_PIN,
                memo="Simulated",
                request_id=transfer.request_id,
            )
        except ApiError as error:
            if error.status < 500 and error.code != "RATE_LIMITED":
                return transfer._replace(code=str(error.code))
        except TapgateError:
            pass
        else:
            fee = Decimal(receipt.fee_amount.split()[0])
            return transfer._replace(transaction_id=receipt.transaction_id, fee=fee)
        await asyncio.sleep(_PAUSE_SECONDS)


async def send_all(books: Mapping[str, Book], transfers: Sequence[Transfer]) -> list[Transfer]:
    """Send the transfers, and return when every one was delivered or returned."""
    slots = asyncio.Semaphore(_MAX_CONCURRENT_TRANSFERS)

    async def send_one(transfer: Transfer) -> Transfer:
        async with slots:
            return await send(books, transfer)

    sent = await asyncio.gather(*map(send_one, transfers))
    for book in books.values():
        await book.wait_for_deliveries()
    return list(sent)


class Summary(NamedTuple):
    outcomes: Counter[str]
    total: Decimal
    fees: Decimal
    clearing: dict[str, Decimal]


async def check_books(
    books: Mapping[str, Book],
    transfers: Sequence[Transfer],
    before: Mapping[str, Sequence[Decimal]],
) -> Summary:
    """Compare the books with the transfers. Raise `SimulationError` if anything differs."""
    expected = {name: list(balances) for name, balances in before.items()}
    received: dict[str, Counter[str]] = {name: Counter() for name in books}
    clearing, outcomes, fees = dict.fromkeys(books, Decimal(0)), Counter[str](), Decimal(0)
    for transfer in transfers:
        outcome = await _get_outcome(books[transfer.source], transfer)
        outcomes[outcome] += 1
        is_full = transfer.recipient == _WALLETS - 1
        _require(outcome in ("declined", "returned" if is_full else "delivered"), outcome)
        if outcome != "delivered":
            continue
        expected[transfer.source][transfer.payer] -= transfer.amount + transfer.fee
        expected[transfer.target][transfer.recipient] += transfer.amount
        received[transfer.target][transfer.transaction_id] += 1
        clearing[transfer.source] += transfer.amount
        clearing[transfer.target] -= transfer.amount
        fees += transfer.fee
    for name, book in books.items():
        # Both books can generate the same transaction ID.
        amounts = {sent.transaction_id: sent.amount for sent in transfers if sent.target == name}
        await _check_book(book, expected[name], received[name], amounts)
        balance = await book.get_balance(book.partner)
        _require(balance == clearing[name], f"clearing account of {name}: {balance}")
    _require(sum(clearing.values()) == 0, "the clearing accounts do not mirror each other")
    total = sum(itertools.chain(*expected.values()), Decimal(0))
    return Summary(outcomes, total, fees, clearing)


async def _get_outcome(book: Book, transfer: Transfer) -> str:
    """Return what happened to a transfer, from what the sender sees."""
    if transfer.code is not None:
        return "declined"
    record = await book.admin.transactions.get(transfer.transaction_id)
    _require(record.book == transfer.target, f"{record.id} is for {record.book}")
    name = f"{_NAMES[transfer.target][1]} ({transfer.target})"
    _require(record.to is not None and record.to.name == name, f"{record.id} is not for {name}")
    if record.status == "reversed":
        _require(Decimal(record.reversed_amount) == transfer.amount, f"{record.id} is partly back")
        return "returned"
    _require(record.status == "completed", f"{record.id} is {record.status}")
    return "delivered"


async def _check_book(
    book: Book,
    expected: Sequence[Decimal],
    received: Counter[str],
    amounts: Mapping[str, Decimal],
) -> None:
    records = await book.list_received()
    counts = Counter(record.request_id or "" for record in records)
    _require(counts == received, f"transfers to {book.name} were lost or doubled")
    for record in records:
        other = "south" if book.name == "north" else "north"
        name = f"{_NAMES[other][1]} ({other})"
        _require(record.from_ is not None and record.from_.name == name, f"{record.id}: {name}")
        _require(record.memo == "Simulated", f"{record.id} has another memo")
        amount = amounts[record.request_id or ""]
        _require(Decimal(record.amount) == amount, f"{record.id} has another amount")
    _require(await book.get_balances() == list(expected), f"balances of {book.name} differ")
    proof = await book.admin.overview.verify_ledger()
    _require(proof.holds, f"the books of {book.name} are not valid")


def _require(condition: bool, problem: str) -> None:
    if not condition:
        raise SimulationError(problem)


async def settle(books: Mapping[str, Book]) -> Decimal:
    """Settle the net position: the debtor pays the creditor, outside of both books.

    The creditor's book records the deposit to the clearing account of the debtor's book, and the
    debtor's book records the payment from the clearing account of the creditor's book.
    """
    balances = {name: await book.get_balance(book.partner) for name, book in books.items()}
    debtor, creditor = sorted(books, key=lambda name: -balances[name])
    net = balances[debtor]
    if net:
        request_id = f"settlement-{secrets.token_hex(8)}"
        await books[creditor].admin.partners.fund(
            books[creditor].partner, amount=net, request_id=request_id
        )
        cash = await _find_cash_account(books[debtor])
        await books[debtor].admin.wallet.transfer_funds(
            from_account_id=books[debtor].partner_account,
            to_account_id=cash,
            amount=net,
            description="Settlement",
            request_id=request_id,
        )
    for name, book in books.items():
        balance = await book.get_balance(book.partner)
        _require(balance == 0, f"clearing account of {name} after the settlement: {balance}")
    return net


async def _find_cash_account(book: Book) -> str:
    """Return the platform's cash account ID, from a deposit entry."""
    async for record in book.admin.transactions.list(type="partner_deposit", limit=1):
        entries = await book.admin.transactions.list_entries(record.id)
        return entries.entries[0].debit.account_id
    raise SimulationError("there is no deposit")
