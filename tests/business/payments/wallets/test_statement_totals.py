"""Statements over random histories: opening + credits - debits = closing for every period.

The totals equal a plain sum over all entries.
"""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, date, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import httpx2
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builders.auth import FakeClock
from builders.payments import create_processor, decide_review, set_kyc_level, submit_command
from drivers.in_process import AppTransport
from examples import limit_examples
from harness import Harness
from tapgate.business.payments.wallets.statements.queries import load_activity
from tapgate.core.id_generator import IdGenerator
from tapgate.core.settings import Settings
from tapgate.http.api.services import Services
from tapgate.ledger import chart
from tapgate.ledger.rules.loaded_rules import insert_defaults
from tapgate.server.gateway import create_app, open_gateway_services
from tapgate_client import ids

START = datetime(2026, 3, 1, 22, tzinfo=UTC)
ZONE = ZoneInfo("Africa/Lagos")  # one hour ahead of UTC

STEPS = st.tuples(
    st.sampled_from(["receive", "send", "pay", "refund", "large", "release", "reject"]),
    st.integers(1, 100_000),
    st.sampled_from([0, 0, 1, 7, 24, 300]),  # hours that pass before the step
)


@pytest.fixture
def fake_clock() -> FakeClock:
    return FakeClock(START)


@pytest.fixture
async def services(
    settings: Settings, database_url: str, fake_clock: FakeClock
) -> AsyncIterator[Services]:
    settings = settings.replace(timezone=ZONE)
    async with open_gateway_services(settings, database_url, clock=fake_clock) as services:
        services.new_id.milliseconds = fake_clock.milliseconds
        async with services.transaction() as tx:
            await insert_defaults(tx, settings.currency, IdGenerator(1023))
        yield services


@pytest.fixture
async def client(services: Services) -> AsyncIterator[httpx2.AsyncClient]:
    transport = AppTransport(create_app(services))
    async with httpx2.AsyncClient(transport=transport, base_url="http://gateway") as client:
        yield client


class RandomHistory:
    """Random transactions of one subscriber."""

    def __init__(
        self, harness: Harness, clock: FakeClock, holder: str, recipient: str, merchant: str
    ) -> None:
        self._harness = harness
        self._clock = clock
        self._holder = holder
        self._recipient = recipient
        self._merchant = merchant
        self._held: list[int] = []
        self._paid: list[int] = []

    async def run_step(self, step: str, amount: int, hours: int) -> None:
        self._clock.now += timedelta(hours=hours, milliseconds=7)
        match step:
            case "receive":
                await self._submit(chart.TRANSFER, "cash", self._holder, amount)
            case "send":
                await self._submit(chart.TRANSFER_P2P, self._holder, self._recipient, amount)
            case "pay":
                transaction_ids = await self._submit(
                    chart.POS_PAYMENT, self._holder, self._merchant, amount
                )
                self._paid += transaction_ids
            case "large":
                payer, payee = (self._holder, self._recipient)[:: 1 if amount % 2 else -1]
                self._held += await self._submit(
                    chart.TRANSFER_P2P, payer, payee, 50_000_001 + amount
                )
            case "refund" if self._paid:
                await self._submit(
                    chart.REFUND, self._merchant, self._merchant, amount, original_id=self._paid[-1]
                )
            case "release" | "reject" if self._held:
                held = ids.encode(ids.TRANSACTION, self._held.pop())
                await decide_review(self._harness, held, release=step == "release")

    async def _submit(
        self, kind: str, payer: str, payee: str, minor: int, **more: Any
    ) -> list[int]:
        """Submit a command; return its transaction ID in a list, empty if it was not accepted."""
        amount = f"{minor // 100}.{minor % 100:02d}"
        outcome = await submit_command(self._harness, kind, payer, payee, amount, **more)
        return [outcome.result.transaction_id] if outcome.result and not outcome.code else []


async def _create_subscriber(harness: Harness, key: Any) -> tuple[str, int]:
    """Create a subscriber with an API key, because service signatures use the system clock."""
    body = {
        "phone_number": harness.new_phone_number(),
        "first_name": "Aminata",
        "last_name": "Kamara",
        "pin": "4071",
    }
    response = await harness.post("/api/v1/subscribers", json=body, auth=key)
    assert response.status_code == 201, response.text
    record = response.json()["subscriber"]
    await set_kyc_level(harness, record["id"], 3)
    await submit_command(harness, chart.TRANSFER, "cash", record, "5000000")
    return record["id"], ids.decode(ids.ACCOUNT, record["account_id"]) or 0


