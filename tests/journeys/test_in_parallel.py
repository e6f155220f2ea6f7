"""What many ask at once of two processes: money that is there once is spent once."""

import httpx2
import pytest

from journeys.at_once import Asked, Line, Request, in_turns, said
from journeys.caller import details, done, refused
from journeys.people import Customer, Merchant, new_request_id
from journeys.platform import Platform
from journeys.staff import Admin
from world import PIN, WRONG_PIN


@pytest.fixture(scope="module", autouse=True)
async def _many_payments_a_day(running: Platform) -> None:
    await running.switch_rules_off()


@pytest.fixture
async def merchant(ada: Admin) -> Merchant:
    return await ada.merchant()


async def at_once(platform: Platform, *requests: Request) -> list[httpx2.Response]:
    async with platform.lines() as lines:
        assert len(lines) == 2
        return await in_turns(lines, *requests)


async def customer(ada: Admin, balance: str) -> Customer:
    return await ada.customer_with(balance, await ada.app())


async def test_two_hundred_payments_of_a_wallet_that_can_afford_a_hundred(
    platform: Platform, ada: Admin, merchant: Merchant
) -> None:
    aminata = await customer(ada, "100.00")

    def pay(line: Line) -> Asked:
        return merchant.server.over(line).pay("1.00", aminata.card)

    answers = await at_once(platform, *[pay] * 200)
    assert said(answers) == {200: 100, (402, "INSUFFICIENT_FUNDS"): 100}
    assert await aminata.balance() == "0.00"
    assert await ada.balance(merchant.id) == "99.00"
    # No two of them saw the same money.
    left = {done(answer)["remaining_balance"] for answer in answers if answer.is_success}
    assert left == {f"{number}.00 SLE" for number in range(100)}


async def test_twenty_refunds_of_one_payment(
    platform: Platform, ada: Admin, merchant: Merchant
) -> None:
    aminata, till = await customer(ada, "100.00"), merchant.server
    paid = done(await till.pay("100.00", aminata.card))["transaction_id"]
    answers = await at_once(platform, *[lambda line: till.over(line).refund(paid, "7.00")] * 20)
    assert said(answers) == {200: 14, (422, "REFUND_EXCEEDS_REMAINING"): 6}
    assert await aminata.balance() == "98.00"
    # What remains, asked for by many as "the rest", is given once.
    answers = await at_once(platform, *[lambda line: till.over(line).refund(paid)] * 10)
    assert said(answers) == {200: 1, (409, "ALREADY_REFUNDED"): 9}
    assert await aminata.balance() == "100.00"
    assert await ada.balance(merchant.id) == "0.00"


async def test_the_limit_of_a_day_is_not_passed_by_many_at_once(
    platform: Platform, ada: Admin, merchant: Merchant
) -> None:
    aminata, mohamed = await customer(ada, "300000.00"), await customer(ada, "1.00")
    till = merchant.server

    def pay(line: Line) -> Asked:
        return till.over(line).pay("15000", aminata.card, PIN)

    def send(line: Line) -> Asked:
        return aminata.over(line).send("15000", mohamed)

    answers = await at_once(platform, *[pay, pay, send, send] * 5)
    # Level 1: a hundred thousand a day.
    assert said(answers) == {200: 6, (403, "DAILY_LIMIT_EXCEEDED"): 14}
    used = {details(answer)["used"] for answer in answers if not answer.is_success}
    assert used == {"90000.00"}
    done(await till.pay("10000", aminata.card, PIN))
    assert refused(await till.pay("0.01", aminata.card)) == (403, "DAILY_LIMIT_EXCEEDED")


async def test_one_request_fifty_times_at_once(
    platform: Platform, ada: Admin, merchant: Merchant
) -> None:
    aminata, name = await customer(ada, "100.00"), {"request_id": new_request_id()}

    def pay(line: Line) -> Asked:
        return merchant.server.over(line).pay("10.00", aminata.card, **name)

    answers = await at_once(platform, *[pay] * 50)
    assert said(answers) == {200: 50}
    assert len({answer.content for answer in answers}) == 1
    replayed = [answer for answer in answers if "Idempotent-Replayed" in answer.headers]
    assert len(replayed) == 49
    assert await aminata.balance() == "90.00"


async def test_two_requests_under_one_name_at_once(
    platform: Platform, ada: Admin, merchant: Merchant
) -> None:
    aminata, name = await customer(ada, "100.00"), {"request_id": new_request_id()}

    def pay_twenty(line: Line) -> Asked:
        return merchant.server.over(line).pay("20.00", aminata.card, **name)

    def pay_thirty(line: Line) -> Asked:
        return merchant.server.over(line).pay("30.00", aminata.card, **name)

    answers = await at_once(platform, *[pay_twenty, pay_thirty] * 20)
    assert said(answers) == {200: 20, (409, "DUPLICATE_REQUEST"): 20}
    (amount,) = {done(answer)["amount"] for answer in answers if answer.is_success}
    expected = {"20.00 SLE": "80.00", "30.00 SLE": "70.00"}
    assert await aminata.balance() == expected[amount]


async def test_money_sent_crosswise(platform: Platform, ada: Admin) -> None:
    aminata, mohamed = await customer(ada, "1000.00"), await customer(ada, "1000.00")

    def there(line: Line) -> Asked:
        return aminata.over(line).send("1.00", mohamed)

    def back(line: Line) -> Asked:
        return mohamed.over(line).send("1.00", aminata)

    answers = await at_once(platform, *[there, there, back, back] * 25)
    assert said(answers) == {200: 100}
    # Fifty times two cents: the fee, half up.
    assert [await aminata.balance(), await mohamed.balance()] == ["999.00", "999.00"]


async def test_of_many_wrong_pins_at_once_three_are_evaluated(
    platform: Platform, ada: Admin, merchant: Merchant
) -> None:
    aminata, mohamed = await customer(ada, "100.00"), await customer(ada, "1.00")
    till, url = merchant.server, f"subscribers/{aminata.id}/verify-pin"
    # At the till, in the app, and on the way to a friend: one counter.
    tries: list[Request] = [
        lambda line: till.over(line).pay("1.00", aminata.card, WRONG_PIN),
        lambda line: till.over(line).verify(aminata.card, WRONG_PIN),
        lambda line: aminata.app.over(line).post(url, pin=WRONG_PIN),
        lambda line: aminata.over(line).send("1.00", mohamed, pin=WRONG_PIN),
        lambda line: till.over(line).verify(aminata.card, "0000"),
    ]
    answers = await at_once(platform, *tries * 8)
    assert said(answers) == {(400, "INVALID_PIN"): 3, (403, "ACCOUNT_LOCKED"): 37}
    evaluated = [details(answer) for answer in answers if answer.status_code == 400]
    assert sorted(one["attempts_remaining"] for one in evaluated) == [0, 1, 2]
    locks = {details(one)["locked_until"] for one in answers if one.status_code == 403}
    assert len(locks) == 1
    assert refused(await till.pay("1.00", aminata.card, PIN)) == (403, "ACCOUNT_LOCKED")
    assert await aminata.balance() == "100.00"
