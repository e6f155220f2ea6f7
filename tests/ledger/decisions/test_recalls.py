"""Recalls: what the receiver still has is held, and returned, kept or released."""

import asyncio
from typing import Any

import pytest

from builders.ledger import LedgerDriver, build_command, build_p2p, build_request_key
from builders.reversals import get_row, get_usage, reverse, submit
from tapgate.ledger import chart
from tapgate.ledger.commands import Outcome, RecallDecision, RecallRequest
from tapgate_client.errors import Code

DAY_SECONDS = 86_400


def build_recall(transaction_id: int, key: str | None = None, **fields: Any) -> RecallRequest:
    content = f"{transaction_id} {fields}"
    return RecallRequest(
        transaction_id=transaction_id,
        max_age_seconds=DAY_SECONDS,
        hold_seconds=DAY_SECONDS,
        idempotency_key=build_request_key(key or f"recall {transaction_id}", content),
        **fields,
    )


async def recall(ledger: LedgerDriver, transaction_id: int, key: str | None = None) -> Outcome:
    return await ledger.submit(build_recall(transaction_id, key))


async def end(ledger: LedgerDriver, transaction_id: int, status: str, **fields: Any) -> Outcome:
    recall_id = await ledger.database.fetchval(
        "SELECT id FROM recalls WHERE transaction_id = $1", transaction_id
    )
    command = RecallDecision(
        recall_id=recall_id or 5,
        transaction_id=transaction_id,
        status=status,
        is_return=fields.pop("is_return", status == "returned"),
        channel="messaging",
        **fields,
    )
    return await ledger.submit(command)


async def get_held(ledger: LedgerDriver, owner_id: int) -> int:
    held: int = await ledger.database.fetchval(
        "SELECT held FROM accounts WHERE owner_id = $1", owner_id
    )
    return held


async def get_recall(ledger: LedgerDriver, transaction_id: int) -> dict[str, Any]:
    row = await ledger.database.fetchrow(
        "SELECT * FROM recalls WHERE transaction_id = $1", transaction_id
    )
    return dict(row)


async def create_transfer(ledger: LedgerDriver, amount: int = 100_00) -> tuple[int, int, int]:
    sender, receiver = await ledger.create_subscriber(500_00), await ledger.create_subscriber()
    return sender, receiver, await submit(ledger, build_p2p(sender, receiver, amount))


async def test_returned_money_comes_back_without_the_fee(ledger: LedgerDriver) -> None:
    sender, receiver, transfer = await create_transfer(ledger)
    fee = await ledger.get_platform_balance(chart.FEES)
    assert fee > 0
    assert (await recall(ledger, transfer)).code is None
    assert await get_held(ledger, receiver) == 100_00
    third = await ledger.create_subscriber()
    spend = await ledger.submit(build_command(chart.TRANSFER, receiver, third, 1))
    assert spend.code == Code.INSUFFICIENT_FUNDS

    assert (await end(ledger, transfer, "returned")).code is None

    assert await ledger.get_balance(sender) == 500_00 - fee
    assert (await ledger.get_balance(receiver), await get_held(ledger, receiver)) == (0, 0)
    assert await ledger.get_platform_balance(chart.FEES) == fee
    assert (await get_row(ledger, transfer))["status"] == "reversed"
    assert await get_usage(ledger, sender) == (0, 0)
    row = await get_recall(ledger, transfer)
    assert (row["status"], row["held_amount"]) == ("returned", 100_00)
    assert (await get_row(ledger, row["reversal_id"]))["type"] == "reversal"


async def test_only_what_the_receiver_still_has_is_held(ledger: LedgerDriver) -> None:
    sender, receiver, transfer = await create_transfer(ledger)
    third = await ledger.create_subscriber()
    await submit(ledger, build_command(chart.TRANSFER, receiver, third, 70_00))
    await recall(ledger, transfer)
    assert await get_held(ledger, receiver) == 30_00
    await end(ledger, transfer, "returned")
    row = await get_row(ledger, transfer)
    assert (row["status"], row["refunded_amount"]) == ("partially_reversed", 30_00)
    # Staff can reverse the rest once the receiver has money again. The fee share of the returned
    # part stays with the platform.
    fee = await ledger.get_platform_balance(chart.FEES)
    await submit(ledger, build_command(chart.TRANSFER, third, receiver, 70_00))
    outcome = await reverse(ledger, transfer)
    assert outcome.result is not None
    assert outcome.result.fee_refunded == fee - fee * 30_00 // 100_00
    assert await get_usage(ledger, sender) == (0, 0)


async def test_with_nothing_held_nothing_can_be_returned(ledger: LedgerDriver) -> None:
    _, receiver, transfer = await create_transfer(ledger)
    third = await ledger.create_subscriber()
    await submit(ledger, build_command(chart.TRANSFER, receiver, third, 100_00))
    assert (await recall(ledger, transfer)).code is None
    assert (await end(ledger, transfer, "returned")).code == Code.INSUFFICIENT_FUNDS
    assert (await get_recall(ledger, transfer))["status"] == "open"
    assert (await end(ledger, transfer, "kept")).code is None


