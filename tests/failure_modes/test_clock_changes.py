"""Failure mode: clock jumps, clock skew, or DST changes reset a limit twice or never."""

import dataclasses
from collections import Counter
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import httpx2
import hypothesis
import pytest
from hypothesis import strategies as st

from builders.auth import assert_seals
from builders.ledger import build_command, build_refund, require_balanced_books
from drivers.actors import require_success
from drivers.deployments import TwoGateways, TwoLedgers
from drivers.in_process import AppTransport
from tapgate.core.id_generator import first_id_at
from tapgate.events.audit.chain import Sealer
from tapgate.ledger import chart, commands
from tapgate.runtime.store.database import Database
from tapgate.server.gateway import create_app
from tapgate_client import ids
from tapgate_client.clock import get_platform_day
from tapgate_client.errors import Code

DAILY_LIMIT = 100
HALF_AN_HOUR = timedelta(minutes=30)

#: Time zone, a time on the day before the change, and the next local day's length in hours.
DST_CHANGES = [
    ("Europe/London", datetime(2026, 3, 28, 12, tzinfo=UTC), 23),
    ("Europe/London", datetime(2026, 10, 24, 12, tzinfo=UTC), 25),
    ("America/New_York", datetime(2026, 3, 7, 17, tzinfo=UTC), 23),
    ("America/New_York", datetime(2026, 10, 31, 17, tzinfo=UTC), 25),
    # A half-hour change, a change at midnight (the day begins at 01:00), and a skipped day.
    ("Australia/Lord_Howe", datetime(2026, 4, 4, 2, tzinfo=UTC), 24.5),
    ("Africa/Cairo", datetime(2026, 4, 23, 10, tzinfo=UTC), 23),
    ("Pacific/Apia", datetime(2011, 12, 29, 22, tzinfo=UTC), 24),
]


@pytest.mark.parametrize(("zone", "start", "hours"), DST_CHANGES)
async def test_daily_limit_resets_once_at_local_midnight_when_clocks_change(
    database_url: str, database: Database, zone: str, start: datetime, hours: float
) -> None:
    """Treating a 23- or 25-hour day as 24 hours would reset the limit twice or at a wrong time."""
    async with TwoLedgers.open(database_url, database, zone) as ledgers:
        await ledgers.set_limits(daily_limit=DAILY_LIMIT)
        sender, receiver = await ledgers.create_pair(100_00)
        now, spent = start, Counter[date]()
        resets: list[datetime] = []
        while now < start + timedelta(days=2, hours=14):
            ledger = ledgers.ledgers[len(resets) % 2]
            ledger.clock.now = now
            outcome = await ledgers.submit_transfer(ledger, sender, receiver, DAILY_LIMIT)
            if outcome.code is None:
                spent[get_platform_day(now, ZoneInfo(zone))] += DAILY_LIMIT
                resets.append(now)
            else:
                assert outcome.code == Code.DAILY_LIMIT_EXCEEDED
            now += HALF_AN_HOUR
    # Exactly one transfer per day; from the second day on, it is the day's first attempt.
    assert set(spent.values()) == {DAILY_LIMIT}
    assert all(_is_first_attempt_of_day(reset_at, zone) for reset_at in resets[1:])
    assert len(resets) >= 3
    assert resets[2] - resets[1] == timedelta(hours=hours)
    await require_balanced_books(database)


def _is_first_attempt_of_day(at: datetime, zone: str) -> bool:
    time_zone = ZoneInfo(zone)
    return get_platform_day(at - HALF_AN_HOUR, time_zone) < get_platform_day(at, time_zone)


async def test_daily_limit_resets_once_when_midnight_occurs_twice(
    database_url: str, database: Database
) -> None:
    """In St. John's, clocks went back at 00:01 on Sunday, so Saturday resumed for 59 minutes."""
    zone, minute = "America/St_Johns", timedelta(minutes=1)
    first_midnight = datetime(2006, 10, 29, 2, 30, tzinfo=UTC)
    assert get_platform_day(first_midnight, ZoneInfo(zone)) == date(2006, 10, 29)
    assert get_platform_day(first_midnight + minute, ZoneInfo(zone)) == date(2006, 10, 28)
    async with TwoLedgers.open(database_url, database, zone) as ledgers:
        await ledgers.set_limits(daily_limit=DAILY_LIMIT)
        sender, receiver = await ledgers.create_pair(100_00)
        accepted = []
        for number in range(-5, 70):
            ledger = ledgers.ledgers[number % 2]
            ledger.clock.now = first_midnight + number * minute
            outcome = await ledgers.submit_transfer(ledger, sender, receiver, DAILY_LIMIT)
            if outcome.code is None:
                accepted.append(number)
    assert accepted == [-5, 0]
    await require_balanced_books(database)


