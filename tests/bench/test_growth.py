"""Growth benchmark at small scale.

The generated history matches what the ledger would have written, month by month, and the page shows
the stored results. The phases come from the payment benchmark, which is tested separately.
"""

import sys
from collections import Counter, defaultdict
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import asyncpg
import pytest

from bench.runner import ROOT, run_benchmark
from harness import Harness
from tapgate.core.id_generator import first_id_at
from tapgate.http.api.services import Services
from tapgate.ledger import chart, commands
from tapgate.ledger.commands import Command, ScopedIdempotencyKey, decode_result
from tapgate.ledger.maintenance import ensure_partitions
from tapgate.ledger.pins.pin_verifier import StoredPin
from tapgate.ledger.verification.verify import verify
from tapgate_client.clock import system_clock

CARD_COUNT, ACCOUNT_COUNT, ENTRY_COUNT = 100, 1_000, 5_000


async def build_history(services: Services, connection: asyncpg.Connection) -> Any:
    """Build a dataset with a history.

    Returns the card with the longest history and a generation summary.
    """
    from bench.growth.fill import DatabaseFiller
    from bench.growth.results import Sizes
    from bench.payments import dataset

    data = await dataset.build(services, cards=CARD_COUNT, processors=2)
    processors = await services.database.fetch("SELECT id FROM processors ORDER BY id")
    for number, processor in enumerate(processors):
        payment = Command(
            type=chart.POS_PAYMENT,
            channel="pos",
            payer=commands.card_party(data.cards[number].serial),
            payee=commands.processor_party(processor["id"]),
            amount=10_000,
            payer_pin=data.cards[number].pin,
            idempotency_key=ScopedIdempotencyKey(
                data.terminals[number].id, str(uuid4()), b"fingerprint"
            ),
            context={"merchant_name": "Kamara Stores"},
        )
        (await services.ledger.submit(payment)).require_accepted()
    sizes = Sizes(
        accounts=ACCOUNT_COUNT,
        entries=ENTRY_COUNT,
        cards=CARD_COUNT,
        processors=2,
        workers=1,
        seconds=1.0,
        rounds=1,
    )
    filler = DatabaseFiller(connection, services.settings, sizes, lambda line: None)
    return data.cards[0], await filler.run(data.cards[0])


async def test_generated_history_matches_what_the_ledger_would_have_written(
    services: Services, harness: Harness, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", [*sys.path, str(ROOT)])
    from bench.growth.months import create_past_months

    await harness.create_admin()
    connection = await asyncpg.connect(database_url)
    try:
        now = system_clock()
        await ensure_partitions(services.database, now)
        await create_past_months(connection, now - timedelta(days=366))
        indexes = "SELECT indexname, indexdef FROM pg_indexes ORDER BY indexname"
        before = await connection.fetch(indexes)
        frequent_payer, filled = await build_history(services, connection)
        assert await connection.fetch(indexes) == before
        assert (await verify(connection)).is_valid
        await assert_balances_match_entries(connection)
        await assert_payments_look_real(connection)
        await assert_cardholder_can_pay(services, connection)
        assert await connection.fetchval("SELECT count(*) FROM transactions_initial") == 0
        stored = await connection.fetchval(
            "SELECT count(*) = (SELECT count(request_id) FROM transactions) FROM idempotency_keys"
        )
        assert stored
        entries = await connection.fetchval("SELECT count(*) FROM entries")
    finally:
        await connection.close()
    assert entries == pytest.approx(ENTRY_COUNT, rel=0.05)
    assert filled.longest_history == pytest.approx(2 * filled.payments / 10, rel=0.1)
    assert frequent_payer.serial.startswith("BENCH-")


async def assert_balances_match_entries(connection: asyncpg.Connection) -> None:
    """Compare the balances recorded in each transaction with the sums of all entries up to it."""
    checked = {row["id"] for row in await connection.fetch("SELECT id FROM accounts WHERE checked")}
    entries_by_transaction = defaultdict(list)
    for entry in await connection.fetch("SELECT * FROM entries ORDER BY transaction_id, position"):
        entries_by_transaction[entry["transaction_id"]].append(entry)
    balances: Counter[int] = Counter()
    for row in await connection.fetch("SELECT * FROM transactions ORDER BY id"):
        for entry in entries_by_transaction[row["id"]]:
            balances[entry["debit_account"]] -= entry["amount"]
            balances[entry["credit_account"]] += entry["amount"]
        for side in ("from", "to"):
            account = row[f"{side}_account"]
            assert row[f"{side}_balance"] == (balances[account] if account in checked else None)
            assert balances[account] >= 0 or account not in checked


async def assert_payments_look_real(connection: asyncpg.Connection) -> None:
    rows = await connection.fetch(
        """SELECT t.*, payee.public_name AS payee FROM transactions t
           JOIN accounts payee ON payee.id = t.to_account ORDER BY t.id"""
    )
    now = system_clock()
    recent = [row for row in rows if row["created_at"] > now - timedelta(hours=1)]
    past = [row for row in rows if row["created_at"] < now - timedelta(days=1)]
    assert len(recent) + len(past) == len(rows)
    assert min(row["created_at"] for row in past) > now - timedelta(days=367)
    months = {row["created_at"].strftime("%Y-%m") for row in past}
    assert len(months) >= 12
    real = {row["type"]: row for row in recent}
    for row in past:
        assert first_id_at(row["created_at"]) <= row["id"]
        assert row["id"] < first_id_at(row["created_at"] + timedelta(milliseconds=1))
        result = decode_result(row["answer"])
        assert result.transaction_id == row["id"]
        assert (result.amount, result.fee) == (row["amount"], row["fee_amount"])
        assert result.payee_name == row["payee"]
        assert result.payer_available == row["from_balance"]
        if row["type"] == chart.POS_PAYMENT:
            assert list_filled_columns(row) == list_filled_columns(real[row["type"]])
        else:
            assert result.payee_available == row["to_balance"]


def list_filled_columns(row: asyncpg.Record) -> set[str]:
    return {name for name, value in row.items() if value is not None}


async def assert_cardholder_can_pay(services: Services, connection: asyncpg.Connection) -> None:
    """Pay with a generated card, whose PIN verifier was copied from a real card."""
    row = await connection.fetchrow(
        """SELECT cards.serial, pins.* FROM cards JOIN pins ON holder_id = pin_holder_id
           WHERE uid IS NOT NULL ORDER BY cards.id LIMIT 1"""
    )
    stored = StoredPin(row["key_id"], row["salt"], row["verifier"])
    every_pin = (f"{number:04}" for number in range(10_000))
    pin = next(pin for pin in every_pin if services.pin_verifier.matches(stored, pin))
    processor_id = await connection.fetchval("SELECT min(id) FROM processors")
    payment = Command(
        type=chart.POS_PAYMENT,
        channel="pos",
        payer=commands.card_party(row["serial"]),
        payee=commands.processor_party(processor_id),
        amount=1_000,
        payer_pin=pin,
        pin_policy="required",
    )
    (await services.ledger.submit(payment)).require_accepted()
    assert (await verify(connection)).is_valid


async def test_page_matches_the_stored_results(public_tmp_path: Path) -> None:
    stored = [Path("bench/results/growth.json"), Path("docs/benchmark-details.md")]
    for path in stored:
        (public_tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (public_tmp_path / path).write_bytes((ROOT / path).read_bytes())
    await run_benchmark("bench.growth.report", str(public_tmp_path))
    for path in stored:
        assert (public_tmp_path / path).read_bytes() == (ROOT / path).read_bytes(), path
