"""Failure: a refund is repeated, or parts of it in parallel give back more than was paid."""

import asyncio
import random
from decimal import Decimal

import pytest

from compliance.stage import alerts, change_rule, resolve
from field.market import Market
from journeys.at_once import Asked, Line, Request, said
from journeys.caller import done, refused
from journeys.people import Customer, Merchant, Till, new_request_id

EXCEEDS = (422, "REFUND_EXCEEDS_REMAINING")
REFUNDED = (409, "ALREADY_REFUNDED")
NOT_REFUNDABLE = (409, "NOT_REFUNDABLE")


async def _paid(market: Market, amount: str = "100") -> tuple[Customer, Merchant, str]:
    aminata, merchant = await market.customer(amount), await market.merchant()
    answer = await merchant.server.pay(amount, aminata.card)
    return aminata, merchant, done(answer)["transaction_id"]


def _refund(till: Till, paid: str, amount: str | None = None, **more: str) -> Request:
    def ask(line: Line) -> Asked:
        return till.over(line).refund(paid, amount, **more)

    return ask


@pytest.mark.parametrize("seed", range(4))
async def test_partial_refunds_at_once_never_give_back_more_than_was_paid(
    market: Market, seed: int
) -> None:
    """Each of them sees that there is enough left; together they are too much."""
    aminata, merchant, paid = await _paid(market)
    chance = random.Random(seed)
    parts = [Decimal(chance.randrange(1, 40_00)) / 100 for _ in range(16)]
    answers = await market.at_once(*(_refund(merchant.server, paid, str(part)) for part in parts))
    assert set(said(answers)) <= {200, EXCEEDS, REFUNDED}
    given = sum(part for part, one in zip(parts, answers, strict=True) if one.is_success)
    assert 0 < given <= 100
    assert Decimal(await aminata.balance()) == given
    # What remains is given back once, and with it the fee.
    rest = await market.at_once(*[_refund(merchant.server, paid)] * 4)
    assert said(rest) == ({200: 1, REFUNDED: 3} if given < 100 else {REFUNDED: 4})
    assert await aminata.balance() == "100.00"
    assert await market.ada.balance(merchant.id) == "0.00"


async def test_a_full_and_a_partial_refund_at_once_are_not_both_paid(market: Market) -> None:
    """The whole and a part of it at the same time."""
    aminata, merchant, paid = await _paid(market)
    till = merchant.server
    answers = await market.at_once(
        *[_refund(till, paid, "100"), _refund(till, paid, "30"), _refund(till, paid, "30")] * 3
    )
    whole = sum(one.is_success for one in answers[::3])
    parts = sum(one.is_success for one in answers) - whole
    assert (whole, parts) in {(1, 0), (0, 3)}
    assert await aminata.balance() == ("100.00" if whole else "90.00")


async def test_a_refund_repeated_at_two_processes_is_paid_once(market: Market) -> None:
    """The cashier presses the button again because nothing seems to happen."""
    aminata, merchant, paid = await _paid(market)
    name = new_request_id()
    answers = await market.at_once(*[_refund(merchant.server, paid, "10", request_id=name)] * 10)
    assert said(answers) == {200: 10}
    assert len({answer.content for answer in answers}) == 1
    assert await aminata.balance() == "10.00"


async def test_a_refund_cannot_be_refunded(market: Market) -> None:
    """Refund, refund of the refund, and so on: each a credit to somebody."""
    aminata, merchant, paid = await _paid(market)
    refund = done(await merchant.server.refund(paid, "40"))["transaction_id"]
    answers = await market.at_once(*[_refund(merchant.server, refund)] * 4)
    assert said(answers) == {NOT_REFUNDABLE: 4}
    assert await aminata.balance() == "40.00"


async def test_a_payment_under_review_is_not_refunded(market: Market) -> None:
    """Given back before it was taken: the merchant pays what it never got."""
    await change_rule(market.world, "Large amount", threshold="50", status="active")
    aminata, merchant, held = await _paid(market)
    answers = await market.at_once(*[_refund(merchant.server, held, "10")] * 4)
    assert said(answers) == {NOT_REFUNDABLE: 4}
    assert await aminata.funds() == ("0.00", "100.00")


@pytest.mark.parametrize("decision", ["release", "reject"])
async def test_a_refund_at_the_moment_of_a_decision_gives_back_only_what_was_taken(
    market: Market, decision: str
) -> None:
    """Rejected and refunded: the money comes back twice."""
    await change_rule(market.world, "Large amount", threshold="50", status="active")
    aminata, merchant, held = await _paid(market)
    (alert,) = await alerts(market.world, subscriber_id=aminata.id)
    decided, *refunds = await asyncio.gather(
        resolve(market.world, alert["id"], transaction_decision=decision),
        *(_refund(merchant.server, held)(line) for line in market.lines * 4),
    )
    done(decided)
    counts = said(refunds)
    assert counts[200] <= (1 if decision == "release" else 0)
    assert set(counts) <= {200, NOT_REFUNDABLE, REFUNDED}
    back = decision == "reject" or counts[200] == 1
    assert await aminata.funds() == ("100.00" if back else "0.00", "0.00")


async def test_refunds_and_payouts_at_once_do_not_overdraw_the_merchant(market: Market) -> None:
    """The merchant's money goes out by two doors."""
    aminata, merchant, paid = await _paid(market)
    owner = await market.customer()

    def pay_out(line: Line) -> Asked:
        ada = market.ada.over(line)
        return ada.post(f"processors/{merchant.id}/transfer", subscriber_id=owner.id, amount="20")

    answers = await market.at_once(*[_refund(merchant.server, paid, "20"), pay_out, pay_out] * 4)
    assert said(answers) == {200: 4, (402, "INSUFFICIENT_FUNDS"): 8}
    assert Decimal(await aminata.balance()) + Decimal(await owner.balance()) == 80
    assert await market.ada.balance(merchant.id) == "19.00"


async def test_a_refund_to_a_wallet_that_closes_meanwhile_is_not_lost(market: Market) -> None:
    """The money is given back to an account that nobody can spend from any more."""
    aminata, merchant, paid = await _paid(market)
    closed, refunded = await asyncio.gather(
        market.ada.over(market.lines[1]).post(f"subscribers/{aminata.id}/close", reason="asked"),
        merchant.server.refund(paid),
    )
    if closed.is_success:
        assert refused(refunded) == NOT_REFUNDABLE
    else:
        assert refused(closed) == (409, "NOT_CLOSABLE")
        assert await aminata.balance() == "100.00"
