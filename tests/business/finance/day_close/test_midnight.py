"""Entries written while a day is being closed belong to exactly one day."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from datetime import datetime, timedelta

import pytest

from builders.auth import FakeClock
from builders.ledger import LedgerDriver, build_command
from harness import Harness
from tapgate.auth.actors import Actor
from tapgate.business.finance.day_close.worker import build_closer
from tapgate.ledger import chart
from tapgate.ledger.engine.group_commit import Ledger
from tapgate.ledger.verification.checkpoints import verify_with_checkpoints
from tapgate_client.clock import get_platform_day
from tapgate_client.errors import ApiError, Code

SYSTEM = Actor(record={"type": "system", "id": "test"})
DAYS = 4


@pytest.fixture
async def slow_process(
    dated: Harness, database_url: str, clock: FakeClock
) -> AsyncIterator[LedgerDriver]:
    """Yield the ledger of a process whose clock is five minutes slow."""
    driver = await LedgerDriver.open(
        database_url,
        dated.database,
        SlowClock(clock),
        timezone=dated.services.settings.timezone.key,
        slot=7,
    )
    try:
        yield driver
    finally:
        await driver.close()


class SlowClock(FakeClock):
    def __init__(self, clock: FakeClock) -> None:
        self._clock = clock

    def __call__(self) -> datetime:
        return self._clock() - timedelta(minutes=5)


async def test_entries_written_during_the_close_belong_to_exactly_one_day(
    dated: Harness, slow_process: LedgerDriver, clock: FakeClock
) -> None:
    closer = build_closer(dated.services)
    payer = await slow_process.create_subscriber(90_000_00)
    payee = await slow_process.create_subscriber()
    await dated.disable_compliance_rules()
    slow_process.ledger.invalidate_rules()
    made: list[int] = []
    is_over = False

    async def pay(ledger: Ledger) -> None:
        while not is_over:
            outcome = await ledger.submit(build_command(chart.TRANSFER, payer, payee, 1))
            made.append(outcome.require_accepted().transaction_id)

    payers = [
        asyncio.create_task(pay(ledger))
        for ledger in (dated.services.ledger, slow_process.ledger)
        for _ in range(4)
    ]
    zone = dated.services.settings.timezone
    for _ in range(DAYS):
        clock.now = clock.now.replace(hour=18, minute=14, second=59)
        await asyncio.sleep(0.1)
        day = get_platform_day(clock.now, zone)
        clock.advance(seconds=1)
        await closer.close(day, SYSTEM)
        await asyncio.sleep(0.05)
        clock.advance(hours=12)
    is_over = True
    await asyncio.gather(*payers)
    clock.advance(days=1)
    await closer.close(get_platform_day(clock.now, zone) - timedelta(days=1), SYSTEM)
    closed = await dated.database.fetch("SELECT transaction_ids FROM closed_day_chunks")
    counts = Counter(number for (numbers,) in closed for number in numbers)
    assert set(counts.values()) == {1}
    assert set(made) <= set(counts)
    posted = await dated.database.fetch(
        "SELECT id FROM transactions WHERE completed_at IS NOT NULL"
    )
    assert {row["id"] for row in posted} == set(counts)
    per_day = await dated.database.fetch("SELECT transactions FROM closed_days ORDER BY day")
    assert len(per_day) == DAYS + 1
    assert all(row["transactions"] for row in per_day)
    async with dated.database.connection() as connection:
        verification, _ = await verify_with_checkpoints(connection, dated.services.vault, full=True)
    assert verification.is_valid, verification.findings


async def test_process_with_a_very_slow_clock_refuses_to_post(
    dated: Harness, database_url: str, clock: FakeClock
) -> None:
    slow = FakeClock(clock.now)
    driver = await LedgerDriver.open(
        database_url, dated.database, slow, timezone="Asia/Kathmandu", slot=7
    )
    try:
        payer, payee = await driver.create_subscriber(100_00), await driver.create_subscriber()
        clock.advance(days=1)
        await build_closer(dated.services).close(
            get_platform_day(slow.now, dated.services.settings.timezone), SYSTEM
        )
        with pytest.raises(ApiError, match=Code.SERVICE_UNAVAILABLE):
            await driver.submit(build_command(chart.TRANSFER, payer, payee, 1))
    finally:
        await driver.close()
