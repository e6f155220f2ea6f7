"""Replay counts per transaction: counted in memory, flushed to the database."""

import asyncio
from datetime import UTC, datetime, timedelta

import pytest
from structlog.testing import capture_logs

from harness import Harness
from ledger.builders import LedgerDriver, build_command, build_request_key
from tapgate import gateway, ids
from tapgate.errors import ApiError, unavailable
from tapgate.ledger import chart, commands
from tapgate.ledger.commands import Command, Outcome, PartnerReference
from tapgate.store.database import Database
from transactions.builders import create_partner, submit_and_get_id


async def build_transfer(
    books: LedgerDriver, name: str, amount: int = 1_00, what: str = "this"
) -> Command:
    return build_command(
        chart.TRANSFER,
        commands.subscriber_party(await books.create_subscriber(10_00)),
        commands.subscriber_party(await books.create_subscriber()),
        amount,
        idempotency_key=build_request_key(name, what),
    )


async def count_replays(books: LedgerDriver) -> dict[int, tuple[int, datetime]]:
    rows = await books.database.fetch("SELECT * FROM replays")
    return {row["transaction_id"]: (row["count"], row["last_at"]) for row in rows}


def get_transaction_id(outcome: Outcome) -> int:
    assert outcome.result is not None
    return outcome.result.transaction_id


async def test_replays_are_counted_but_first_requests_and_conflicts_are_not(
    books: LedgerDriver,
) -> None:
    paid, declined = await build_transfer(books, "one"), await build_transfer(books, "two", 99_00)
    once = await build_transfer(books, "three")
    first, refused = await books.submit(paid), await books.submit(declined)
    await books.submit(once)
    for _ in range(3):
        await books.submit(paid)
    await books.submit(declined)
    # The same key with different content is a conflict, not a replay.
    await books.submit(await build_transfer(books, "three", what="other"))
    await books.ledger.replay_counter.flush(books.database)
    now = books.clock()
    assert await count_replays(books) == {
        get_transaction_id(first): (3, now),
        get_transaction_id(refused): (1, now),
    }


async def test_replays_within_a_batch_are_counted(books: LedgerDriver) -> None:
    order = await build_transfer(books, "one")
    outcomes = await asyncio.gather(*(books.submit(order) for _ in range(5)))
    assert [outcome.replayed for outcome in outcomes].count(True) == 4
    await books.ledger.replay_counter.flush(books.database)
    assert [count for count, _ in (await count_replays(books)).values()] == [4]


async def test_replay_counts_of_several_processes_and_flushes_add_up(
    books: LedgerDriver, database_url: str, database: Database
) -> None:
    other = await LedgerDriver.open(database_url, database, slot=2)
    orders = [await build_transfer(books, str(number)) for number in range(20)]
    await asyncio.gather(*(books.submit(order) for order in orders))
    try:
        for _ in range(5):
            await asyncio.gather(*(one.submit(order) for one in (books, other) for order in orders))
            await asyncio.gather(
                *(one.ledger.replay_counter.flush(one.database) for one in (books, other))
            )
            books.clock.now += timedelta(seconds=1)
    finally:
        await other.close()
    assert [count for count, _ in (await count_replays(books)).values()] == [10] * 20
    newest = books.clock() - timedelta(seconds=1)
    assert {at for _, at in (await count_replays(books)).values()} == {newest}


async def test_graceful_shutdown_flushes_replay_counts(
    books: LedgerDriver, database_url: str, database: Database
) -> None:
    order = await build_transfer(books, "one")
    await books.submit(order)
    other = await LedgerDriver.open(database_url, database, slot=2)
    await other.submit(order)
    assert await count_replays(books) == {}
    await other.close()
    assert [count for count, _ in (await count_replays(books)).values()] == [1]


async def test_failed_flush_keeps_the_replay_counts(
    books: LedgerDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    order = await build_transfer(books, "one")
    await books.submit(order)
    await books.submit(order)

    async def away(*_: object) -> str:
        raise unavailable("away")

    with monkeypatch.context() as patch:
        patch.setattr(books.database, "execute", away)
        with pytest.raises(ApiError):
            await books.ledger.replay_counter.flush(books.database)
    await books.submit(order)
    await books.ledger.replay_counter.flush(books.database)
    assert [count for count, _ in (await count_replays(books)).values()] == [2]


async def test_shutdown_without_a_database_logs_the_lost_replay_counts(
    books: LedgerDriver, database_url: str, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    order = await build_transfer(books, "one")
    await books.submit(order)
    other = await LedgerDriver.open(database_url, database, slot=2)
    await other.submit(order)

    async def away(*_: object) -> str:
        raise unavailable("away")

    monkeypatch.setattr(other.ledger._database, "execute", away)
    with capture_logs() as lines:
        await other.close()
    assert [line["event"] for line in lines] == ["ledger.replay_counts_lost"]


async def test_transaction_chain_reports_replays(world: Harness) -> None:
    sender, friend = await world.create_subscriber(balance="100"), await world.create_subscriber()
    card, key = await world.create_card(friend["id"]), await world.create_api_key("payments:write")
    body = {
        "sender_id": sender["id"],
        "recipient_card_serial": card,
        "amount": "10",
        "pin": "4071",
        "request_id": "again and again",
    }
    for _ in range(3):
        answer = await world.client.post("/api/v1/wallet/transfer-p2p", json=body, auth=key)
        assert answer.status_code == 200, answer.text
    url = f"/api/v1/transactions/{answer.json()['transaction_id']}/chain"
    before, admin = datetime.now(UTC) - timedelta(minutes=1), await world.create_admin("S")
    async with gateway._start_background_tasks(world.services), asyncio.timeout(30):
        while (told := (await world.client.get(url, auth=admin)).json()["replays"])["count"] < 2:
            await asyncio.sleep(0.05)
    assert told["count"] == 2
    assert datetime.fromisoformat(told["last_at"]) > before


async def test_repeated_partner_reference_counts_as_a_replay(world: Harness) -> None:
    somebody, bank = await world.create_subscriber(), await create_partner(world)
    await submit_and_get_id(world, chart.PARTNER_DEPOSIT, "cash", bank, "100")
    reference = PartnerReference(ids.decode(ids.PARTNER, bank) or 0, "invoice 1")
    for _ in range(2):
        made = await submit_and_get_id(
            world, chart.PARTNER_FUND, bank, somebody["id"], "10", reference=reference
        )
    await world.services.ledger.replay_counter.flush(world.services.database)
    answer = await world.client.get(
        f"/api/v1/transactions/{made}/chain", auth=await world.create_admin("F")
    )
    assert answer.json()["replays"]["count"] == 1