async def _list_entries(harness: Harness, account_id: int) -> list[tuple[date, int]]:
    """Return the day and signed amount of every entry in an account."""
    rows = await harness.database.fetch(
        """SELECT t.completed_at, e.amount, e.credit_account
           FROM entries e JOIN transactions t ON t.id = e.transaction_id
           WHERE $1 IN (e.debit_account, e.credit_account)""",
        account_id,
    )
    return [
        (
            row["completed_at"].astimezone(ZONE).date(),
            row["amount"] if row["credit_account"] == account_id else -row["amount"],
        )
        for row in rows
    ]


async def _get_recorded_balance(harness: Harness, account_id: int, before: datetime) -> int:
    """Return the balance recorded by the last transaction before the given time."""
    row = await harness.database.fetchrow(
        """SELECT from_account, from_balance, to_balance FROM transactions
           WHERE $1 IN (from_account, to_account) AND completed_at < $2
           ORDER BY completed_at DESC, id DESC LIMIT 1""",
        account_id,
        before,
    )
    if row is None:
        return 0
    balance = row["from_balance"] if row["from_account"] == account_id else row["to_balance"]
    return int(balance)


async def _assert_statements_add_up(
    harness: Harness,
    clock: FakeClock,
    steps: list[tuple[str, int, int]],
    periods: list[tuple[int, int]],
) -> None:
    key = await harness.create_api_key("subscribers:write", "payments:read")
    merchant = await create_processor(harness)
    today = clock.now.astimezone(ZONE).date()
    (holder, account_id), (recipient, _) = (
        await _create_subscriber(harness, key),
        await _create_subscriber(harness, key),
    )
    history = RandomHistory(harness, clock, holder, recipient, merchant)
    for step in steps:
        await history.run_step(*step)
    entries = await _list_entries(harness, account_id)
    for offset, length in periods:
        first_day = today + timedelta(days=offset)
        last_day = first_day + timedelta(days=length)
        response = await harness.post(
            "/api/v1/wallet/account-statement",
            json={
                "subscriber_id": holder,
                "from_date": first_day.isoformat(),
                "to_date": last_day.isoformat(),
            },
            auth=key,
        )
        assert response.status_code == 200, response.text
        statement = response.json()
        opening, closing, credit, debit = (
            int(statement[name].replace(".", ""))
            for name in ("opening_balance", "closing_balance", "total_credits", "total_debits")
        )
        amounts = [amount for day, amount in entries if first_day <= day <= last_day]
        assert opening + credit - debit == closing
        assert opening == sum(amount for day, amount in entries if day < first_day)
        assert credit == sum(amount for amount in amounts if amount > 0)
        assert debit == -sum(amount for amount in amounts if amount < 0)
        assert len(statement["entries"]) == len(amounts)
        start = datetime.combine(first_day, datetime.min.time(), ZONE)
        assert opening == await _get_recorded_balance(harness, account_id, start)
        running = opening
        for entry in statement["entries"]:
            running += int(entry["credit"].replace(".", "")) - int(entry["debit"].replace(".", ""))
            assert entry["balance"].replace(".", "").lstrip("0") == str(running).lstrip("0")
            assert running >= 0
            assert first_day.isoformat() <= entry["date"] <= last_day.isoformat()
        assert running == closing


async def test_statement_totals_add_up_for_every_period_of_random_histories(
    harness: Harness, fake_clock: FakeClock
) -> None:
    loop = asyncio.get_running_loop()

    @settings(max_examples=limit_examples(40))
    @given(
        st.lists(STEPS, min_size=1, max_size=25),
        st.lists(st.tuples(st.integers(-3, 90), st.integers(0, 60)), min_size=1, max_size=6),
    )
    def check_history(steps: list[tuple[str, int, int]], periods: list[tuple[int, int]]) -> None:
        check = _assert_statements_add_up(harness, fake_clock, steps, periods)
        asyncio.run_coroutine_threadsafe(check, loop).result()

    await asyncio.to_thread(check_history)


async def test_statement_is_a_consistent_snapshot_under_concurrent_transfers(
    harness: Harness, fake_clock: FakeClock
) -> None:
    key = await harness.create_api_key("subscribers:write")
    (holder, account_id), (recipient, _) = (
        await _create_subscriber(harness, key),
        await _create_subscriber(harness, key),
    )
    start, end = fake_clock.now, fake_clock.now + timedelta(days=1)

    async def spend() -> None:
        for _ in range(10):
            await submit_command(harness, chart.TRANSFER_P2P, holder, recipient, "1")

    async def load_repeatedly() -> None:
        for _ in range(20):
            activity = await load_activity(harness.database, account_id, start, end)
            assert activity.opening_balance == 0
            assert len(activity.movements) % 2 == 1  # the deposit, then each amount with its fee

    await asyncio.gather(spend(), load_repeatedly(), load_repeatedly())