async def test_clock_skew_around_midnight_does_not_grant_one_day_two_limits(
    two_ledgers: TwoLedgers,
) -> None:
    """One clock is just before midnight and the other just after it."""
    await two_ledgers.set_limits(daily_limit=DAILY_LIMIT)
    sender, receiver = await two_ledgers.create_pair(100_00)
    midnight = datetime(2026, 3, 11, tzinfo=UTC)
    two_ledgers.first.clock.now = midnight + timedelta(seconds=1)
    two_ledgers.second.clock.now = midnight - timedelta(seconds=1)
    # The first process has already used part of the new day's limit.
    assert (await two_ledgers.submit_transfer(two_ledgers.first, sender, receiver, 10)).code is None
    codes = [
        (await two_ledgers.submit_transfer(two_ledgers.second, sender, receiver, 30)).code
        for _ in range(5)
    ]
    assert codes == [None] * 3 + [Code.DAILY_LIMIT_EXCEEDED] * 2


async def test_concurrent_transfers_with_clock_skew_around_midnight_stay_within_two_daily_limits(
    two_ledgers: TwoLedgers,
) -> None:
    """The order in which the two processes execute the transfers is undefined."""
    await two_ledgers.set_limits(daily_limit=DAILY_LIMIT)
    sender, receiver = await two_ledgers.create_pair(100_00)
    midnight = datetime(2026, 3, 11, tzinfo=UTC)
    two_ledgers.first.clock.now = midnight + timedelta(seconds=1)
    two_ledgers.second.clock.now = midnight - timedelta(seconds=1)
    codes = await two_ledgers.submit_concurrently(sender, receiver, 10, times=60)
    # In any order: at most two daily limits in total, and at most one per day.
    assert 10 <= codes[None] <= 20
    by_day = await two_ledgers.first.database.fetch(
        """SELECT usage_day, sum(amount)::bigint AS spent FROM transactions
           WHERE usage_day IS NOT NULL AND status = 'completed' GROUP BY 1 ORDER BY 1"""
    )
    assert all(row["spent"] <= DAILY_LIMIT for row in by_day)
    for ledger in two_ledgers.ledgers:
        code = (await two_ledgers.submit_transfer(ledger, sender, receiver, DAILY_LIMIT)).code
        assert code == Code.DAILY_LIMIT_EXCEEDED


steps = st.lists(
    st.tuples(
        st.integers(0, 1),
        st.sampled_from([0, 0, 0, 0, 0, -86_400, -3_600, -1, 1, 3_600, 86_400, 35 * 86_400]),
        st.sampled_from([1, 30, 50, 60, DAILY_LIMIT]),
        st.sampled_from([False, False, False, True]),
    ),
    min_size=12,
    max_size=30,
)


@hypothesis.given(steps)
@hypothesis.settings(max_examples=20)
async def test_clock_jumps_never_grant_a_day_two_limits(
    two_ledgers: TwoLedgers, plan: list[tuple[int, int, int, bool]]
) -> None:
    """Either clock jumps back by up to a day or forward by up to 35, with refunds in between."""
    ledgers = two_ledgers
    await ledgers.set_limits(daily_limit=DAILY_LIMIT, monthly_limit=3 * DAILY_LIMIT)
    start = datetime(2026, 3, 28, 23, 59, 59, tzinfo=UTC)
    for ledger in ledgers.ledgers:
        ledger.clock.now = start
    payer = await ledgers.first.create_subscriber(100_00)
    merchant = await ledgers.first.create_processor(50_00)
    days, months, paid = {start.date()}, {(2026, 3)}, []
    for process, jump, amount, is_refund in plan:
        ledger = ledgers.ledgers[process]
        ledger.clock.now += timedelta(seconds=jump)
        today = ledger.clock.now.date()
        days.add(today)
        months.add((today.year, today.month))
        if is_refund and paid:
            await ledger.submit(build_refund(merchant, paid.pop(), None))
            continue
        command = commands.Command(
            type=chart.POS_PAYMENT,
            channel="pos",
            payer=commands.subscriber_party(payer),
            payee=commands.processor_party(merchant),
            amount=amount,
        )
        outcome = await ledger.submit(command)
        if outcome.code is None:
            paid.append(outcome.require_accepted().transaction_id)
    rows = await ledgers.first.database.fetch(
        """SELECT t.usage_day, amount - refunded_amount AS spent FROM transactions t
           JOIN accounts a ON a.id = from_account
           WHERE a.owner_id = $1 AND t.usage_day IS NOT NULL AND t.status <> 'failed'""",
        payer,
    )
    by_day, by_month = Counter[date](), Counter[tuple[int, int]]()
    for row in rows:
        by_day[row["usage_day"]] += row["spent"]
        by_month[row["usage_day"].year, row["usage_day"].month] += row["spent"]
    # Usage is counted only on days and in months that a clock showed, and never exceeds a limit.
    assert set(by_day) <= days
    assert set(by_month) <= months
    assert all(spent <= DAILY_LIMIT for spent in by_day.values())
    assert all(spent <= 3 * DAILY_LIMIT for spent in by_month.values())


