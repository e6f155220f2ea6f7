"""Failure: money held for a review is spent all the same, or moves twice when it is over."""

import asyncio
from collections.abc import Callable
from decimal import Decimal

import pytest

from compliance.stage import alerts, change_rule, resolve
from field.market import Market
from journeys.at_once import Asked, Line, said
from journeys.caller import details, done, refused
from journeys.people import Agent, Customer, Merchant
from messenger.journeys.town import Town
from world import PIN

FUNDS = (402, "INSUFFICIENT_FUNDS")


class Held:
    """A customer of whose 100 a payment of 80 waits for a decision, and 20 are free."""

    def __init__(
        self, market: Market, customer: Customer, merchant: Merchant, agent: Agent
    ) -> None:
        self.market = market
        self.customer = customer
        self.merchant = merchant
        self.agent = agent
        self.friend: Customer
        self.alert = ""

    def ways(self, amount: str) -> dict[str, Callable[[Line], Asked]]:
        """Every way to spend."""
        customer, till = self.customer, self.merchant.server
        accounts = {
            "from_account_id": customer.account_id,
            "to_account_id": self.friend.account_id,
        }
        return {
            "at a till": lambda line: till.over(line).pay(amount, customer.card, PIN),
            "in an app": lambda line: till.over(line).pay_in_app(amount, customer.card),
            "to a friend": lambda line: customer.over(line).send(amount, self.friend),
            "in cash": lambda line: self.agent.over(line).cash_out(amount, customer),
            "by transfer": lambda line: self.market.app.over(line).post(
                "wallet/transfer", amount=amount, pin=PIN, **accounts
            ),
            "by an admin": lambda line: self.market.ada.over(line).post(
                "wallet/transfer", amount=amount, **accounts
            ),
        }

    async def decide(self, decision: str) -> None:
        done(await resolve(self.market.world, self.alert, transaction_decision=decision))


@pytest.fixture
async def held(market: Market) -> Held:
    await change_rule(market.world, "Large amount", threshold="50", status="active")
    held = Held(
        market, await market.customer("100"), await market.merchant(), await market.agent("100")
    )
    held.friend = await market.customer()
    paid = done(await held.merchant.server.pay("80", held.customer.card))
    assert paid["status"] == "under_review"
    assert paid["remaining_balance"] == "20.00 SLE"
    (alert,) = await alerts(market.world, subscriber_id=held.customer.id)
    held.alert = alert["id"]
    return held


async def test_held_money_is_not_spent_in_any_way(held: Held) -> None:
    """One of the ways to spend looks at the balance instead of at what is available."""
    for way, spend in held.ways("20.01").items():
        for line in held.market.lines:
            answer = await spend(line)
            assert refused(answer) == FUNDS, way
            assert details(answer)["available"] == 20.0
    assert await held.customer.funds() == ("20.00", "80.00")


async def test_held_money_is_not_spent_in_a_chat(held: Held, database_url: str) -> None:
    """The chat shows the balance and promises what cannot be paid."""
    town = Town(held.market.world, database_url)
    async with town.messenger() as messenger:
        phone = messenger.phone(held.customer.phone)
        assert "20.00 SLE" in await phone.ask("balance")
        for words in (f"send 21 to {held.friend.card}", "yes", PIN):
            await phone.ask(words)
    assert await held.friend.balance() == "0.00"
    assert await held.customer.funds() == ("20.00", "80.00")


async def test_a_wallet_with_held_money_is_not_closed(held: Held) -> None:
    """Closed with money in it that comes back later, to nobody."""
    done(await held.agent.cash_out("20", held.customer))
    closing = await held.market.ada.post(f"subscribers/{held.customer.id}/close", reason="asked")
    assert refused(closing) == (409, "NOT_CLOSABLE")


@pytest.mark.parametrize("decision", ["release", "reject"])
async def test_a_decision_and_spending_at_once_spend_nothing_twice(
    held: Held, decision: str
) -> None:
    """What is released to the merchant is, at that moment, also free to be spent."""
    ways = held.ways("10").values()
    spends = [spend(line) for line in held.market.lines for spend in ways]
    half = len(spends) // 2
    *first, _ = await asyncio.gather(*spends[:half], held.decide(decision))
    rest = await asyncio.gather(*spends[half:])
    answers = [*first, *rest]
    spent = sum(one.is_success for one in answers)
    assert set(said(answers)) <= {200, FUNDS}
    # With what a friend costs on top, nobody can pay 10 more than so often.
    assert spent <= (2 if decision == "release" else 9)
    available, still_held = await held.customer.funds()
    assert still_held == "0.00"
    fees = Decimal("0.15") * sum(one.is_success for one in answers[2::6])
    gone = Decimal(80 if decision == "release" else 0) + spent * 10 + fees
    assert Decimal(available) == 100 - gone


async def test_decided_by_many_at_once_it_is_decided_once(held: Held) -> None:
    """Two who watch the same queue: one releases, the other rejects, both at once."""

    async def decide(line: Line, decision: str) -> tuple[str, int]:
        answer = await held.market.ada.over(line).post(
            f"compliance/alerts/{held.alert}/resolve",
            status="resolved",
            resolution_notes="Talked to the customer",
            transaction_decision=decision,
        )
        if not answer.is_success:
            assert refused(answer) == (409, "ALREADY_RESOLVED")
        return decision, answer.status_code

    answers = await asyncio.gather(
        *(
            decide(line, decision)
            for line in held.market.lines
            for decision in ("release", "reject", "release")
        )
    )
    ((decision, _),) = [one for one in answers if one[1] == 200]
    released = decision == "release"
    assert await held.customer.funds() == ("20.00" if released else "100.00", "0.00")
    expected = "79.20" if released else "0.00"
    assert await held.market.ada.balance(held.merchant.id) == expected
