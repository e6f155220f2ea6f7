"""Batches paid by processes that are killed, by two processes at once, and large ones."""

import asyncio
import itertools
import random
import resource
import time
from collections.abc import Callable
from typing import Any

import pytest

from builders.batches import (
    build_csv,
    change_batch,
    create_funded_partner,
    get_batch,
    list_lines,
    pay_batches,
    post_batch,
    put_lines,
    start_batch,
)
from builders.ledger import require_balanced_books
from builders.payouts import get_balance, get_platform_balance
from drivers.batch_process import start_process
from harness import Harness
from tapgate.business.finance.batches import worker
from tapgate.business.finance.batches.worker import BatchWorker
from tapgate_client import ids

LINES_PER_KILL = 100


async def create_people(harness: Harness, count: int) -> list[str]:
    """Insert many subscribers at once, and return their phone numbers."""
    async with harness.database.transaction() as tx:
        await tx.execute(
            """INSERT INTO accounts (id, kind, owner_id, holder_name, public_name, currency,
                                     kyc_level, checked)
               SELECT n, 'wallet', n + 1000000, 'Aminata Kamara', 'Aminata K.', 'SLE', 1, true
               FROM generate_series(100001, 100000 + $1) n""",
            count,
            timeout=60,
        )
        await tx.execute(
            """INSERT INTO subscribers (id, account_id, phone_number, first_name, last_name,
                                        created_at, updated_at)
               SELECT n + 1000000, n, '+23276' || n, 'Aminata', 'Kamara', now(), now()
               FROM generate_series(100001, 100000 + $1) n""",
            count,
            timeout=60,
        )
        await tx.execute("ANALYZE accounts, subscribers", timeout=60)
    return [f"+23276{number}" for number in range(100_001, 100_001 + count)]


def build_rows(phones: list[str]) -> list[tuple[str, str, str]]:
    return [(phone, "1", f"EMP-{number}") for number, phone in enumerate(phones, 1)]


async def wait_until(harness: Harness, batch_id: str, is_done: Callable[[Any], bool]) -> Any:
    """Wait for the batch's row to meet a condition, and return the row."""
    async with asyncio.timeout(240):
        while True:
            row = await harness.database.fetchrow(
                "SELECT status, paid + failed AS decided FROM batches WHERE id = $1",
                ids.decode(ids.BATCH, batch_id),
            )
            if is_done(row):
                return row
            await asyncio.sleep(0.01)


async def require_paid_once(harness: Harness, batch_id: str, phones: list[str]) -> None:
    """Require that every line was paid, as exactly one transaction."""
    batch = await get_batch(harness, batch_id)
    assert (batch["status"], batch["paid"]) == ("completed", len(phones))
    rows = await harness.database.fetch(
        """SELECT count(*) AS transactions, count(DISTINCT request_id) AS keys, sum(amount) AS paid
           FROM transactions WHERE type = 'batch_credit' AND status = 'completed'"""
    )
    assert [tuple(row) for row in rows] == [(len(phones), len(phones), len(phones) * 100)]
    paid = await harness.database.fetchval(
        "SELECT count(*) FROM accounts WHERE kind = 'wallet' AND balance = 100"
    )
    assert paid == len(phones)
    await require_balanced_books(harness.database)


async def kill_repeatedly(harness: Harness, kills: int) -> None:
    phones = await create_people(harness, kills * LINES_PER_KILL)
    batch_id = await start_batch(harness, build_rows(phones))
    choose = random.Random(kills)
    decided = 0
    for _ in range(kills):
        process = await start_process(harness.services.settings)
        target = decided + choose.randrange(1, LINES_PER_KILL)
        row = await wait_until(
            harness,
            batch_id,
            lambda row, n=target: row["decided"] >= n or row["status"] != "running",
        )
        process.kill()
        await process.wait()
        decided = row["decided"]
        # Expire the lease.
        await harness.database.execute("UPDATE batches SET leased_until = now()")
    await pay_batches(harness)
    await wait_until(harness, batch_id, lambda row: row["status"] != "running")
    await require_paid_once(harness, batch_id, phones)


