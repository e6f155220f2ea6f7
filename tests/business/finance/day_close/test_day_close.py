"""Closing days over HTTP, and the proofs for their transactions."""

import asyncio
import base64
import copy
import hashlib
import json
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from typer.testing import CliRunner

from builders.auth import FakeClock
from cases import each
from harness import Harness, parse_error
from tapgate.auth.actors import Actor
from tapgate.business.finance.day_close import operations, verify_receipt
from tapgate.business.finance.day_close.ledger_keys import rotate_key
from tapgate.business.finance.day_close.verify_receipt import InvalidProofError, verify_proof
from tapgate.business.finance.day_close.worker import DayCloseWorker
from tapgate.cli import app as cli
from tapgate.core.settings.business import DayClose
from tapgate.ledger import chart, commands
from tapgate.ledger.commands import Command, ReviewDecision
from tapgate.ledger.verification.checkpoints import verify_with_checkpoints
from tapgate.ledger.verification.closed_days import CLOSED_DAYS, list_broken_days
from tapgate_client import ids
from tapgate_client.clock import get_platform_day

START = datetime(2026, 3, 10, 12, tzinfo=UTC)
ZONE = ZoneInfo("Asia/Kathmandu")
DAY = "2026-03-10"  # in Kathmandu, when the clock starts
URL = "/api/v1/ledger/days"
SYSTEM = Actor(record={"type": "system", "id": "test"})


async def deposit(harness: Harness, count: int = 1) -> list[str]:
    """Make deposits and return their transaction IDs."""
    subscriber = await harness.create_subscriber()
    outcomes = [
        await harness.services.ledger.submit(
            Command(
                type=chart.TRANSFER,
                channel="admin",
                payer=commands.CASH_PARTY,
                payee=commands.subscriber_party(ids.decode(ids.SUBSCRIBER, subscriber["id"]) or 0),
                amount=100 + number,
            )
        )
        for number in range(count)
    ]
    return [
        ids.encode(ids.TRANSACTION, outcome.require_accepted().transaction_id)
        for outcome in outcomes
    ]


async def close(harness: Harness, day: str) -> dict[str, Any]:
    response = await harness.post(f"{URL}/{day}/close", auth=await harness.create_admin("F"))
    assert response.status_code == 200, response.text
    record: dict[str, Any] = response.json()
    return record


async def get_proof(harness: Harness, transaction_id: str) -> dict[str, Any]:
    response = await harness.get(
        f"/api/v1/transactions/{transaction_id}/proof", auth=await harness.create_admin("S")
    )
    assert response.status_code == 200, response.text
    proof: dict[str, Any] = response.json()
    return proof


async def get_keys(harness: Harness) -> list[dict[str, Any]]:
    response = await harness.get("/.well-known/tapgate-keys")
    keys: list[dict[str, Any]] = response.json()["keys"]
    return keys


async def find_broken_days(harness: Harness) -> list[str]:
    async with harness.database.connection() as connection:
        verification, _ = await verify_with_checkpoints(
            connection, harness.services.vault, full=True
        )
    findings = {finding.invariant: finding.examples for finding in verification.findings}
    return findings[CLOSED_DAYS]


async def test_closed_day_has_all_entries_and_stays_the_same(
    dated: Harness, clock: FakeClock
) -> None:
    await deposit(dated, 3)
    clock.advance(days=1)
    record = await close(dated, DAY)
    assert (record["date"], record["transactions"], record["entries"]) == (DAY, 3, 3)
    assert record["totals"] == [
        {"kind": "cash", "debit": "3.03", "credit": "0.00"},
        {"kind": "wallet", "debit": "0.00", "credit": "3.03"},
    ]
    canonical = json.dumps(record["totals"], sort_keys=True, separators=(",", ":"))
    assert record["totals_hash"] == hashlib.sha256(canonical.encode()).hexdigest()
    assert record["previous_root"] is None
    assert len(bytes.fromhex(record["merkle_root"])) == 32
    assert len(base64.b64decode(record["signature"])) == 64
    clock.advance(days=3)
    await deposit(dated)
    assert await close(dated, DAY) == record
    response = await dated.get(f"{URL}/{DAY}", auth=await dated.create_admin("F"))
    assert response.json() == record
    entries = await dated.get(
        "/api/v1/audit/logs?event=ledger_day.closed", auth=await dated.create_admin("C")
    )
    assert [entry["resource_id"] for entry in entries.json()["data"]] == [DAY]


