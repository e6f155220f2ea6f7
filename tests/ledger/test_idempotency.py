"""Idempotency: a repeated request moves no money and gets the original response."""

import asyncio
from typing import Any

import pytest

from ledger.builders import PIN, WRONG_PIN, LedgerDriver, build_command, build_request_key
from tapgate.errors import Code
from tapgate.ledger import chart, commands
from tapgate.ledger.commands import Command, Outcome, PartnerReference, ScopedIdempotencyKey


async def create_pair(books: LedgerDriver) -> tuple[int, int]:
    return await books.create_subscriber(100_00), await books.create_subscriber()


def build_transfer(sender: int, receiver: int, amount: int = 10_00, **more: Any) -> Command:
    return build_command(
        chart.TRANSFER,
        commands.subscriber_party(sender),
        commands.subscriber_party(receiver),
        amount,
        **more,
    )


async def test_replayed_request_returns_the_original_response(books: LedgerDriver) -> None:
    sender, receiver = await create_pair(books)
    order = build_transfer(sender, receiver, idempotency_key=build_request_key("one"))
    first, second = await books.submit(order), await books.submit(order)
    assert (first.replayed, second.replayed) == (False, True)
    assert first.result == second.result
    assert await books.get_balance(sender) == 90_00


async def test_reusing_a_key_with_different_content_is_a_conflict(books: LedgerDriver) -> None:
    sender, receiver = await create_pair(books)
    await books.submit(
        build_transfer(sender, receiver, idempotency_key=build_request_key("one", "this"))
    )
    other = await books.submit(
        build_transfer(sender, receiver, idempotency_key=build_request_key("one", "that"))
    )
    assert other.code == Code.DUPLICATE_REQUEST
    stranger = build_transfer(
        sender, receiver, idempotency_key=ScopedIdempotencyKey("another client", "one", b"that")
    )
    assert (await books.submit(stranger)).code is None


async def test_replayed_decline_stays_declined_after_a_deposit(books: LedgerDriver) -> None:
    sender, receiver = await create_pair(books)
    order = build_transfer(sender, receiver, 200_00, idempotency_key=build_request_key("one"))
    assert (await books.submit(order)).code == Code.INSUFFICIENT_FUNDS
    await books.deposit(await books.get_account_id(sender), 500_00)
    again = await books.submit(order)
    assert (again.code, again.replayed) == (Code.INSUFFICIENT_FUNDS, True)
    assert again.details == {"available": 100.0, "required": 200.0}


@pytest.mark.parametrize("refused", ["pin", "party", "pin missing"])
async def test_rejection_does_not_consume_the_idempotency_key(
    books: LedgerDriver, refused: str
) -> None:
    sender, receiver = await create_pair(books)
    wrong = {
        "pin": build_transfer(
            sender, receiver, payer_pin=WRONG_PIN, idempotency_key=build_request_key("one")
        ),
        "party": build_transfer(sender, 1, idempotency_key=build_request_key("one")),
        "pin missing": build_transfer(
            sender, receiver, pin_policy="required", idempotency_key=build_request_key("one")
        ),
    }[refused]
    assert (await books.submit(wrong)).code is not None
    right = await books.submit(
        build_transfer(sender, receiver, payer_pin=PIN, idempotency_key=build_request_key("one"))
    )
    assert (right.code, right.replayed) == (None, False)


async def test_replay_returns_the_original_response_after_a_refund(books: LedgerDriver) -> None:
    payer, merchant = await books.create_subscriber(100_00), await books.create_processor()
    card = await books.create_card(payer)
    order = build_command(
        chart.POS_PAYMENT,
        commands.card_party(card),
        commands.processor_party(merchant),
        10_00,
        idempotency_key=build_request_key("pay"),
    )
    first = await books.submit(order)
    refund = build_command(
        chart.REFUND,
        commands.processor_party(merchant),
        commands.CASH_PARTY,
        None,
        original_id=first.require_accepted().transaction_id,
        idempotency_key=build_request_key("refund"),
    )
    await books.submit(refund)
    assert (await books.submit(order)).result == first.result
    assert (await books.submit(refund)).replayed


async def test_identical_requests_in_one_batch_and_concurrently_execute_once(
    books: LedgerDriver,
) -> None:
    sender, receiver = await create_pair(books)
    order = build_transfer(sender, receiver, idempotency_key=build_request_key("one"))
    outcomes: list[Outcome] = await books.submit_batch([order] * 5)
    outcomes += await asyncio.gather(*(books.submit(order) for _ in range(50)))
    assert {outcome.result for outcome in outcomes} == {outcomes[0].result}
    assert [outcome.replayed for outcome in outcomes].count(False) == 1
    assert await books.get_balance(sender) == 90_00


async def test_partner_reference_funds_a_wallet_only_once(books: LedgerDriver) -> None:
    partner, customer = await books.create_partner(100_00), await books.create_subscriber()
    other = await books.create_subscriber()

    async def fund(to: int, amount: int, reference: str = "ref") -> tuple[Code | None, bool]:
        outcome = await books.submit(
            build_command(
                chart.PARTNER_FUND,
                commands.partner_party(partner),
                commands.subscriber_party(to),
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
    assert await books.get_balance(partner) == 20_00
