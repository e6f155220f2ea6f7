"""Random transactions: reports and journals agree with sums over a list of entries."""

import itertools
from collections.abc import AsyncIterator
from datetime import UTC, date, datetime, timedelta
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builders.branding import BRANDING
from builders.ledger import PIN, START, LedgerDriver, build_payment, require_balanced_books
from examples import limit_examples
from tapgate.business.finance.general_ledger import journal, queries
from tapgate.core.id_generator import first_id_at
from tapgate.ledger import chart
from tapgate.ledger.commands import ReviewDecision
from tapgate.runtime.store.database import Database
from tapgate_client import ids, money
from tapgate_client.schemas.general_ledger import AccountKind, JournalQuery

ZONE = ZoneInfo("Asia/Kathmandu")  # its days start at 18:15 UTC
FIRST_DAY = date(2026, 3, 10)
MIDNIGHT = datetime(2026, 3, 10, tzinfo=ZONE)


class ModelEntry(NamedTuple):
    completed_at: datetime
    transaction_id: int
    position: int
    debit: int
    credit: int
    amount: int


class Movement(NamedTuple):
    """Transaction to insert: when it is created, how long it is held, and its entries."""

    created_at: datetime
    held_for: timedelta
    id_lead: timedelta  # difference between the time in the ID and `created_at`
    entries: list[tuple[int, int, int]]  # indexes of two accounts, and an amount


#: Times on a few days, most of them at the start of a day.
moments = st.one_of(
    st.builds(
        lambda day, offset: MIDNIGHT + timedelta(days=day, microseconds=offset),
        st.integers(0, 4),
        st.sampled_from([-1_000_000, -1, 0, 0, 1, 1_000, 3_600_000_000]),
    ),
    st.builds(lambda minutes: MIDNIGHT + timedelta(minutes=minutes), st.integers(0, 5 * 1440)),
)
movements = st.builds(
    Movement,
    created_at=moments,
    held_for=st.sampled_from([timedelta(0)] * 4 + [timedelta(hours=7), timedelta(days=2)]),
    id_lead=st.sampled_from([timedelta(0), timedelta(seconds=-5), timedelta(minutes=29)]),
    entries=st.lists(
        st.tuples(st.integers(0, 8), st.integers(0, 8), st.integers(1, 10**9)).filter(
            lambda entry: entry[0] != entry[1]
        ),
        min_size=1,
        max_size=3,
    ),
)


class Books:
    """Database with accounts of every kind, to which random transactions are added."""

    def __init__(self, driver: LedgerDriver) -> None:
        self.database = driver.database
        self.entries: list[ModelEntry] = []
        self.kinds: dict[int, str] = {}
        self._counter = itertools.count()

    async def load_accounts(self) -> None:
        rows = await self.database.fetch("SELECT id, kind FROM accounts ORDER BY id")
        self.kinds = {row["id"]: row["kind"] for row in rows}
        assert set(self.kinds.values()) == set(AccountKind)

    async def add(self, movement: Movement) -> None:
        accounts = list(self.kinds)
        completed_at = movement.created_at + movement.held_for
        id_time = movement.created_at + movement.id_lead
        transaction_id = first_id_at(id_time) + next(self._counter)
        entries = [
            ModelEntry(
                completed_at, transaction_id, position, accounts[debit], accounts[credit], amount
            )
            for position, (debit, credit, amount) in enumerate(movement.entries)
        ]
        self.entries += entries
        async with self.database.transaction() as tx:
            await tx.execute(
                """INSERT INTO transactions (id, type, status, channel, amount, fee_amount,
                                             currency, from_account, to_account, created_at,
                                             completed_at)
                   VALUES ($1, 'transfer', 'completed', 'admin', 1, 0, 'SLE', $2, $3, $4, $5)""",
                transaction_id,
                entries[0].debit,
                entries[0].credit,
                movement.created_at,
                None if movement.held_for else completed_at,
            )
            await tx.execute(
                "UPDATE transactions SET completed_at = $2 WHERE id = $1",
                transaction_id,
                completed_at,
            )
            for entry in entries:
                await tx.execute("INSERT INTO entries VALUES ($1, $2, $3, $4, $5)", *entry[1:])
                await tx.execute(
                    """UPDATE accounts SET balance = balance + CASE id WHEN $1 THEN -$3::bigint
                                                                   ELSE $3 END
                       WHERE id IN ($1, $2) AND checked""",
                    entry.debit,
                    entry.credit,
                    entry.amount,
                )

    def sum_before(self, end: datetime | None) -> dict[str, int]:
        """Return the balances by kind, calculated one entry at a time."""
        balances = dict.fromkeys(AccountKind, 0)
        for entry in self.entries:
            if end is None or entry.completed_at < end:
                balances[AccountKind(self.kinds[entry.debit])] -= entry.amount
                balances[AccountKind(self.kinds[entry.credit])] += entry.amount
        return {str(kind): balance for kind, balance in balances.items()}

    def list_day(self, day: date) -> list[tuple[str, int, str, str, str]]:
        """Return a day's journal: transaction, position, account, debit, credit."""
        zero, rows = "0.00", []
        for entry in sorted(self.entries, key=lambda entry: entry[1:3]):
            if entry.completed_at.astimezone(ZONE).date() == day:
                amount = money.format_decimal(entry.amount, "SLE")
                start = (ids.encode(ids.TRANSACTION, entry.transaction_id), entry.position)
                rows.append((*start, ids.encode(ids.ACCOUNT, entry.debit), amount, zero))
                rows.append((*start, ids.encode(ids.ACCOUNT, entry.credit), zero, amount))
        return rows

    async def export_day(self, day: date, limit: int) -> list[tuple[str, int, str, str, str]]:
        """Return a day's journal, exported as files with at most `limit` transactions."""
        rows: list[Any] = []
        cursor = None
        while True:
            query = JournalQuery(day=day.isoformat(), limit=limit, cursor=cursor)
            file = await journal.export_journal(
                self.database, query, BRANDING, zone=ZONE, currency="SLE"
            )
            page = msgspec.json.decode(file.content)
            assert (page["next_cursor"], page["has_more"]) == (
                file.next_cursor,
                file.next_cursor is not None,
            )
            assert {row["date"] for row in page["data"]} <= {day.isoformat()}
            rows += page["data"]
            cursor = file.next_cursor
            if cursor is None:
                names = ("transaction_id", "entry", "account_id", "debit", "credit")
                return [tuple(row[name] for name in names) for row in rows]


