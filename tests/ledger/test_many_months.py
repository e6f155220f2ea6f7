"""The cost of a payment does not depend on the number of months in the ledger."""

import asyncio
from datetime import UTC, datetime

import pytest

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
from tapgate.ledger.maintenance import ensure_partitions
from tapgate.store import partitions
from tapgate.store.database import Database

_SCANNED = """
    SELECT relname FROM pg_stat_user_tables
    WHERE relname ~ '^(transactions|entries)_20' AND seq_scan + coalesce(idx_scan, 0) > 0"""


async def _create_months(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """Create the months from February 2025 to three months after the ledger's clock."""
    monkeypatch.setattr(partitions, "MONTHS_AHEAD", 16)
    await ensure_partitions(database, datetime(2025, 2, 1, tzinfo=UTC))


async def test_payments_read_only_partitions_of_recent_months(
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
    await ledger.close()  # its sessions report their statistics when they end
    async with asyncio.timeout(30):
        while not (rows := await database.fetch(_SCANNED)):
            await asyncio.sleep(0.05)
    assert START.strftime("transactions_%Y_%m") in {row["relname"] for row in rows}
    assert [row["relname"] for row in rows if row["relname"][-7:] < f"{START:%Y_%m}"] == []
    await require_balanced_books(database)
