"""Failure: many spend the same money at once, and together more than there is."""

import random
from decimal import ROUND_HALF_UP, Decimal

import pytest

from field.market import Market
from journeys.at_once import Asked, Line, Request, said
from tapgate import ids
from world import PIN

FUNDS, FLOAT = (402, "INSUFFICIENT_FUNDS"), (402, "INSUFFICIENT_FLOAT")


@pytest.mark.parametrize("seed", range(3))
async def test_a_wallet_is_not_overdrawn_by_all_ways_to_spend_at_once(
    market: Market, seed: int
) -> None:
    """Till, app, friend and cash counter check the balance each on its own."""
    aminata, mohamed = await market.customer("100"), await market.customer()
    till, agent = (await market.merchant()).server, await market.agent("500")
    chance = random.Random(seed)

    def spend() -> tuple[Decimal, Request]:
        amount = Decimal(chance.randrange(1_00, 15_00)) / 100
        asked = str(amount)
        ways: list[Request] = [
            lambda line: till.over(line).pay(asked, aminata.card),
            lambda line: till.over(line).pay_in_app(asked, aminata.card),
            lambda line: aminata.over(line).send(asked, mohamed),
            lambda line: agent.over(line).cash_out(asked, aminata),
        ]
        way = chance.randrange(4)
        rate = Decimal("0.015") if way == 2 else Decimal(0)
        fee = (amount * rate).quantize(Decimal("0.01"), ROUND_HALF_UP)
        return amount + fee, ways[way]

    spends = [spend() for _ in range(40)]
    answers = await market.at_once(*(request for _, request in spends))
    assert set(said(answers)) == {200, FUNDS}
    gone = sum(cost for (cost, _), one in zip(spends, answers, strict=True) if one.is_success)
    assert Decimal(await aminata.balance()) == 100 - gone >= 0


async def test_child_cards_of_one_wallet_do_not_overdraw_it(market: Market) -> None:
    """Each card keeps within its own limit, and all of them share one wallet."""
    parent, till = await market.customer("100"), (await market.merchant()).server
    children = []
    for number in range(4):
        serial = f"CHILD-{parent.card}-{number}"
        await market.ada.upload_cards(serial)
        linked = await market.app.post(
            "cards/child",
            parent_subscriber_id=parent.id,
            card_serial=serial,
            parent_pin=PIN,
            child_pin="2639",
            daily_limit="60",
            child_name="Fatu",
        )
        assert linked.status_code == 201, linked.text
        children.append(serial)

    def pay(card: str) -> Request:
        return lambda line: till.over(line).pay("10", card)

    answers = await market.at_once(*[pay(card) for card in [parent.card, *children] * 4])
    assert said(answers) == {200: 10, FUNDS: 10}
    assert await parent.balance() == "0.00"


async def test_a_float_is_not_overdrawn_by_cash_ins_and_transfers_at_once(market: Market) -> None:
    """An agent with two counters hands out the same float at both."""
    agent = await market.agent("100")
    sub_agent = await market.ada.agent(market.app, "Sorie", parent=agent)
    customers = [await market.customer() for _ in range(3)]

    def cash_in(line: Line) -> Asked:
        return agent.over(line).cash_in("10", customers[0])

    def by_card(line: Line) -> Asked:
        return agent.over(line).cash_in("10", customers[1], card_serial=customers[1].card)

    def hand_on(line: Line) -> Asked:
        return agent.over(line).hand_on("10", sub_agent)

    answers = await market.at_once(*[cash_in, by_card, hand_on] * 8)
    assert said(answers) == {200: 10, FLOAT: 14}
    commission = sum(one.is_success for one in [*answers[::3], *answers[1::3]])
    assert await agent.purse() == ("0.00", f"{Decimal(commission) / 10:.2f}")


async def test_a_partner_is_not_overdrawn_by_orders_and_webhooks_at_once(market: Market) -> None:
    """The line of credit is checked by each way in for itself."""
    bank = await market.bank("50", overdraft_limit="30")
    customer = await market.customer()

    def order(number: int) -> Request:
        return lambda line: bank.over(line).top_up("10", customer, f"O-{number}")

    def webhook(number: int) -> Request:
        return lambda line: bank.over(line).tell("10", customer, f"W-{number}")

    requests = [ask(number) for number in range(8) for ask in (order, order, webhook, webhook)]
    answers = await market.at_once(*requests)
    # Twice each: once at every process. The repetitions of what was paid are answered as paid.
    paid = {one.json()["transaction_id"] for one in answers if one.is_success}
    assert len(paid) == 8
    assert set(said(answers)) == {200, FUNDS}
    assert await customer.balance() == "80.00"
    balance = await market.world.services.database.fetchval(
        "SELECT balance FROM accounts WHERE owner_id = $1", ids.decode(ids.PARTNER, bank.id)
    )
    assert balance == -30_00


async def test_commission_is_paid_out_once(market: Market) -> None:
    """'All there is', asked for at two processes at once."""
    agent, customer = await market.agent("100"), await market.customer()
    await agent.cash_in("100", customer)

    def pay_out(line: Line) -> Asked:
        return market.ada.over(line).post(f"agents/{agent.id}/payout-commission")

    answers = await market.at_once(*[pay_out] * 8)
    assert said(answers) == {200: 1, FUNDS: 7}
    assert await agent.purse() == ("1.00", "0.00")