async def test_batch_continues_after_its_process_was_killed(harness: Harness) -> None:
    await kill_repeatedly(harness, 2)


async def test_batch_killed_20_times_pays_every_line_once(harness: Harness) -> None:
    await kill_repeatedly(harness, 20)


async def test_two_processes_without_a_lease_pay_every_line_once(harness: Harness) -> None:
    """Even if the lease failed, the ledger would pay every line once."""
    phones = await create_people(harness, 600)
    batch_id = await start_batch(harness, build_rows(phones))
    processes = []
    for count in (1, 2):
        processes.append(await start_process(harness.services.settings))
        await wait_until(harness, batch_id, lambda row, n=count: row["decided"] >= n)
        await harness.database.execute("UPDATE batches SET leased_until = now()")
    await wait_until(harness, batch_id, lambda row: row["status"] != "running")
    for process in processes:
        process.kill()
        await process.wait()
    await require_paid_once(harness, batch_id, phones)


async def test_workers_at_once_pay_every_line_once(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker, "CHUNK_SIZE", 7)
    monkeypatch.setattr(worker, "LEASE", worker.LEASE * 0)
    phones = await create_people(harness, 60)
    batch_id = await start_batch(harness, build_rows(phones))
    workers = [BatchWorker(harness.services) for _ in range(3)]
    while (await get_batch(harness, batch_id))["status"] == "running":
        async with asyncio.timeout(60):
            await asyncio.gather(*(each.pay_next() for each in workers))
    await require_paid_once(harness, batch_id, phones)


async def test_nothing_is_paid_after_a_cancellation_has_answered(harness: Harness) -> None:
    phones = await create_people(harness, 1_000)
    source = await create_funded_partner(harness, "1000")
    batch_id = await start_batch(harness, build_rows(phones), source)
    process = await start_process(harness.services.settings)
    await wait_until(harness, batch_id, lambda row: row["decided"] > 0)
    cancelled = (await change_batch(harness, batch_id, "cancel")).json()
    assert cancelled["status"] == "cancelled"
    assert 0 < cancelled["paid"] < 1_000
    await asyncio.sleep(1)
    process.kill()
    await process.wait()
    batch = await get_batch(harness, batch_id)
    assert (batch["paid"], batch["failed"]) == (cancelled["paid"], 0)
    assert await get_balance(harness, source) == f"{1_000 - batch['paid']}.00"
    skipped = await list_lines(harness, batch_id, status="skipped", order="newest")
    assert skipped[0]["row"] == 1_000
    await require_balanced_books(harness.database)


async def test_batch_of_50000_lines(harness: Harness, record_property: Any) -> None:
    count = 50_000
    phones = await create_people(harness, count)
    steps = [("start", time.monotonic(), get_cpu_seconds())]
    batch_id = (await post_batch(harness)).json()["id"]
    uploaded = await put_lines(harness, batch_id, build_csv(build_rows(phones)))
    assert uploaded.json()["lines"] == count, uploaded.text
    steps.append(("upload", time.monotonic(), get_cpu_seconds()))
    validated = await change_batch(harness, batch_id, "validate")
    assert validated.json()["valid"] == count, validated.text
    steps.append(("validation", time.monotonic(), get_cpu_seconds()))
    await change_batch(harness, batch_id, "run")
    await pay_batches(harness)
    steps.append(("run", time.monotonic(), get_cpu_seconds()))
    figures = [
        f"{name} {end - start:.1f} s ({cpu_end - cpu:.1f} s of CPU time of the gateway)"
        for (_, start, cpu), (name, end, cpu_end) in itertools.pairwise(steps)
    ]
    record_property("figure", f"A batch of 50,000 lines: {', '.join(figures)}")
    batch = await get_batch(harness, batch_id)
    assert (batch["status"], batch["paid"]) == ("completed", count)
    assert await get_platform_balance(harness, "cash") == f"-{count}.00"


def get_cpu_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime
