"""Two installations with a clearing account for each other, and their wallets."""

import contextlib
import itertools
import secrets
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Final, NamedTuple

from bench.payments.installation import Installation, run_installation
from tapgate_client import AsyncTapgateClient, Login
from tapgate_client.schemas.transactions import TransactionStatus
from tools.two_books.coordinator import BookAccess
from tools.two_books.protocol import State, Transfer

BOOK_NAMES: Final = ("north", "south")
_ADMIN_EMAIL: Final = "admin@example.com"
_FINANCE_EMAIL: Final = "clearing@example.com"
_WALLETS: Final = 12
_INITIAL_BALANCE: Final = Decimal("1000.00")
#: Limit of what a book can owe the other before a settlement.
_OVERDRAFT: Final = "100000.00"


class SimulationError(Exception):
    """A check at the end failed."""


class SimulatedBook:
    """An installation whose last wallet is blocked, so that credits to it are declined."""

    def __init__(self, url: str, admin: AsyncTapgateClient) -> None:
        self.url = url
        self.admin = admin
        self.wallets: list[str] = []
        self.access: BookAccess

    async def set_up(self, other: str, wallets: int = _WALLETS) -> None:
        """Create wallets with money, and a clearing account for the other book."""
        password = secrets.token_urlsafe(16)
        await self.admin.admin.create(
            email=_FINANCE_EMAIL, password=password, name="Clearing", role="finance_user"
        )
        created = await self.admin.partners.create(name=f"Book {other}", overdraft_limit=_OVERDRAFT)
        self.access = BookAccess(
            url=self.url,
            email=_FINANCE_EMAIL,
            password=password,
            partner_id=created.partner.id,
            partner_account_id=created.partner.account_id,
            api_key_id=created.api_key_id,
            hmac_secret=created.hmac_secret,
        )
        treasury = (await self.admin.partners.create(name="Treasury")).partner
        await self.admin.partners.fund(treasury.id, amount=_INITIAL_BALANCE * wallets)
        for number in range(wallets):
            subscriber = (
                await self.admin.subscribers.register(
                    phone_number=f"+2327600{number:04}",
                    first_name="Aminata",
                    last_name="Kamara",
                    pin="4071",
                )
            ).subscriber
            self.wallets.append(subscriber.id)
            await self.admin.partners.fund_from_partner(
                subscriber_id=subscriber.id,
                partner_id=treasury.id,
                partner_reference=f"initial-{number}",
                amount=_INITIAL_BALANCE,
            )
        await self.admin.subscribers.block(self.wallets[-1], reason="credits are declined")

    async def get_balance(self, user_id: str) -> Decimal:
        return Decimal((await self.admin.wallet.get_balance(user_id)).balance)

    async def get_balances(self) -> dict[str, Decimal]:
        return {wallet: await self.get_balance(wallet) for wallet in self.wallets}

    async def get_clearing_balance(self) -> Decimal:
        return await self.get_balance(self.access.partner_id)

    async def count_steps(self) -> Counter[str]:
        """Return how often each step was executed, by idempotency key."""
        page = self.admin.transactions.list(user_id=self.access.partner_id, limit=100)
        return Counter(
            [
                record.request_id or ""
                async for record in page
                if record.status == TransactionStatus.COMPLETED
            ]
        )


class InstalledBook(SimulatedBook):
    """A book with its own gateway and PostgreSQL server."""

    def __init__(self, installation: Installation, admin: AsyncTapgateClient) -> None:
        super().__init__(_get_url(installation), admin)
        self.installation = installation


def _get_url(installation: Installation) -> str:
    return f"http://127.0.0.1:{installation.port}"


@contextlib.asynccontextmanager
async def run_book(folder: Path, other: str) -> AsyncIterator[InstalledBook]:
    password = secrets.token_urlsafe(16)
    settings = {"TAPGATE_ADMIN_EMAIL": _ADMIN_EMAIL, "TAPGATE_ADMIN_PASSWORD": password}
    async with run_installation(folder, workers=2, settings=settings) as installation:
        login = Login(_ADMIN_EMAIL, password)
        async with AsyncTapgateClient(_get_url(installation), login) as admin:
            book = InstalledBook(installation, admin)
            await book.set_up(other)
            yield book


@contextlib.asynccontextmanager
async def run_books(folder: Path) -> AsyncIterator[dict[str, InstalledBook]]:
    first, second = BOOK_NAMES
    async with (
        run_book(folder / first, second) as first_book,
        run_book(folder / second, first) as second_book,
    ):
        yield {first: first_book, second: second_book}


