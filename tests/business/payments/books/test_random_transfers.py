"""Random transfers between two books with lost messages, against a simple model."""

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import Phase, given, seed, settings
from hypothesis import strategies as st

from builders.books import Book
from builders.ledger import require_balanced_books

FAULTS = ("none", "lost", "unanswered")
PEOPLE = 3
#: The wallet of the last person in each book is full, so every transfer to it is refused.
FULL = PEOPLE - 1
INITIAL = Decimal("100.00")

Step = tuple[bool, int, int, int, bool]
Round = tuple[list[Step], list[str]]

_steps = st.lists(
    st.tuples(
        st.booleans(),  # from north
        st.integers(0, PEOPLE - 2),  # sender
        st.integers(0, PEOPLE - 1),  # recipient
        st.integers(1, 80_00),  # amount in cents
        st.booleans(),  # deliver afterwards
    ),
    min_size=1,
    max_size=8,
)
_faults = st.lists(st.sampled_from(FAULTS), max_size=8)


class Model:
    """Wallet balances of both books, and what each book owes the other."""

    def __init__(self, books: Sequence[Book], people: dict[str, list[dict[str, Any]]]) -> None:
        self.books, self.people = books, people
        self.balances = {book.code: [INITIAL] * PEOPLE for book in books}
        self.owed = {book.code: Decimal(0) for book in books}
        self.undelivered: dict[str, list[tuple[int, int, Decimal, Decimal]]] = {
            book.code: [] for book in books
        }

    async def send(self, source: Book, sender: int, recipient: int, amount: Decimal) -> None:
        target = next(book for book in self.books if book is not source)
        response = await source.send(
            self.people[source.code][sender],
            self.people[target.code][recipient],
            str(amount),
        )
        if response.status_code == 402:
            return  # how much the sender has depends on what was delivered so far
        assert response.status_code == 200, response.text
        fee = Decimal(response.json()["fee_amount"].split()[0])
        self.balances[source.code][sender] -= amount + fee
        self.owed[source.code] += amount
        self.undelivered[source.code].append((sender, recipient, amount, fee))

    def deliver_all(self) -> None:
        for source in self.books:
            target = next(book for book in self.books if book is not source)
            for sender, recipient, amount, fee in self.undelivered[source.code]:
                if recipient == FULL:
                    self.balances[source.code][sender] += amount + fee
                    self.owed[source.code] -= amount
                else:
                    self.balances[target.code][recipient] += amount
                    self.owed[target.code] -= amount
            self.undelivered[source.code].clear()

    async def compare(self) -> None:
        for book in self.books:
            assert await book.list_pending() == []
            found = [
                Decimal(await book.get_balance(person["id"])) for person in self.people[book.code]
            ]
            assert found == self.balances[book.code]
            assert await book.get_clearing_balance() == self.owed[book.code] * 100
            await require_balanced_books(book.services.database)
        assert sum(self.owed.values()) == 0


def draw_rounds(number: int) -> list[Round]:
    """Return the rounds of one test run, always the same for a number."""
    rounds: list[Round] = []

    @settings(max_examples=5, database=None, phases=[Phase.generate])
    @seed(number)
    @given(st.tuples(_steps, _faults))
    def collect(drawn: Round) -> None:
        rounds.append(drawn)

    collect()
    return rounds


async def create_people(book: Book) -> list[dict[str, Any]]:
    people = [await book.harness.create_subscriber(balance=str(INITIAL)) for _ in range(PEOPLE)]
    await book.harness.disable_compliance_rules()
    await book.services.database.execute(
        "UPDATE account_rules SET max_balance = 1 WHERE kyc_level = 3"
    )
    await book.services.database.execute(
        """UPDATE accounts SET kyc_level = 3
           WHERE id = (SELECT account_id FROM subscribers WHERE phone_number = $1)""",
        people[FULL]["phone_number"],
    )
    book.services.ledger.invalidate_rules()
    return people


@pytest.mark.parametrize("number", range(4))
async def test_random_transfers_with_lost_messages_agree_with_the_model(
    books: tuple[Book, Book], number: int
) -> None:
    model = Model(books, {book.code: await create_people(book) for book in books})
    for steps, faults in draw_rounds(number):
        for book in books:
            book.link.faults = iter(faults)
        for is_north, sender, recipient, cents, delivers in steps:
            book = books[0] if is_north else books[1]
            await model.send(book, sender, recipient, Decimal(cents) / 100)
            if delivers:
                await book.deliver()
        for _ in range(len(faults) + 2):
            for book in books:
                await book.deliver()
        model.deliver_all()
        await model.compare()
