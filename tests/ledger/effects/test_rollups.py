"""Rollups match the transactions under concurrency, compaction and retries."""

import asyncio
import random
from collections import defaultdict
from collections.abc import AsyncIterator
from datetime import datetime, timedelta
from typing import Any

import pytest

from builders.auth import FakeClock
from builders.ledger import (
    AUDIT,
    PIN,
    START,
    WRONG_PIN,
    LedgerDriver,
    build_cash_in,
    build_p2p,
    build_payment,
    build_refund,
    build_request_key,
    remove_limits,
    require_balanced_books,
)
from tapgate.business.reporting.rollups import RollupCompactor
from tapgate.ledger.commands import LedgerCommand, ReviewDecision
from tapgate.ledger.effects.rollups import get_bucket_start
from tapgate.runtime.store.database import Database
from tapgate_client.errors import ApiError, Code

#: Above the review rule's threshold.
HELD_AMOUNT = 600_000_00
ROLLUP_STATUSES = {"partially_refunded": "completed", "refunded": "completed"}


@pytest.fixture
async def processes(database_url: str, database: Database) -> AsyncIterator[list[LedgerDriver]]:
    """Yield three ledgers, as in three processes, that share a database and a clock."""
    clock = FakeClock(START)
    drivers = [
        await LedgerDriver.open(database_url, database, clock, slot=slot) for slot in (1, 2, 3)
    ]
    try:
        await remove_limits(drivers[0])
        for ledger in drivers:
            ledger.ledger.invalidate_rules()
        yield drivers
        await require_balanced_books(database)
    finally:
        for ledger in drivers:
            await ledger.close()


async def read_rollups(database: Database) -> dict[tuple[Any, ...], tuple[int, int, int]]:
    """Return (bucket, type, outcome, code) -> (count, amount, fees), summed over processes."""
    rollups: dict[tuple[Any, ...], list[int]] = defaultdict(lambda: [0, 0, 0])
    for row in await database.fetch("SELECT * FROM figures"):
        totals = rollups[row["quarter"], row["type"], row["outcome"], row["failure_code"]]
        for index, name in enumerate(("count", "amount", "fees")):
            totals[index] += int(row[name])
    return {
        key: (totals[0], totals[1], totals[2]) for key, totals in rollups.items() if any(totals)
    }


async def sum_transactions(database: Database) -> dict[tuple[Any, ...], tuple[int, int, int]]:
    """Compute the expected rollups from the individual transactions."""
    rollups: dict[tuple[Any, ...], tuple[int, int, int]] = {}
    for row in await database.fetch("SELECT * FROM transactions"):
        created: datetime = row["created_at"]
        bucket_start = created - timedelta(
            minutes=created.minute % 15, seconds=created.second, microseconds=created.microsecond
        )
        outcome = ROLLUP_STATUSES.get(row["status"], row["status"])
        key = (bucket_start, row["type"], outcome, row["failure_code"])
        count, amount, fees = rollups.get(key, (0, 0, 0))
        rollups[key] = (count + 1, amount + row["amount"], fees + row["fee_amount"])
    return rollups