@pytest.fixture
async def books(database_url: str, database: Database) -> AsyncIterator[Books]:
    driver = await LedgerDriver.open(database_url, database)
    try:
        await driver.create_subscriber()
        await driver.create_subscriber()
        await driver.create_agent()
        await driver.create_processor()
        await driver.create_partner()
        # Random entries overdraw any account.
        await database.execute("UPDATE accounts SET overdraft = 1000000000000 WHERE checked")
        books = Books(driver)
        await books.load_accounts()
        yield books
    finally:
        await driver.close()


@settings(max_examples=limit_examples(40))
@given(
    added=st.lists(movements, min_size=1, max_size=4),
    ends=st.lists(moments, min_size=1, max_size=4),
    day=st.integers(-1, 6),
    limit=st.integers(1, 5),
)
async def test_reports_and_journal_agree_with_the_model(
    books: Books, added: list[Movement], ends: list[datetime], day: int, limit: int
) -> None:
    for movement in added:
        await books.add(movement)
    for end in (None, *ends):
        _, totals = await queries.load_totals(books.database, end)
        balances = {kind: total.balance for kind, total in totals.items()}
        assert balances == books.sum_before(end)
        assert sum(balances.values()) == 0
    probed_day = FIRST_DAY + timedelta(days=day)
    assert await books.export_day(probed_day, limit) == books.list_day(probed_day)


async def test_held_payment_counts_on_the_day_of_its_release(
    database_url: str, database: Database
) -> None:
    driver = await LedgerDriver.open(database_url, database)
    try:
        await database.execute(
            """UPDATE compliance_rules SET threshold = 100000, action = 'review'
               WHERE type = 'AMOUNT_THRESHOLD' AND subject = 'payer'"""
        )
        driver.ledger.invalidate_rules()
        subscriber = await driver.create_subscriber(20_000_00, kyc_level=3)
        merchant = await driver.create_processor()
        payment = build_payment(subscriber, merchant, 5_000_00, payer_pin=PIN)
        held = (await driver.submit(payment)).require_accepted()
        assert held.status == chart.UNDER_REVIEW
        driver.clock.advance(days=1)
        release = ReviewDecision(transaction_id=held.transaction_id, release=True)
        (await driver.submit(release)).require_accepted()
        first_day = START.date()
        for day, settled, fee, rows in (
            (first_day, 0, 0, 2),
            (first_day + timedelta(days=1), 4_950_00, 50_00, 4),
        ):
            end = datetime(day.year, day.month, day.day, tzinfo=UTC) + timedelta(days=1)
            _, totals = await queries.load_totals(database, end)
            assert totals[chart.SETTLEMENT].balance == settled
            assert totals[chart.FEES].balance == fee
            query = JournalQuery(day=day.isoformat())
            file = await journal.export_journal(
                database, query, BRANDING, zone=ZoneInfo("UTC"), currency="SLE"
            )
            assert len(msgspec.json.decode(file.content)["data"]) == rows
        await require_balanced_books(database)
    finally:
        await driver.close()
