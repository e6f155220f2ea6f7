"""Replay counts per transaction: counted in memory, flushed to the database."""

import asyncio
from datetime import UTC, datetime, timedelta

import pytest
from structlog.testing import capture_logs

from builders.ledger import LedgerDriver, build_command, build_request_key
from builders.payments import create_partner, submit_and_get_id
from harness import Harness
from tapgate.ledger import chart
from tapgate.ledger.commands import Command, Outcome, PartnerReference
from tapgate.runtime.store.database import Database
from tapgate.server import gateway
from tapgate_client import ids
from tapgate_client.errors import ApiError, unavailable


async def build_transfer(
    ledger: LedgerDriver, request_id: str, amount: int = 1_00, content: str = "this"
) -> Command:
    return build_command(
        chart.TRANSFER,
        await ledger.create_subscriber(10_00),
        await ledger.create_subscriber(),
        amount,
        idempotency_key=build_request_key(request_id, content),
    )


async def count_replays(ledger: LedgerDriver) -> dict[int, tuple[int, datetime]]:
    rows = await ledger.database.fetch("SELECT * FROM replays")
    return {row["transaction_id"]: (row["count"], row["last_at"]) for row in rows}


def get_transaction_id(outcome: Outcome) -> int:
    assert outcome.result is not None
    return outcome.result.transaction_id


async def test_replays_are_counted_but_first_requests_and_conflicts_are_not(
    ledger: LedgerDriver,
) -> None:
    accepted = await build_transfer(ledger, "one")
    declined = await build_transfer(ledger, "two", 99_00)
    single = await build_transfer(ledger, "three")
    first, decline = await ledger.submit(accepted), await ledger.submit(declined)
    await ledger.submit(single)
    for _ in range(3):
        await ledger.submit(accepted)
    await ledger.submit(declined)
    # The same key with different content is a conflict, not a replay.
    await ledger.submit(await build_transfer(ledger, "three", content="other"))
    await ledger.ledger.replay_counter.flush(ledger.database)
    now = ledger.clock()
    assert await count_replays(ledger) == {
        get_transaction_id(first): (3, now),
        get_transaction_id(decline): (1, now),
    }


async def test_replays_within_a_batch_are_counted(ledger: LedgerDriver) -> None:
    command = await build_transfer(ledger, "one")
    outcomes = await asyncio.gather(*(ledger.submit(command) for _ in range(5)))
    assert [outcome.replayed for outcome in outcomes].count(True) == 4
    await ledger.ledger.replay_counter.flush(ledger.database)
    assert [count for count, _ in (await count_replays(ledger)).values()] == [4]


async def test_replay_counts_of_several_processes_and_flushes_add_up(
    ledger: LedgerDriver, database_url: str, database: Database
) -> None:
    other = await LedgerDriver.open(database_url, database, slot=2)
    commands = [await build_transfer(ledger, str(number)) for number in range(20)]
    await asyncio.gather(*(ledger.submit(command) for command in commands))
    try:
        for _ in range(5):
            await asyncio.gather(
                *(driver.submit(command) for driver in (ledger, other) for command in commands)
            )
            await asyncio.gather(
                *(driver.ledger.replay_counter.flush(driver.database) for driver in (ledger, other))
            )
            ledger.clock.now += timedelta(seconds=1)
    finally:
        await other.close()
    assert [count for count, _ in (await count_replays(ledger)).values()] == [10] * 20
    newest = ledger.clock() - timedelta(seconds=1)
    assert {at for _, at in (await count_replays(ledger)).values()} == {newest}


async def test_graceful_shutdown_flushes_replay_counts(
    ledger: LedgerDriver, database_url: str, database: Database
) -> None:
    command = await build_transfer(ledger, "one")
    await ledger.submit(command)
    other = await LedgerDriver.open(database_url, database, slot=2)
    await other.submit(command)
    assert await count_replays(ledger) == {}
    await other.close()
    assert [count for count, _ in (await count_replays(ledger)).values()] == [1]


async def test_failed_flush_keeps_the_replay_counts(
    ledger: LedgerDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = await build_transfer(ledger, "one")
    await ledger.submit(command)
    await ledger.submit(command)

    async def raise_unavailable(*_: object) -> str:
        raise unavailable("The database cannot be reached")

    with monkeypatch.context() as patch:
        patch.setattr(ledger.database, "execute", raise_unavailable)
        with pytest.raises(ApiError):
            await ledger.ledger.replay_counter.flush(ledger.database)
    await ledger.submit(command)
    await ledger.ledger.replay_counter.flush(ledger.database)
    assert [count for count, _ in (await count_replays(ledger)).values()] == [2]


async def test_shutdown_logs_replay_counts_that_cannot_be_flushed(
    ledger: LedgerDriver, database_url: str, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = await build_transfer(ledger, "one")
    await ledger.submit(command)
    other = await LedgerDriver.open(database_url, database, slot=2)
    await other.submit(command)

    async def raise_unavailable(*_: object) -> str:
        raise unavailable("The database cannot be reached")

    monkeypatch.setattr(other.ledger.database, "execute", raise_unavailable)
    with capture_logs() as lines:
        await other.close()
    assert [line["event"] for line in lines] == ["ledger.replay_counts_lost"]


async def test_transaction_chain_shows_the_number_and_time_of_replays(harness: Harness) -> None:
    sender = await harness.create_subscriber(balance="100")
    recipient = await harness.create_subscriber()
    card = await harness.create_card(recipient["id"])
    key = await harness.create_api_key("payments:write")
    body = {
        "sender_id": sender["id"],
        "recipient_card_serial": card,
        "amount": "10",
        "pin": "4071",
        "request_id": "again and again",
    }
    for _ in range(3):
        response = await harness.post("/api/v1/wallet/transfer-p2p", json=body, auth=key)
        assert response.status_code == 200, response.text
    url = f"/api/v1/transactions/{response.json()['transaction_id']}/chain"
    earliest, admin = datetime.now(UTC) - timedelta(minutes=1), await harness.create_admin("S")
    async with gateway.start_background_tasks(harness.services), asyncio.timeout(30):
        while (replays := (await harness.get(url, auth=admin)).json()["replays"])["count"] < 2:
            await asyncio.sleep(0.05)
    assert replays["count"] == 2
    assert datetime.fromisoformat(replays["last_at"]) > earliest


async def test_repeated_partner_reference_counts_as_a_replay(harness: Harness) -> None:
    subscriber, partner = await harness.create_subscriber(), await create_partner(harness)
    await submit_and_get_id(harness, chart.PARTNER_DEPOSIT, "cash", partner, "100")
    reference = PartnerReference(ids.decode(ids.PARTNER, partner) or 0, "invoice 1")
    for _ in range(2):
        transaction_id = await submit_and_get_id(
            harness, chart.PARTNER_FUND, partner, subscriber, "10", reference=reference
        )
    await harness.services.ledger.replay_counter.flush(harness.database)
    response = await harness.get(
        f"/api/v1/transactions/{transaction_id}/chain", auth=await harness.create_admin("F")
    )
    assert response.json()["replays"]["count"] == 1