class RandomCommands:
    """Random commands over a few accounts, including refunds and review decisions."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.wallets: list[int] = []
        self.merchant = self.agent = 0
        self.transaction_ids: list[int] = []

    async def create_accounts(self, ledger: LedgerDriver) -> None:
        self.wallets = [await ledger.create_subscriber(5_000_000_00) for _ in range(4)]
        self.wallets.append(await ledger.create_subscriber())  # empty, so its payments are declined
        self.merchant, self.agent = (
            await ledger.create_processor(),
            await ledger.create_agent(1_000_00),
        )

    def build_command(self) -> LedgerCommand:
        choose, amount = self.random.choice, self.random.randrange(1, 500_00)
        fields: dict[str, Any] = {}
        if self.random.random() < 0.5:  # few keys, so some commands are replays
            fields["idempotency_key"] = build_request_key(f"request-{self.random.randrange(60)}")
        builders: list[Any] = [
            lambda: build_payment(choose(self.wallets), self.merchant, amount, **fields),
            lambda: build_p2p(choose(self.wallets), choose(self.wallets), amount, **fields),
            lambda: build_p2p(
                choose(self.wallets), choose(self.wallets), HELD_AMOUNT + amount, **fields
            ),
            lambda: build_payment(
                choose(self.wallets), self.merchant, amount, payer_pin=choose([PIN, WRONG_PIN])
            ),
            lambda: build_cash_in(self.agent, choose(self.wallets), amount),
        ]
        if self.transaction_ids:
            transaction_id = choose(self.transaction_ids)
            builders += [
                lambda: build_refund(self.merchant, transaction_id, choose([None, 1_00, amount])),
                lambda: ReviewDecision(
                    transaction_id=transaction_id, release=choose([True, False])
                ),
                lambda: ReviewDecision(
                    transaction_id=transaction_id, release=choose([True, False])
                ),
            ]
        command: LedgerCommand = choose(builders)()
        return command

    async def submit(self, ledger: LedgerDriver) -> None:
        outcome = await ledger.submit(self.build_command())
        if outcome.result is not None:
            self.transaction_ids.append(outcome.result.transaction_id)


@pytest.mark.parametrize("seed", range(4))
async def test_rollups_match_random_commands_of_three_processes(
    processes: list[LedgerDriver], seed: int
) -> None:
    commands, first = RandomCommands(seed), processes[0]
    await commands.create_accounts(first)
    compactor = RollupCompactor(first.database, first.clock)
    for _ in range(6):
        submissions = [commands.submit(commands.random.choice(processes)) for _ in range(40)]
        await asyncio.gather(compactor.compact(), *submissions)
        assert await read_rollups(first.database) == await sum_transactions(first.database)
        first.clock.now += timedelta(minutes=commands.random.choice([3, 20, 300]))
    outcomes = {key[2] for key in await sum_transactions(first.database)}
    assert outcomes == {"completed", "failed", "under_review"}
    await compactor.compact()
    assert await read_rollups(first.database) == await sum_transactions(first.database)


@pytest.mark.parametrize("release", [True, False])
async def test_review_decision_counts_in_the_bucket_of_the_original_request(
    processes: list[LedgerDriver], release: bool
) -> None:
    first, second, _ = processes
    sender, receiver = await first.create_subscriber(1_000_000_00), await first.create_subscriber()
    bucket_start = get_bucket_start(first.clock())
    held = (await first.submit(build_p2p(sender, receiver, HELD_AMOUNT))).require_accepted()
    counts = {key: totals[0] for key, totals in (await read_rollups(first.database)).items()}
    assert counts[bucket_start, "transfer_p2p", "under_review", None] == 1
    first.clock.now += timedelta(hours=5)
    await second.submit(ReviewDecision(transaction_id=held.transaction_id, release=release))
    decided = {
        key: totals
        for key, totals in (await read_rollups(first.database)).items()
        if totals[1] == HELD_AMOUNT
    }
    outcome = ("completed", None) if release else ("failed", str(Code.COMPLIANCE_REJECTED))
    assert decided == {(bucket_start, "transfer_p2p", *outcome): (1, HELD_AMOUNT, held.fee)}


async def test_refunded_payment_still_counts_as_completed(ledger: LedgerDriver) -> None:
    payer, merchant = await ledger.create_subscriber(100_00), await ledger.create_processor()
    payment = (await ledger.submit(build_payment(payer, merchant, 10_00))).require_accepted()
    await ledger.submit(build_refund(merchant, payment.transaction_id, None))
    rollups = {key[1:]: totals[:2] for key, totals in (await read_rollups(ledger.database)).items()}
    assert rollups["pos_payment", "completed", None] == (1, 10_00)
    assert rollups["refund", "completed", None] == (1, 10_00)


async def test_batch_updates_rollups_in_one_statement(
    ledger: LedgerDriver, statements: list[str]
) -> None:
    payer, merchant = await ledger.create_subscriber(100_00), await ledger.create_processor()
    commands = [build_payment(payer, merchant, amount) for amount in (10_00, 20_00, 500_00, 5_00)]
    await ledger.submit_batch(commands)
    assert len([sql for sql in statements if "figures" in sql]) == 1
    replays = [build_payment(payer, merchant, 1_00, idempotency_key=build_request_key("one"))] * 2
    await ledger.submit_batch(replays)
    statements.clear()
    await ledger.submit_batch(replays)  # replays are not counted
    assert not [sql for sql in statements if "figures" in sql]


async def test_processes_do_not_block_on_each_others_rollup_rows(
    processes: list[LedgerDriver],
) -> None:
    first, second, _ = processes
    payer, payee = await first.create_subscriber(100_00), await first.create_subscriber()
    await first.submit(build_p2p(payer, payee, 1_00))
    async with first.database.transaction() as tx:
        rows = await tx.fetch("SELECT FROM figures WHERE slot = 1 FOR UPDATE")
        assert rows
        outcome = await second.submit(build_p2p(payer, payee, 1_00))
        assert outcome.require_accepted().status == "completed"


async def test_declines_of_any_amount_are_counted(ledger: LedgerDriver) -> None:
    """Declines move no money, so their sum can exceed the bigint range."""
    payer, merchant = await ledger.create_subscriber(), await ledger.create_processor()
    command = build_payment(payer, merchant, 999_999_999_999_99)
    assert (await ledger.submit(command)).code is not None
    await ledger.database.execute("UPDATE figures SET amount = amount + 9223372036854775807")
    assert (await ledger.submit(command)).code is not None
    await ledger.database.execute("UPDATE figures SET amount = amount - 9223372036854775807")


async def test_compaction_merges_closed_buckets_and_skips_open_and_locked_rows(
    processes: list[LedgerDriver],
) -> None:
    first, second, _ = processes
    payer, payee = await first.create_subscriber(100_00), await first.create_subscriber()
    for ledger in (first, second, first):
        await ledger.submit(build_p2p(payer, payee, 1_00))
    compactor = RollupCompactor(first.database, first.clock)
    slots_sql = "SELECT DISTINCT slot FROM figures WHERE type = 'transfer_p2p' ORDER BY slot"
    await compactor.compact()
    assert [row["slot"] for row in await first.database.fetch(slots_sql)] == [1, 2]
    first.clock.now += timedelta(hours=2)
    async with first.database.transaction() as tx:
        await tx.fetch("SELECT FROM figures WHERE slot = 2 FOR UPDATE")
        await compactor.compact()  # locked rows are skipped
    assert [row["slot"] for row in await first.database.fetch(slots_sql)] == [-1, 2]
    await compactor.compact()
    assert [row["slot"] for row in await first.database.fetch(slots_sql)] == [-1]
    assert await read_rollups(first.database) == await sum_transactions(first.database)


async def test_compaction_concurrent_with_writes_loses_nothing(
    processes: list[LedgerDriver],
) -> None:
    """Two processes compact open buckets, as if the writers' clock had been set back."""
    commands, first = RandomCommands(7), processes[0]
    await commands.create_accounts(first)
    later = first.clock() + timedelta(hours=2)
    compactors = [RollupCompactor(ledger.database, lambda: later) for ledger in processes[:2]]
    done = asyncio.Event()

    async def compact_repeatedly(compactor: RollupCompactor) -> int:
        runs = 0
        while not done.is_set():
            await compactor.compact()
            runs += 1
        return runs

    async def submit(ledger: LedgerDriver) -> None:
        for _ in range(60):
            await commands.submit(ledger)

    compactions = [asyncio.create_task(compact_repeatedly(compactor)) for compactor in compactors]
    await asyncio.gather(*(submit(ledger) for ledger in processes for _ in range(3)))
    done.set()
    assert min(await asyncio.gather(*compactions)) > 1
    assert await read_rollups(first.database) == await sum_transactions(first.database)
    await compactors[0].compact()
    slots = await first.database.fetch("SELECT DISTINCT slot FROM figures")
    assert [row["slot"] for row in slots] == [-1]
    assert await read_rollups(first.database) == await sum_transactions(first.database)


async def test_retried_batch_counts_once(ledger: LedgerDriver) -> None:
    """One command fails, so the batch that counted the other commands rolls back."""
    payer, merchant = await ledger.create_subscriber(100_00), await ledger.create_processor()

    async def raise_error(*_: object) -> None:
        raise RuntimeError("cannot be stored")

    ledger.before_commit = raise_error
    key = build_request_key("same")
    commands = [
        build_payment(payer, merchant, 10_00, idempotency_key=key),
        build_payment(payer, merchant, 20_00, audit=AUDIT),
        build_payment(payer, merchant, 10_00, idempotency_key=key),
        build_payment(payer, merchant, 500_00),
    ]
    outcomes = await asyncio.gather(*map(ledger.submit, commands), return_exceptions=True)
    assert isinstance(outcomes[1], ApiError)
    assert await read_rollups(ledger.database) == await sum_transactions(ledger.database)
    await ledger.ledger.replay_counter.flush(ledger.database)
    assert await ledger.database.fetchval("SELECT sum(count) FROM replays") == 1