@pytest.mark.parametrize("days", [1, 40])
async def test_refund_with_a_lower_id_than_its_payment_verifies(
    two_ledgers: TwoLedgers, days: int
) -> None:
    """The refund is in an earlier range than its payment, or even in an earlier partition."""
    ahead, behind = two_ledgers.ledgers
    payer, merchant = await ahead.create_subscriber(100_00), await ahead.create_processor(50_00)
    behind.clock.now -= timedelta(days=days)
    parties = commands.subscriber_party(payer), commands.processor_party(merchant)
    payment = await ahead.submit(build_command(chart.POS_PAYMENT, *parties, 50))
    payment_id = payment.require_accepted().transaction_id
    refund = await behind.submit(build_refund(merchant, payment_id, None))
    assert refund.require_accepted().transaction_id < payment_id
    await require_balanced_books(ahead.database)


async def test_ids_stay_unique_and_follow_the_clock_when_it_goes_back(
    two_ledgers: TwoLedgers,
) -> None:
    """Time-based IDs must neither repeat nor continue from the time before the jump."""
    sender, receiver = await two_ledgers.create_pair(100_00)
    created: list[int] = []
    for jump in (0, 1, -3_600, 0, -86_400, 10, -1, 86_400, 3_589, 0):
        two_ledgers.advance_clocks(seconds=jump)
        now = two_ledgers.first.clock()
        for ledger in two_ledgers.ledgers * 2:
            outcome = await two_ledgers.submit_transfer(ledger, sender, receiver, 1)
            created.append(outcome.require_accepted().transaction_id)
            assert first_id_at(now) <= created[-1] < first_id_at(now + timedelta(minutes=30))
    assert len(set(created)) == len(created)
    assert [ledger_driver.ledger.batch_stats.retries for ledger_driver in two_ledgers.ledgers] == [
        0,
        0,
    ]


async def test_audit_chain_stays_valid_when_the_clock_goes_back(two_gateways: TwoGateways) -> None:
    """The chain is ordered by sequence, so an entry with an earlier timestamp must not break it."""
    services = two_gateways.harness.services
    now = services.clock()
    merchant = await two_gateways.create_merchant()
    for jump in (timedelta(0), timedelta(hours=-1), timedelta(days=-1), timedelta(hours=2)):
        other = dataclasses.replace(services, clock=lambda jump=jump: now + jump)
        transport = AppTransport(create_app(other))
        async with httpx2.AsyncClient(transport=transport, base_url="http://g") as client:
            ada = two_gateways.admin.with_client(client)
            require_success(await ada.post(f"processors/{merchant.id}/suspend", reason="audit"))
            require_success(await ada.post(f"processors/{merchant.id}/activate"))
    unsealed = await services.database.fetchval("SELECT count(*) FROM audit_entries")
    await assert_seals(Sealer(services.database), unsealed)
    verification = require_success(await two_gateways.admin.get("audit/verify"))
    assert verification["valid"]
    assert verification["unsealed"] == 0
    times = await services.database.fetch("SELECT occurred_at FROM audit_entries ORDER BY sequence")
    assert [row[0] for row in times] != sorted(row[0] for row in times), "no clock went back"


async def test_clock_far_ahead_neither_loses_money_nor_grants_extra_allowance(
    two_ledgers: TwoLedgers,
) -> None:
    """One clock is 700 days ahead; the days in between must not grant limits of their own."""
    await two_ledgers.set_limits(daily_limit=DAILY_LIMIT)
    sender, receiver = await two_ledgers.create_pair(100_00)
    ahead, correct = two_ledgers.ledgers
    ahead.clock.now += timedelta(days=700)
    assert (await two_ledgers.submit_transfer(ahead, sender, receiver, DAILY_LIMIT)).code is None
    for _ in range(3):
        code = (await two_ledgers.submit_transfer(correct, sender, receiver, 1)).code
        assert code == Code.DAILY_LIMIT_EXCEEDED
        correct.clock.now += timedelta(days=1)
    assert await correct.get_balance(receiver) == DAILY_LIMIT
    maximum = ids.encode(ids.TRANSACTION, ahead.new_id())
    assert ids.encode(ids.TRANSACTION, correct.new_id()) < maximum
