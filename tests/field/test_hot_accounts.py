"""Failure: many work on one account at once: deadlocks, errors, or a sum that is a little off."""

import itertools
from decimal import ROUND_HALF_UP, Decimal

from field.market import Market
from journeys.at_once import Asked, Line, Request, said
from journeys.caller import done
from world import PIN


def _share(amount: int, percent: str) -> Decimal:
    return (amount * Decimal(percent) / 100).quantize(Decimal("0.01"), ROUND_HALF_UP)


def _calm(market: Market) -> bool:
    """No batch had to be tried again because of another."""
    return market.world.services.ledger.batch_stats.retries == 0


async def test_one_merchant_paid_refunded_and_paid_out_hundreds_of_times(market: Market) -> None:
    """Everybody pays into the same row."""
    people = [await market.customer("1000") for _ in range(6)]
    merchant, owner = await market.merchant(), await market.customer()
    till = merchant.server
    earlier = [done(await till.pay("10", one.card))["transaction_id"] for one in people]

    def pay(card: str) -> Request:
        return lambda line: till.over(line).pay("3", card)

    def refund(paid: str) -> Request:
        return lambda line: till.over(line).refund(paid, "1")

    def pay_out(line: Line) -> Asked:
        ada = market.ada.over(line)
        return ada.post(f"processors/{merchant.id}/transfer", subscriber_id=owner.id, amount="1")

    requests = [
        *(pay(one.card) for one in people * 30),
        *(refund(paid) for paid in earlier * 5),
        *[pay_out] * 30,
    ]
    order = [requests[number * 97 % len(requests)] for number in range(len(requests))]
    answers = await market.at_once(*order)
    assert said(answers) == {200: 240}
    income = 6 * (10 - _share(10, "1")) + 180 * (3 - _share(3, "1")) - 30 - 30
    assert Decimal(await market.ada.balance(merchant.id)) == income
    assert await owner.balance() == "30.00"
    assert {await one.balance() for one in people} == {"905.00"}
    assert _calm(market)


async def test_one_agent_at_hundreds_of_counters(market: Market) -> None:
    """Float, commission and wallets are locked in every order."""
    agent = await market.agent("1000")
    people = [await market.customer("100") for _ in range(6)]

    def cash_in(number: int) -> Request:
        return lambda line: agent.over(line).cash_in("2", people[number % 6])

    def cash_out(number: int) -> Request:
        return lambda line: agent.over(line).cash_out("1", people[number % 6])

    requests = itertools.chain(*((cash_in(number), cash_out(number)) for number in range(90)))
    answers = await market.at_once(*requests)
    assert said(answers) == {200: 180}
    assert await agent.purse() == ("910.00", "0.00")  # below the minimum for commission
    assert {await one.balance() for one in people} == {"115.00"}
    assert _calm(market)


async def test_one_wallet_pays_and_is_paid_hundreds_of_times(market: Market) -> None:
    """In and out at the same time, by card, by friends and by a bank."""
    hot, friends = await market.customer("500"), [await market.customer("100") for _ in range(3)]
    till, bank = (await market.merchant()).server, await market.bank("1000")

    def pay(line: Line) -> Asked:
        return till.over(line).pay("1", hot.card, PIN)

    def receive(number: int) -> Request:
        return lambda line: friends[number % 3].over(line).send("1", hot)

    def send(number: int) -> Request:
        return lambda line: hot.over(line).send("1", friends[number % 3])

    def top_up(number: int) -> Request:
        return lambda line: bank.over(line).tell("1", hot, f"R-{number}")

    requests = itertools.chain(
        *((pay, receive(number), send(number), top_up(number)) for number in range(45))
    )
    answers = await market.at_once(*requests)
    assert said(answers) == {200: 180}
    # 45 in by friends, 45 by the bank, 45 out at the till, 45 to friends with a fee on top.
    assert Decimal(await hot.balance()) == 500 - 45 * _share(1, "1.5")
    assert _calm(market)
