"""Idempotency: a repeated request moves no money and gets the original response."""

import asyncio
from typing import Any

import pytest

from builders.ledger import (
    PIN,
    WRONG_PIN,
    LedgerDriver,
    build_command,
    build_refund,
    build_request_key,
)
from tapgate.ledger import chart
from tapgate.ledger.commands import Command, Outcome, PartnerReference, ScopedIdempotencyKey
from tapgate_client.errors import Code


async def create_pair(ledger: LedgerDriver) -> tuple[int, int]:
    return await ledger.create_subscriber(100_00), await ledger.create_subscriber()


def build_transfer(sender: int, receiver: int, amount: int = 10_00, **more: Any) -> Command:
    return build_command(chart.TRANSFER, sender, receiver, amount, **more)


async def test_replayed_request_returns_the_original_response(ledger: LedgerDriver) -> None:
    sender, receiver = await create_pair(ledger)
    command = build_transfer(sender, receiver, idempotency_key=build_request_key("one"))
    first, second = await ledger.submit(command), await ledger.submit(command)
    assert (first.replayed, second.replayed) == (False, True)
    assert first.result == second.result
    assert await ledger.get_balance(sender) == 90_00


async def test_reusing_a_key_with_different_content_is_a_conflict(ledger: LedgerDriver) -> None:
    sender, receiver = await create_pair(ledger)
    await ledger.submit(
        build_transfer(sender, receiver, idempotency_key=build_request_key("one", "this"))
    )
    conflict = await ledger.submit(
        build_transfer(sender, receiver, idempotency_key=build_request_key("one", "that"))
    )
    assert conflict.code == Code.DUPLICATE_REQUEST
    other_client = build_transfer(
        sender, receiver, idempotency_key=ScopedIdempotencyKey("another client", "one", b"that")
    )
    assert (await ledger.submit(other_client)).code is None


async def test_replayed_decline_stays_declined_after_a_deposit(ledger: LedgerDriver) -> None:
    sender, receiver = await create_pair(ledger)
    command = build_transfer(sender, receiver, 200_00, idempotency_key=build_request_key("one"))
    assert (await ledger.submit(command)).code == Code.INSUFFICIENT_FUNDS
    await ledger.deposit(await ledger.get_account_id(sender), 500_00)
    replay = await ledger.submit(command)
    assert (replay.code, replay.replayed) == (Code.INSUFFICIENT_FUNDS, True)
    assert replay.details == {"available": 100.0, "required": 200.0}


@pytest.mark.parametrize("reason", ["pin", "party", "pin missing"])
async def test_rejection_does_not_consume_the_idempotency_key(
    ledger: LedgerDriver, reason: str
) -> None:
    sender, receiver = await create_pair(ledger)
    rejected = {
        "pin": build_transfer(
            sender, receiver, payer_pin=WRONG_PIN, idempotency_key=build_request_key("one")
        ),
        "party": build_transfer(sender, 1, idempotency_key=build_request_key("one")),
        "pin missing": build_transfer(
            sender, receiver, pin_policy="required", idempotency_key=build_request_key("one")
        ),
    }[reason]
    assert (await ledger.submit(rejected)).code is not None
    retry = await ledger.submit(
        build_transfer(sender, receiver, payer_pin=PIN, idempotency_key=build_request_key("one"))
    )
    assert (retry.code, retry.replayed) == (None, False)


async def test_replay_returns_the_original_response_after_a_refund(ledger: LedgerDriver) -> None:
    payer, merchant = await ledger.create_subscriber(100_00), await ledger.create_processor()
    card = await ledger.create_card(payer)
    command = build_command(
        chart.POS_PAYMENT, card, merchant, 10_00, idempotency_key=build_request_key("pay")
    )
    first = await ledger.submit(command)
    refund = build_refund(
        merchant,
        first.require_accepted().transaction_id,
        None,
        idempotency_key=build_request_key("refund"),
    )
    await ledger.submit(refund)
    assert (await ledger.submit(command)).result == first.result
    assert (await ledger.submit(refund)).replayed


async def test_identical_requests_in_one_batch_and_concurrently_execute_once(
    ledger: LedgerDriver,
) -> None:
    sender, receiver = await create_pair(ledger)
    command = build_transfer(sender, receiver, idempotency_key=build_request_key("one"))
    outcomes: list[Outcome] = await ledger.submit_batch([command] * 5)
    outcomes += await asyncio.gather(*(ledger.submit(command) for _ in range(50)))
    assert {outcome.result for outcome in outcomes} == {outcomes[0].result}
    assert [outcome.replayed for outcome in outcomes].count(False) == 1
    assert await ledger.get_balance(sender) == 90_00


async def test_partner_reference_funds_a_wallet_only_once(ledger: LedgerDriver) -> None:
    partner, customer = await ledger.create_partner(100_00), await ledger.create_subscriber()
    other = await ledger.create_subscriber()

    async def fund(to: int, amount: int, reference: str = "ref") -> tuple[Code | None, bool]:
        outcome = await ledger.submit(
            build_command(
                chart.PARTNER_FUND,
                partner,
                to,
                amount,
                reference=PartnerReference(partner, reference),
            )
        )
        return outcome.code, outcome.replayed

    assert await fund(customer, 500_00) == (Code.INSUFFICIENT_FUNDS, False)
    assert await fund(customer, 40_00) == (None, False)  # a decline does not consume the reference
    assert await fund(customer, 40_00) == (None, True)
    assert await fund(customer, 40_01) == (Code.DUPLICATE_REFERENCE, False)
    assert await fund(other, 40_00) == (Code.DUPLICATE_REFERENCE, False)
    assert await fund(1, 40_00) == (Code.DUPLICATE_REFERENCE, False)
    assert await fund(other, 40_00, "other") == (None, False)
    assert await ledger.get_balance(partner) == 20_00