async def test_closing_a_day_closes_earlier_days_with_entries_in_order(
    dated: Harness, clock: FakeClock
) -> None:
    await deposit(dated)
    clock.advance(days=2)
    await deposit(dated, 2)
    clock.advance(days=3)
    last = await close(dated, "2026-03-14")
    response = await dated.get(f"{URL}?limit=2", auth=await dated.create_admin("A"))
    page = response.json()
    assert [day["date"] for day in page["data"]] == ["2026-03-14", "2026-03-12"]
    response = await dated.get(
        f"{URL}?cursor={page['next_cursor']}", auth=await dated.create_admin("A")
    )
    (first,) = response.json()["data"]
    middle = page["data"][1]
    assert (first["date"], first["previous_root"]) == (DAY, None)
    assert middle["previous_root"] == first["merkle_root"]
    assert (last["transactions"], last["totals"]) == (0, [])
    assert last["merkle_root"] == last["previous_root"] == middle["merkle_root"]
    # A day between closed days has no entries. Its record does not change the chain.
    empty = await close(dated, "2026-03-11")
    assert (empty["transactions"], empty["merkle_root"]) == (0, first["merkle_root"])
    before = await close(dated, "2025-12-31")
    assert (before["merkle_root"], before["previous_root"]) == (None, None)
    assert await find_broken_days(dated) == []


@each(
    "path",
    [
        f"/{DAY}/close",
        "/2026-03-11/close",
        "/2026-02-30/close",
        "/today/close",
        "/0001-01-01/close",
    ],
)
async def test_day_that_is_not_over_or_no_date_cannot_be_closed(dated: Harness, path: str) -> None:
    response = await dated.post(f"{URL}{path}", auth=await dated.create_admin("F"))
    assert response.status_code == 422, response.text
    assert list(response.json()["details"]["fields"]) == ["date"]


async def test_open_day_is_not_found_and_has_no_proofs(dated: Harness) -> None:
    (transaction_id,) = await deposit(dated)
    response = await dated.get(f"{URL}/{DAY}", auth=await dated.create_admin("F"))
    assert (response.status_code, response.json()["code"]) == (404, "DAY_NOT_FOUND")
    response = await dated.get(
        f"/api/v1/transactions/{transaction_id}/proof", auth=await dated.create_admin("S")
    )
    assert (response.status_code, response.json()["code"]) == (409, "DAY_NOT_CLOSED")
    assert (await dated.get("/.well-known/tapgate-keys")).json() == {"keys": []}