@pytest.mark.parametrize(
    ("status", "is_return", "decision"),
    [("kept", False, None), ("expired", False, None), ("decided", False, "release"),
     ("decided", True, "return")],
)  # fmt: skip
async def test_every_end_releases_the_hold(
    ledger: LedgerDriver, status: str, is_return: bool, decision: str | None
) -> None:
    _, receiver, transfer = await create_transfer(ledger)
    await recall(ledger, transfer)
    outcome = await end(ledger, transfer, status, is_return=is_return, decided_by="adm_1")
    assert outcome.code is None
    assert await get_held(ledger, receiver) == 0
    assert await ledger.get_balance(receiver) == (0 if is_return else 100_00)
    row = await get_recall(ledger, transfer)
    assert (row["status"], row["decision"], row["decided_by"]) == (status, decision, "adm_1")
    assert (await end(ledger, transfer, "kept")).code == Code.RECALL_NOT_OPEN
    assert (await recall(ledger, transfer, "again")).code == Code.NOT_RECALLABLE


async def test_what_cannot_be_recalled(ledger: LedgerDriver) -> None:
    sender, receiver, transfer = await create_transfer(ledger)
    other = await submit(ledger, build_command(chart.TRANSFER, sender, receiver, 10_00))
    assert (await recall(ledger, other)).code == Code.NOT_RECALLABLE
    declined = await ledger.submit(build_p2p(sender, receiver, 9_000_00))
    assert declined.result is not None
    assert (await recall(ledger, declined.result.transaction_id)).code == Code.NOT_RECALLABLE
    assert (await recall(ledger, 5)).code == Code.NOT_RECALLABLE
    assert (await end(ledger, transfer, "kept")).code == Code.RECALL_NOT_FOUND
    part = await submit(ledger, build_p2p(sender, receiver, 20_00))
    await reverse(ledger, part, 5_00)
    assert (await recall(ledger, part)).code == Code.NOT_RECALLABLE
    ledger.clock.advance(days=1, seconds=1)
    assert (await recall(ledger, transfer)).code == Code.NOT_RECALLABLE


async def test_a_sender_has_at_most_three_open_recalls(ledger: LedgerDriver) -> None:
    sender, receiver = await ledger.create_subscriber(500_00), await ledger.create_subscriber()
    transfers = [await submit(ledger, build_p2p(sender, receiver, 10_00)) for _ in range(5)]
    outcomes = await ledger.submit_batch([build_recall(transfer) for transfer in transfers[:4]])
    assert [outcome.code for outcome in outcomes] == [None, None, None, Code.NOT_RECALLABLE]
    assert outcomes[3].details == {"open": 3}
    await end(ledger, transfers[0], "kept")
    assert (await recall(ledger, transfers[4])).code is None


async def test_a_replayed_recall_holds_once(ledger: LedgerDriver) -> None:
    sender, receiver, transfer = await create_transfer(ledger)
    await recall(ledger, transfer, "r1")
    replay = await recall(ledger, transfer, "r1")
    assert (replay.code, replay.replayed) == (None, True)
    assert await get_held(ledger, receiver) == 100_00
    other = await submit(ledger, build_p2p(sender, receiver, 10_00))
    assert (await recall(ledger, other, "r1")).code == Code.DUPLICATE_REQUEST


async def test_an_open_recall_excludes_reversals(ledger: LedgerDriver) -> None:
    _, _, transfer = await create_transfer(ledger)
    await recall(ledger, transfer)
    assert (await reverse(ledger, transfer)).code == Code.NOT_REVERSIBLE
    await end(ledger, transfer, "kept")
    assert (await reverse(ledger, transfer)).code is None


async def test_a_recall_and_a_reversal_race_and_one_wins(
    ledger: LedgerDriver, database_url: str
) -> None:
    other = await LedgerDriver.open(database_url, ledger.database, ledger.clock, slot=2)
    try:
        for _ in range(10):
            _, receiver, transfer = await create_transfer(ledger)
            outcomes = await asyncio.gather(recall(other, transfer), reverse(ledger, transfer))
            codes = [outcome.code for outcome in outcomes]
            assert codes in ([None, Code.NOT_REVERSIBLE], [Code.NOT_RECALLABLE, None])
            assert await get_held(ledger, receiver) == (100_00 if codes[0] is None else 0)
    finally:
        await other.close()


async def test_two_parallel_answers_end_a_recall_once(
    ledger: LedgerDriver, database_url: str
) -> None:
    other = await LedgerDriver.open(database_url, ledger.database, ledger.clock, slot=2)
    try:
        for _ in range(10):
            _, receiver, transfer = await create_transfer(ledger)
            await recall(ledger, transfer)
            outcomes = await asyncio.gather(
                end(ledger, transfer, "returned"), end(other, transfer, "expired")
            )
            assert sorted(str(outcome.code) for outcome in outcomes) == ["None", "RECALL_NOT_OPEN"]
            assert await get_held(ledger, receiver) == 0
    finally:
        await other.close()
