"""Any order of payments, refunds, reviews, archiving and restoring keeps the books right."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import hypothesis
import pytest
from hypothesis import strategies as st

from builders.archive import History
from builders.auth import FakeClock
from builders.ledger import LedgerDriver, build_refund, require_balanced_books
from builders.transfers import create_sender_and_receiver, submit_transfer
from tapgate.business.finance.general_ledger.queries import load_totals
from tapgate.business.payments.wallets.statements.queries import load_activity
from tapgate.ledger.archive.archived import get_end_id
from tapgate.ledger.commands import ReviewDecision
from tapgate.ledger.maintenance import ensure_partitions
from tapgate.ledger.verification import verify
from tapgate.runtime.store import StoreError
from tapgate.runtime.store.database import Database
from tapgate.runtime.store.partitions import get_month_start
from tapgate_client.errors import Code

_FIRST = datetime(2025, 3, 10, 12, tzinfo=UTC)
#: Future transactions would not count as verified.
_LAST = datetime(2026, 9, 1, tzinfo=UTC)


class Office:
    """A ledger whose months are archived and restored between payments."""

    def __init__(self, history: History) -> None:
        self.history = history
        self.ledger = history.ledger
        self.database = history.database
        self.held: list[int] = []
        self.refunded: dict[int, int] = {}

    async def pass_days(self, days: int) -> None:
        self.ledger.clock.now = min(self.ledger.clock.now + timedelta(days=days), _LAST)
        await ensure_partitions(self.database, self.ledger.clock.now)

    async def pay(self, _: int) -> None:
        self.refunded[await self.history.pay()] = 0

    async def refund(self, choice: int) -> None:
        payments = sorted(self.refunded)
        if not payments:
            return
        payment = payments[choice % len(payments)]
        outcome = await self.ledger.submit(build_refund(self.history.merchant, payment, 40))
        if payment < await get_end_id(self.database):
            kept = "SELECT EXISTS (SELECT FROM transactions WHERE id = $1)"
            if not await self.database.fetchval(kept, payment):
                assert outcome.code == Code.NOT_REFUNDABLE
                return
        self.refunded[payment] += 40
        if self.refunded[payment] > 100:
            self.refunded[payment] -= 40
            assert outcome.code == Code.REFUND_EXCEEDS_REMAINING
        else:
            outcome.require_accepted()

    async def hold(self, _: int) -> None:
        sender, receiver = await create_sender_and_receiver(self.ledger)
        held = (await submit_transfer(self.ledger, sender, receiver)).require_accepted()
        self.held.append(held.transaction_id)

    async def review(self, choice: int) -> None:
        if self.held:
            review = ReviewDecision(transaction_id=self.held.pop(0), release=choice % 3 > 0)
            (await self.ledger.submit(review)).require_accepted()

    async def archive(self, choice: int) -> None:
        assert await self.history.verify() == {}
        before = get_month_start(self.ledger.clock.now, -(choice % 2))
        try:
            await self.history.run(before, drop=choice % 3 == 0)
        except StoreError as error:
            # Reviews that are open, or the last days, which are not final yet.
            assert self.held or "is not verified" in str(error)

    async def restore(self, _: int) -> None:
        if await get_end_id(self.database):
            await self.history.restore()

    async def check(self) -> None:
        for full in (False, True):
            assert await self.history.verify(full=full) == {}
        _, totals = await load_totals(self.database, None)
        assert sum(total.balance for total in totals.values()) == 0
        start = get_month_start(self.ledger.clock.now, 0)
        rows = await self.database.fetch("SELECT id, balance FROM accounts WHERE checked")
        for row in rows:
            activity = await load_activity(
                self.database, row["id"], start, start + timedelta(days=62)
            )
            moved = sum(movement.amount for movement in activity.movements)
            assert activity.opening_balance + moved == row["balance"]


@pytest.fixture
async def office(
    database_url: str, database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Office]:
    monkeypatch.setattr(verify, "RANGE_SIZE", 5)
    await ensure_partitions(database, _FIRST)
    ledger = await LedgerDriver.open(database_url, database, FakeClock(_FIRST))
    await database.execute("UPDATE compliance_rules SET status = 'inactive' WHERE action = 'block'")
    history = History(ledger, tmp_path / "archive")
    history.payer = await ledger.create_subscriber(100_000_00)
    history.merchant = await ledger.create_processor(100_00)
    history.payments = []
    yield Office(history)
    await require_balanced_books(database)
    await ledger.close()


steps = st.lists(
    st.tuples(
        st.sampled_from(["pay", "pay", "refund", "hold", "review", "archive", "restore"]),
        st.integers(0, 20),
        st.sampled_from([0, 0, 0, 9, 35]),
    ),
    min_size=4,
    max_size=12,
)


@hypothesis.given(steps)
@hypothesis.settings(max_examples=8)
async def test_books_stay_right_in_any_order(
    office: Office, plan: list[tuple[str, int, int]]
) -> None:
    for name, choice, days in plan:
        await office.pass_days(days)
        await getattr(office, name)(choice)
    await office.check()