@each("count", [1, 2, 7])
async def test_every_transaction_of_a_closed_day_has_a_valid_proof(
    dated: Harness, clock: FakeClock, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(operations, "CHUNK_SIZE", 4)
    monkeypatch.setattr(operations, "PAGE_SIZE", 3)
    transaction_ids = await deposit(dated, count)
    day = get_platform_day(clock.now, ZONE)
    clock.advance(days=1)
    record = await close(dated, str(day))
    keys = await get_keys(dated)
    for transaction_id in transaction_ids:
        proof = await get_proof(dated, transaction_id)
        assert (proof["transaction_id"], proof["leaf"]["id"]) == (transaction_id, transaction_id)
        assert proof["day"] == record
        assert verify_proof(proof, keys).startswith(f"{transaction_id} with 1 entry is part of")
    assert await find_broken_days(dated) == []


async def test_proof_for_a_restricted_subscriber_is_as_readable_as_the_masked_entries(
    dated: Harness, clock: FakeClock
) -> None:
    (transaction_id,) = await deposit(dated)
    await dated.database.execute("UPDATE subscribers SET restricted = true")
    key = await dated.create_api_key("payments:read")
    url = f"/api/v1/transactions/{transaction_id}"
    refused = await dated.get(f"{url}/proof", auth=key)
    assert parse_error(refused) == (403, "OTP_REQUIRED")
    clock.advance(days=1)
    await close(dated, DAY)
    refused = await dated.get(f"{url}/proof", auth=key)
    assert parse_error(refused) == (403, "OTP_REQUIRED")
    assert "leaf" not in refused.text
    found = await dated.get(f"{url}/entries", auth=await dated.create_admin("S"))
    assert found.json()["masked"] is True
    (entry,) = found.json()["entries"]
    proof = await get_proof(dated, transaction_id)
    leaves = [(item["account_id"], item["amount"]) for item in proof["leaf"]["entries"]]
    sides = [(entry[side]["account_id"], entry["amount"]) for side in ("debit", "credit")]
    assert leaves == sides
    by_service = await dated.get(f"{url}/proof", auth=dated.get_service_auth())
    assert by_service.json() == proof


async def test_changed_proof_is_refused(dated: Harness, clock: FakeClock) -> None:
    (transaction_id, _, _) = await deposit(dated, 3)
    clock.advance(days=1)
    await close(dated, DAY)
    proof, keys = await get_proof(dated, transaction_id), await get_keys(dated)

    def change(*path: Any, to: Any) -> dict[str, Any]:
        changed = copy.deepcopy(proof)
        *parents, last = path
        parent: Any = changed
        for name in parents:
            parent = parent[name]
        parent[last] = to
        return changed

    for changed, reason in (
        (change("leaf", "entries", 0, "amount", to="9.00"), "not part of the day"),
        (change("leaf", "id", to="txn_0000000000000"), "another transaction"),
        (change("path", 0, "hash", to="00" * 32), "not part of the day"),
        (change("path", 0, "side", to="up"), "step of the path"),
        (change("path", 0, "hash", to="00"), "step of the path"),
        (change("day", "merkle_root", to="00" * 32), "signature"),
        (change("day", "closed_at", to="2026-03-12T00:00:00.000Z"), "signature"),
        (change("day", "signature", to="AAAA"), "signature"),
        (change("day", "key_id", to="0" * 16), "do not contain"),
        (change("day", "totals", 0, "debit", to="9.00"), "totals"),
        (change("leaf", to=None), "not a proof"),
        (change("day", to={}), "not a proof"),
    ):
        with pytest.raises(InvalidProofError, match=reason):
            verify_proof(changed, keys)
    del proof["day"]["totals"]
    verify_proof(proof, keys)


async def test_rotated_key_keeps_old_days_verifiable(dated: Harness, clock: FakeClock) -> None:
    (first,) = await deposit(dated)
    clock.advance(days=1)
    await close(dated, DAY)
    async with dated.services.transaction() as tx:
        await rotate_key(tx, dated.services.vault, SYSTEM)
    (second,) = await deposit(dated)
    clock.advance(days=1)
    await close(dated, "2026-03-11")
    keys = await get_keys(dated)
    assert ["retired_at" in key for key in keys] == [True, False]
    proofs = [await get_proof(dated, transaction_id) for transaction_id in (first, second)]
    assert [proof["day"]["key_id"] for proof in proofs] == [key["key_id"] for key in keys]
    for proof in proofs:
        verify_proof(proof, keys)
    with pytest.raises(InvalidProofError, match="do not contain"):
        verify_proof(proofs[0], keys[1:])


async def test_released_payment_belongs_to_the_day_of_its_release(
    dated: Harness, clock: FakeClock
) -> None:
    await dated.database.execute(
        """UPDATE account_rules SET max_transaction = 10 ^ 9, daily_limit = 10 ^ 9,
                                    monthly_limit = 10 ^ 9, max_balance = 10 ^ 9"""
    )
    sender = await dated.create_subscriber(balance="700000.00")
    receiver = await dated.create_subscriber()
    held = await dated.services.ledger.submit(
        Command(
            type=chart.TRANSFER_P2P,
            channel="admin",
            payer=commands.subscriber_party(ids.decode(ids.SUBSCRIBER, sender["id"]) or 0),
            payee=commands.subscriber_party(ids.decode(ids.SUBSCRIBER, receiver["id"]) or 0),
            amount=600_000_00,
        )
    )
    transaction_id = held.require_accepted().transaction_id
    clock.advance(days=1)
    first = await close(dated, DAY)
    await dated.services.ledger.submit(ReviewDecision(transaction_id=transaction_id, release=True))
    clock.advance(days=1)
    second = await close(dated, "2026-03-11")
    assert (first["transactions"], second["transactions"]) == (1, 1)
    proof = await get_proof(dated, ids.encode(ids.TRANSACTION, transaction_id))
    assert proof["day"]["date"] == "2026-03-11"
    assert await find_broken_days(dated) == []


@each(
    "change, problem",
    [
        ("UPDATE entries SET amount = amount + 1", "the root does not match the entries"),
        ("DELETE FROM entries WHERE amount = 101", "2 transactions with 2 entries"),
        ("UPDATE closed_day_chunks SET leaves = set_byte(leaves, 0, 7)", "stored leaves"),
        ("UPDATE closed_days SET merkle_root = previous_root", "stored leaves"),
        ("UPDATE closed_days SET previous_root = merkle_root", "has a previous root"),
        ("DELETE FROM open_days", "accepts entries"),
    ],
)  # fmt: skip
async def test_verification_detects_a_changed_closed_day(
    dated: Harness, clock: FakeClock, change: str, problem: str
) -> None:
    if clock.now == START:
        await deposit(dated, 3)
        clock.advance(days=1)
        await close(dated, DAY)
    async with dated.database.connection() as connection:
        transaction = connection.transaction()
        await transaction.start()
        await connection.execute("SET LOCAL session_replication_role = replica")
        await connection.execute(change)
        (finding, *_) = await list_broken_days(connection, 0)
        await transaction.rollback()
    assert finding.startswith(DAY)
    assert problem in finding


async def test_closed_day_cannot_be_changed_in_the_database(
    dated: Harness, clock: FakeClock
) -> None:
    await deposit(dated)
    clock.advance(days=1)
    await close(dated, DAY)
    for statement in ("UPDATE closed_days SET entries = 0", "DELETE FROM closed_day_chunks"):
        with pytest.raises(Exception, match="a closed day never changes"):
            await dated.database.execute(statement)


async def test_parallel_requests_close_a_day_once(dated: Harness, clock: FakeClock) -> None:
    await deposit(dated, 5)
    clock.advance(days=1)
    records = await asyncio.gather(*(close(dated, DAY) for _ in range(4)))
    assert records == [records[0]] * 4


async def test_days_close_automatically_15_minutes_after_they_end(
    dated: Harness, clock: FakeClock
) -> None:
    workers = [DayCloseWorker(dated.services) for _ in range(2)]
    await workers[0].close_due_days()
    await deposit(dated)
    midnight = clock.now.replace(hour=18, minute=15)
    clock.now = midnight + timedelta(minutes=14, seconds=59)
    await workers[0].close_due_days()
    assert await dated.database.fetchval("SELECT count(*) FROM closed_days") == 0
    clock.now = midnight + timedelta(minutes=15)
    await asyncio.gather(*(worker.close_due_days() for worker in workers))
    days = await dated.database.fetchval("SELECT array_agg(day) FROM closed_days")
    assert days == [date(2026, 3, 10)]


async def test_days_stay_open_if_the_close_is_manual(dated: Harness, clock: FakeClock) -> None:
    await deposit(dated)
    clock.advance(days=3)
    dated.services.settings = dated.services.settings.replace(day_close=DayClose.MANUAL)
    await DayCloseWorker(dated.services).close_due_days()
    assert await dated.database.fetchval("SELECT count(*) FROM closed_days") == 0


async def test_command_verifies_a_stored_proof(
    dated: Harness, clock: FakeClock, tmp_path: Path
) -> None:
    (transaction_id,) = await deposit(dated)
    clock.advance(days=1)
    await close(dated, DAY)
    proof, keys = tmp_path / "proof.json", tmp_path / "keys.json"
    proof.write_text(json.dumps(await get_proof(dated, transaction_id)))
    keys.write_text(json.dumps({"keys": await get_keys(dated)}))

    def run(*arguments: str | Path) -> tuple[int, str]:
        result = CliRunner().invoke(cli, ["verify-receipt", *map(str, arguments)])
        return result.exit_code, result.output

    status, output = run(proof, "--keys", keys)
    assert (status, output.count("\n")) == (0, 1)
    assert output.startswith(f"valid: {transaction_id}")
    assert run(proof) == (1, "not valid: the keys are missing: name their file with --keys\n")
    changed = proof.read_text().replace('"1.00"', '"1.01"')
    proof.write_text(changed)
    assert run(proof, "--keys", keys)[0] == 1
    proof.write_text("{")
    assert run(proof, "--keys", keys) == (1, f"not valid: {proof}: not JSON\n")
    keys.write_text("[]")
    proof.write_text("{}")
    assert run(proof, "--keys", keys) == (1, f"not valid: {keys}: not a list of keys\n")
    assert run(tmp_path / "missing", "--keys", keys)[0] == 1


def test_script_needs_only_the_standard_library_and_cryptography() -> None:
    source = Path(verify_receipt.__file__).read_text()
    imported = {
        line.split()[1].partition(".")[0]
        for line in source.splitlines()
        if line.startswith(("import ", "from "))
    }
    assert imported == {
        "argparse", "base64", "cryptography", "hashlib", "json", "pathlib", "sys", "typing",
    }  # fmt: skip