def build_transfers(books: Mapping[str, SimulatedBook], count: int, rng: Random) -> list[Transfer]:
    """Return transfers in both directions; some are declined by the payer's or the other book."""
    transfers = []
    for number in range(count):
        source, target = rng.sample(BOOK_NAMES, 2)
        amount = Decimal(rng.randint(1, 2_000)) / 100
        if rng.random() < 0.05:
            amount += _INITIAL_BALANCE * count
        transfers.append(
            Transfer(
                id=f"{secrets.token_hex(8)}-{number}",
                source=source,
                target=target,
                payer=rng.choice(books[source].wallets[:-1]),
                recipient=rng.choice(books[target].wallets),
                amount=str(amount),
            )
        )
    return transfers


class Summary(NamedTuple):
    states: Counter[State]
    total: Decimal
    clearing: dict[str, Decimal]


async def check_books(
    books: Mapping[str, SimulatedBook],
    transfers: Sequence[Transfer],
    before: Mapping[str, Mapping[str, Decimal]],
) -> Summary:
    """Compare the books with the journal. Raise `SimulationError` if anything differs."""
    expected = {name: dict(balances) for name, balances in before.items()}
    steps: dict[str, Counter[str]] = {name: Counter() for name in books}
    clearing = dict.fromkeys(books, Decimal(0))
    for transfer in transfers:
        _require(transfer.is_final, f"{transfer.id} is {transfer.state}")
        if transfer.state is State.FAILED:
            continue
        steps[transfer.source][f"{transfer.id}-debit"] += 1
        if transfer.state is State.RETURNED:
            steps[transfer.source][f"{transfer.id}-return-{transfer.attempt}"] += 1
            continue
        steps[transfer.target][f"{transfer.id}-credit"] += 1
        amount = Decimal(transfer.amount)
        expected[transfer.source][transfer.payer] -= amount
        expected[transfer.target][transfer.recipient] += amount
        clearing[transfer.source] += amount
        clearing[transfer.target] -= amount
    for name, book in books.items():
        _require(await book.count_steps() == steps[name], f"steps of {name} are not exactly once")
        _require(await book.get_balances() == expected[name], f"balances of {name} differ")
        balance = await book.get_clearing_balance()
        _require(balance == clearing[name], f"clearing account of {name}: {balance}")
        proof = await book.admin.overview.verify_ledger()
        _require(proof.holds, f"the books of {name} are not valid")
    _require(sum(clearing.values()) == 0, "the clearing accounts do not mirror each other")
    total = sum(itertools.chain(*(balances.values() for balances in expected.values())), Decimal(0))
    return Summary(Counter(transfer.state for transfer in transfers), total, clearing)


def _require(condition: bool, problem: str) -> None:
    if not condition:
        raise SimulationError(problem)


async def settle(books: Mapping[str, SimulatedBook]) -> Decimal:
    """Settle the net position: the debtor pays the creditor, outside of both books.

    The creditor's book records the deposit to the clearing account of the debtor's book, and the
    debtor's book records the payment from the clearing account of the creditor's book.
    """
    balances = {name: await book.get_clearing_balance() for name, book in books.items()}
    debtor, creditor = sorted(books, key=lambda name: -balances[name])
    net = balances[debtor]
    if net:
        request_id = f"settlement-{secrets.token_hex(8)}"
        deposit = await books[creditor].admin.partners.fund(
            books[creditor].access.partner_id, amount=net, request_id=request_id
        )
        _require(deposit.success, "the deposit failed")
        cash = await _find_cash_account(books[debtor])
        await books[debtor].admin.wallet.transfer_funds(
            from_account_id=books[debtor].access.partner_account_id,
            to_account_id=cash,
            amount=net,
            description="Settlement",
            request_id=request_id,
        )
    for name, book in books.items():
        balance = await book.get_clearing_balance()
        _require(balance == 0, f"clearing account of {name} after the settlement: {balance}")
    return net


async def _find_cash_account(book: SimulatedBook) -> str:
    """Return the platform's cash account ID, from a deposit entry."""
    async for record in book.admin.transactions.list(type="partner_deposit", limit=1):
        entries = await book.admin.transactions.list_entries(record.id)
        return entries.entries[0].debit.account_id
    raise SimulationError("there is no deposit")
