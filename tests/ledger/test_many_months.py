"""A payment's cost does not depend on the number of months in the ledger."""

import asyncio
from collections import Counter
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

import pytest

from builders.auth import FakeClock
from builders.ledger import (
    START,
    LedgerDriver,
    build_cash_in,
    build_cash_out,
    build_p2p,
    build_payment,
    build_refund,
    build_request_key,
    require_balanced_books,
)
from tapgate.auth.principals import Principal
from tapgate.business.payments.transactions.queries import TransactionQuery, list_page
from tapgate.business.payments.wallets.statements.queries import load_activity
from tapgate.core.id_generator import first_id_at
from tapgate.ledger.maintenance import ensure_partitions
from tapgate.runtime.store import partitions
from tapgate.runtime.store.database import Database
from tapgate.runtime.store.partitions import get_month_start
from tapgate_client.clock import get_platform_day
from tapgate_client.schemas.transactions import TransactionFilters

_SCANNED = """
    SELECT relname FROM pg_stat_user_tables
    WHERE relname ~ '^(transactions|entries)_20' AND seq_scan + coalesce(idx_scan, 0) > 0"""
_END_OTHER_SESSIONS = """
    SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid()"""


async def _create_months(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """Create the months from October 2025 to three months after the ledger's clock."""
    monkeypatch.setattr(partitions, "MONTHS_AHEAD", 8)
    await ensure_partitions(database, datetime(2025, 10, 1, tzinfo=UTC))


async def _read_newest(database: Database, account_id: int, now: datetime) -> None:
    """Read a page of transactions and the day's statement."""
    scope, admin = TransactionQuery(), Principal(kind="admin", id="adm_1", name="Ada", admin_id=1)
    scope.include_accounts([account_id])
    page, _ = await list_page(
        database, scope, TransactionFilters(limit=3), admin, now=now, zone=ZoneInfo("UTC")
    )
    assert len(page) == 4
    day = datetime.combine(now.date(), time(), UTC)
    assert (await load_activity(database, account_id, day, now + timedelta(days=1))).movements


async def test_payments_and_reads_use_only_partitions_of_recent_months(
    database_url: str, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    await _create_months(database, monkeypatch)
    ledger = await LedgerDriver.open(database_url, database)
    payer, other = await ledger.create_subscriber(100_00), await ledger.create_subscriber()
    merchant, agent = await ledger.create_processor(10_00), await ledger.create_agent(100_00)
    await database.execute("SELECT pg_stat_reset()")
    key = build_request_key("one")
    payment = await ledger.submit(build_payment(payer, merchant, 5_00, idempotency_key=key))
    payment_id = payment.require_accepted().transaction_id
    for command in (
        build_payment(payer, merchant, 5_00, idempotency_key=key),
        build_refund(merchant, payment_id, 1_00),
        build_p2p(payer, other, 1_00),
        build_cash_out(agent, payer, 3_00),
        build_cash_in(agent, payer, 4_00),
    ):
        (await ledger.submit(command)).require_accepted()
    await ledger.close()
    assert min(name[-7:] for name in await _list_scanned(database)) == f"{START:%Y_%m}"
    await database.execute("SELECT pg_stat_reset()")
    reader = await Database.connect(database_url)
    await _read_newest(reader, await ledger.get_account_id(payer), ledger.clock.now)
    await reader.close()
    # A page is read from the last 31 days, and often from the newest month only.
    previous = get_month_start(START, -1)
    assert min(name[-7:] for name in await _list_scanned(database)) >= f"{previous:%Y_%m}"
    await require_balanced_books(database)


async def _list_scanned(database: Database) -> set[str]:
    """Return the partitions that sessions have read.

    A session reports its statistics when it ends, before it leaves the list of sessions.
    """
    async with asyncio.timeout(30):
        while await database.fetchval(_END_OTHER_SESSIONS):
            await asyncio.sleep(0.05)
    return {row["relname"] for row in await database.fetch(_SCANNED)}


@pytest.mark.parametrize("zone", ["Pacific/Kiritimati", "America/Los_Angeles", "Africa/Freetown"])
async def test_payments_around_the_end_of_a_month_are_all_found(
    database_url: str, database: Database, zone: str
) -> None:
    """Partitions end at midnight UTC, and days and statements at midnight in the time zone."""
    end = datetime(2026, 4, 1, tzinfo=UTC)
    await ensure_partitions(database, START)
    ledgers = [
        await LedgerDriver.open(database_url, database, FakeClock(START), zone, slot)
        for slot in (1, 2)
    ]
    await database.execute("UPDATE compliance_rules SET status = 'inactive'")
    payer = await ledgers[0].create_subscriber(500_00)
    merchant = await ledgers[0].create_processor()
    amounts: Counter[date] = Counter()
    for milliseconds in range(-4, 4):
        # The second process's clock is two milliseconds behind.
        for ledger, delay in zip(ledgers, (0, 2), strict=True):
            ledger.clock.now = end + timedelta(milliseconds=milliseconds - delay)
            amounts[get_platform_day(ledger.clock.now, ZoneInfo(zone))] += 3
        await asyncio.gather(
            *(ledger.submit(build_payment(payer, merchant, 1)) for ledger in ledgers * 3)
        )
    rows = await database.fetch(
        """SELECT tableoid::regclass::text AS name, id, usage_day FROM transactions
           WHERE type = 'pos_payment' AND status = 'completed'"""
    )
    assert len(rows) == 48
    assert {row["name"] for row in rows} == {"transactions_2026_03", "transactions_2026_04"}
    for row in rows:
        assert (row["name"] == "transactions_2026_04") == (row["id"] >= first_id_at(end))
    assert {row["usage_day"] for row in rows} == set(amounts)
    account_id = await ledgers[0].get_account_id(payer)
    for day, amount in amounts.items():
        start = datetime.combine(day, time(), ZoneInfo(zone))
        activity = await load_activity(database, account_id, start, start + timedelta(days=1))
        assert -sum(movement.amount for movement in activity.movements) == amount
    await require_balanced_books(database)
    for ledger in ledgers:
        await ledger.close()


async def test_payments_continue_without_partitions_of_their_month(
    database_url: str, database: Database
) -> None:
    """The job did not run for a year, and then creates partitions while payments run."""
    await ensure_partitions(database, START)
    ledger = await LedgerDriver.open(database_url, database)
    await database.execute("UPDATE compliance_rules SET status = 'inactive'")
    payer, merchant = await ledger.create_subscriber(500_00), await ledger.create_processor()
    ledger.clock.now = START + timedelta(days=365)

    async def pay(count: int) -> None:
        for _ in range(count):
            (await ledger.submit(build_payment(payer, merchant, 1))).require_accepted()

    await pay(3)
    assert await database.fetchval("SELECT count(*) FROM transactions_overflow") == 3
    created, _ = await asyncio.gather(ensure_partitions(database, ledger.clock.now), pay(40))
    assert created
    ledger.clock.now += timedelta(days=40)
    await pay(3)
    assert await database.fetchval("SELECT count(*) FROM transactions_overflow") == 0
    assert await database.fetchval("SELECT count(*) FROM entries") == 46 + 1
    await require_balanced_books(database)
    await ledger.close()
