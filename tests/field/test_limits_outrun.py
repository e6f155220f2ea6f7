"""Failure: a limit is outrun by requests at once, or by going through the chat as well."""

import asyncio

from field.market import Market
from field.two_ledgers import TwoLedgers
from journeys.at_once import Asked, Line, Request, said
from journeys.caller import details, refused
from messenger.journeys.town import Town
from tapgate.errors import Code
from world import PIN

DAY = (403, "DAILY_LIMIT_EXCEEDED")


async def test_the_limit_of_a_day_holds_for_till_app_friend_and_cash_together(
    market: Market,
) -> None:
    """Every channel counts for itself."""
    await market.change_limits(daily_limit="100")
    aminata, mohamed = await market.customer("1000"), await market.customer()
    till, agent = (await market.merchant()).server, await market.agent("1")
    ways: list[Request] = [
        lambda line: till.over(line).pay("15", aminata.card, PIN),
        lambda line: till.over(line).pay_in_app("15", aminata.card),
        lambda line: aminata.over(line).send("15", mohamed),
        lambda line: agent.over(line).cash_out("15", aminata),
        lambda line: market.ada.over(line).post(
            "wallet/transfer",
            from_account_id=aminata.account_id,
            to_account_id=mohamed.account_id,
            amount="15",
        ),
    ]
    answers = await market.at_once(*ways * 4)
    assert said(answers) == {200: 6, DAY: 14}
    assert {details(one)["used"] for one in answers if not one.is_success} == {"90.00"}
    assert refused(await till.pay("10.01", aminata.card)) == DAY


async def test_the_limit_of_a_day_holds_in_chat_and_at_the_till_together(
    market: Market, database_url: str
) -> None:
    """The chat has an allowance of its own."""
    await market.change_limits(daily_limit="100")
    aminata, mohamed = await market.customer("1000"), await market.customer()
    till = (await market.merchant()).server
    town = Town(market.world, database_url)
    async with town.messenger() as messenger:
        phone = messenger.phone(aminata.phone)
        await phone.ask(f"send 60 to {mohamed.card}")
        await phone.ask("yes")
        in_chat = asyncio.create_task(phone.ask(PIN))
        paid = await asyncio.gather(
            *(till.over(line).pay("30", aminata.card) for line in market.lines * 3)
        )
        await in_chat
    at_the_till = sum(one.is_success for one in paid)
    # 60 and once 30, or three times 30 and nothing else.
    assert (await mohamed.balance(), at_the_till) in {("60.00", 1), ("0.00", 3)}


async def test_the_limit_of_a_month_is_not_outrun(two_ledgers: TwoLedgers) -> None:
    """Only the day is counted under a lock."""
    sender, receiver = await two_ledgers.pair(10_00)
    await two_ledgers.give_limits(daily_limit=100, monthly_limit=150)
    assert await two_ledgers.spend_at_once(sender, receiver, 10, times=20) == {
        None: 10,
        Code.DAILY_LIMIT_EXCEEDED: 10,
    }
    two_ledgers.move(days=1)
    assert await two_ledgers.spend_at_once(sender, receiver, 10, times=20) == {
        None: 5,
        Code.MONTHLY_LIMIT_EXCEEDED: 15,
    }


async def test_one_transaction_over_its_limit_is_refused_by_every_process(market: Market) -> None:
    """A process that has not heard of the new limit yet lets it through."""
    aminata, till = await market.customer("1000"), (await market.merchant()).server
    await market.change_limits(max_transaction="10")

    def pay(amount: str) -> Request:
        return lambda line: till.over(line).pay(amount, aminata.card)

    answers = await market.at_once(*[pay("10.01")] * 6, *[pay("10")] * 6)
    assert said(answers) == {200: 6, (403, "TRANSACTION_LIMIT_EXCEEDED"): 6}


async def test_the_allowance_without_a_pin_is_not_outrun(market: Market) -> None:
    """Many small payments with a stolen card, at once, at several tills and in apps."""
    await market.change_limits(no_pin_limit="10")
    aminata = await market.customer("1000")
    tills = [(await market.merchant()).server for _ in range(2)]
    ways: list[Request] = [
        lambda line: tills[0].over(line).pay("10", aminata.card),
        lambda line: tills[1].over(line).pay("10", aminata.card),
        lambda line: tills[0].over(line).pay_in_app("10", aminata.card),
    ]
    answers = await market.at_once(*ways * 6)
    assert said(answers) == {200: 5, (403, "PIN_REQUIRED"): 13}
    assert await aminata.balance() == "950.00"


async def test_a_childs_daily_limit_is_not_outrun(market: Market) -> None:
    """The child's card is used at two tills at the same moment."""
    parent, till = await market.customer("1000"), (await market.merchant()).server
    serial = await market.world.card(parent.id, type="CHILD", daily_limit=50_00)

    def pay(line: Line) -> Asked:
        return till.over(line).pay("8", serial)

    answers = await market.at_once(*[pay] * 16)
    assert said(answers) == {200: 6, (403, "CARD_LIMIT_EXCEEDED"): 10}
    assert await parent.balance() == "952.00"


async def test_the_most_a_wallet_may_hold_is_not_outrun_by_credits_at_once(market: Market) -> None:
    """Each credit alone fits in; together they do not."""
    await market.change_limits(max_balance="100")
    full, rich = await market.customer(), await market.customer("100")
    bank, agent = await market.bank("500"), await market.agent("500")

    def by_bank(number: int) -> Request:
        return lambda line: bank.over(line).tell("7", full, f"W-{number}")

    def by_agent(line: Line) -> Asked:
        return agent.over(line).cash_in("7", full)

    def by_friend(line: Line) -> Asked:
        return rich.over(line).send("7", full)

    requests = [ask for number in range(8) for ask in (by_bank(number), by_agent, by_friend)]
    answers = await market.at_once(*requests)
    assert said(answers) == {200: 14, (403, "MAX_BALANCE_EXCEEDED"): 10}
    assert await full.balance() == "98.00"
