"""Failure mode: concurrent transactions on one account overdraw it, deadlock or fail."""

import itertools
import random
from decimal import ROUND_HALF_UP, Decimal

import pytest

from drivers.actors import require_success
from drivers.deployments import TwoGateways
from drivers.processes import Client, PendingResponse, SendRequest, count_outcomes
from harness import PIN
from tapgate_client import ids

INSUFFICIENT_FUNDS, INSUFFICIENT_FLOAT = (402, "INSUFFICIENT_FUNDS"), (402, "INSUFFICIENT_FLOAT")


@pytest.mark.parametrize("seed", range(3))
async def test_concurrent_spending_through_all_channels_does_not_overdraw_a_wallet(
    two_gateways: TwoGateways, seed: int
) -> None:
    """POS, in-app, P2P, and cash-out must not each check the balance independently."""
    aminata = await two_gateways.create_customer("100")
    mohamed = await two_gateways.create_customer()
    terminal = (await two_gateways.create_merchant()).server
    agent = await two_gateways.create_agent("500")
    rng = random.Random(seed)

    def build_spend() -> tuple[Decimal, SendRequest]:
        amount = Decimal(rng.randrange(1_00, 15_00)) / 100
        amount_text = str(amount)
        requests: list[SendRequest] = [
            lambda client: terminal.with_client(client).pay(amount_text, aminata.card),
            lambda client: terminal.with_client(client).pay_in_app(amount_text, aminata.card),
            lambda client: aminata.with_client(client).send_money(amount_text, mohamed),
            lambda client: agent.with_client(client).cash_out(amount_text, aminata),
        ]
        index = rng.randrange(4)
        rate = Decimal("0.015") if index == 2 else Decimal(0)
        fee = (amount * rate).quantize(Decimal("0.01"), ROUND_HALF_UP)
        return amount + fee, requests[index]

    spends = [build_spend() for _ in range(40)]
    responses = await two_gateways.run_concurrently(*(request for _, request in spends))
    assert set(count_outcomes(responses)) == {200, INSUFFICIENT_FUNDS}
    total_cost = sum(
        cost for (cost, _), response in zip(spends, responses, strict=True) if response.is_success
    )
    assert Decimal(await aminata.get_balance()) == 100 - total_cost >= 0


async def test_child_cards_do_not_overdraw_the_shared_wallet(two_gateways: TwoGateways) -> None:
    """Each child card stays within its own limit, but all cards debit one wallet."""
    parent = await two_gateways.create_customer("100")
    terminal = (await two_gateways.create_merchant()).server
    children = []
    for number in range(4):
        serial = f"CHILD-{parent.card}-{number}"
        await two_gateways.admin.upload_cards(serial)
        linked = await two_gateways.app.post(
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

    def pay(card: str) -> SendRequest:
        return lambda client: terminal.with_client(client).pay("10", card)

    responses = await two_gateways.run_concurrently(
        *[pay(card) for card in [parent.card, *children] * 4]
    )
    assert count_outcomes(responses) == {200: 10, INSUFFICIENT_FUNDS: 10}
    assert await parent.get_balance() == "0.00"


async def test_concurrent_cash_ins_and_float_transfers_do_not_overdraw_the_float(
    two_gateways: TwoGateways,
) -> None:
    """An agent with two counters could spend the same float at both."""
    agent = await two_gateways.create_agent("100")
    sub_agent = await two_gateways.admin.create_agent(two_gateways.app, "Sorie", parent=agent)
    customers = [await two_gateways.create_customer() for _ in range(3)]

    def cash_in(client: Client) -> PendingResponse:
        return agent.with_client(client).cash_in("10", customers[0])

    def by_card(client: Client) -> PendingResponse:
        return agent.with_client(client).cash_in("10", customers[1], card_serial=customers[1].card)

    def transfer_float(client: Client) -> PendingResponse:
        return agent.with_client(client).transfer_float("10", sub_agent)

    responses = await two_gateways.run_concurrently(*[cash_in, by_card, transfer_float] * 8)
    assert count_outcomes(responses) == {200: 10, INSUFFICIENT_FLOAT: 14}
    commission = sum(response.is_success for response in [*responses[::3], *responses[1::3]])
    assert await agent.get_balances() == ("0.00", f"{Decimal(commission) / 10:.2f}")


async def test_concurrent_top_ups_and_webhooks_do_not_overdraw_a_partner(
    two_gateways: TwoGateways,
) -> None:
    """Both endpoints must enforce the same overdraft limit."""
    bank = await two_gateways.create_bank("50", overdraft_limit="30")
    customer = await two_gateways.create_customer()

    def build_top_up(number: int) -> SendRequest:
        return lambda client: bank.with_client(client).top_up("10", customer, f"O-{number}")

    def build_webhook(number: int) -> SendRequest:
        return lambda client: bank.with_client(client).send_webhook("10", customer, f"W-{number}")

    requests = [
        build_request(number)
        for number in range(8)
        for build_request in (build_top_up, build_top_up, build_webhook, build_webhook)
    ]
    responses = await two_gateways.run_concurrently(*requests)
    # Each request is sent to both processes; replays of executed requests succeed as well.
    transaction_ids = {
        response.json()["transaction_id"] for response in responses if response.is_success
    }
    assert len(transaction_ids) == 8
    assert set(count_outcomes(responses)) == {200, INSUFFICIENT_FUNDS}
    assert await customer.get_balance() == "80.00"
    balance = await two_gateways.harness.database.fetchval(
        "SELECT balance FROM accounts WHERE owner_id = $1", ids.decode(ids.PARTNER, bank.id)
    )
    assert balance == -30_00


async def test_concurrent_commission_payouts_pay_once(two_gateways: TwoGateways) -> None:
    """Two processes receive requests to pay out the full commission."""
    agent, customer = await two_gateways.create_agent("100"), await two_gateways.create_customer()
    await agent.cash_in("100", customer)

    def pay_out(client: Client) -> PendingResponse:
        return two_gateways.admin.with_client(client).post(f"agents/{agent.id}/payout-commission")

    responses = await two_gateways.run_concurrently(*[pay_out] * 8)
    assert count_outcomes(responses) == {200: 1, INSUFFICIENT_FUNDS: 7}
    assert await agent.get_balances() == ("1.00", "0.00")


def _calculate_percentage(amount: int, percent: str) -> Decimal:
    return (amount * Decimal(percent) / 100).quantize(Decimal("0.01"), ROUND_HALF_UP)


def _has_no_retried_batch(two_gateways: TwoGateways) -> bool:
    """Return True if the first process did not have to retry any batch after a conflict."""
    return two_gateways.harness.services.ledger.batch_stats.retries == 0


async def test_concurrent_payments_refunds_and_payouts_of_one_merchant_all_succeed(
    two_gateways: TwoGateways,
) -> None:
    """All requests update the same merchant account row."""
    customers = [await two_gateways.create_customer("1000") for _ in range(6)]
    merchant, owner = await two_gateways.create_merchant(), await two_gateways.create_customer()
    terminal = merchant.server
    payment_ids = [
        require_success(await terminal.pay("10", customer.card))["transaction_id"]
        for customer in customers
    ]

    def pay(card: str) -> SendRequest:
        return lambda client: terminal.with_client(client).pay("3", card)

    def refund(payment_id: str) -> SendRequest:
        return lambda client: terminal.with_client(client).refund(payment_id, "1")

    def pay_out(client: Client) -> PendingResponse:
        ada = two_gateways.admin.with_client(client)
        return ada.post(f"processors/{merchant.id}/transfer", subscriber_id=owner.id, amount="1")

    requests = [
        *(pay(payer.card) for payer in customers * 30),
        *(refund(payment_id) for payment_id in payment_ids * 5),
        *[pay_out] * 30,
    ]
    shuffled = [requests[number * 97 % len(requests)] for number in range(len(requests))]
    responses = await two_gateways.run_concurrently(*shuffled)
    assert count_outcomes(responses) == {200: 240}
    income = (
        6 * (10 - _calculate_percentage(10, "1"))
        + 180 * (3 - _calculate_percentage(3, "1"))
        - 30
        - 30
    )
    assert Decimal(await two_gateways.admin.get_balance(merchant.id)) == income
    assert await owner.get_balance() == "30.00"
    assert {await payer.get_balance() for payer in customers} == {"905.00"}
    assert _has_no_retried_batch(two_gateways)


async def test_concurrent_debits_and_credits_of_one_wallet_all_succeed(
    two_gateways: TwoGateways,
) -> None:
    """The wallet pays by card and P2P while friends and a partner credit it."""
    hot = await two_gateways.create_customer("500")
    friends = [await two_gateways.create_customer("100") for _ in range(3)]
    terminal = (await two_gateways.create_merchant()).server
    bank = await two_gateways.create_bank("1000")

    def pay(client: Client) -> PendingResponse:
        return terminal.with_client(client).pay("1", hot.card, PIN)

    def receive(number: int) -> SendRequest:
        return lambda client: friends[number % 3].with_client(client).send_money("1", hot)

    def send(number: int) -> SendRequest:
        return lambda client: hot.with_client(client).send_money("1", friends[number % 3])

    def top_up(number: int) -> SendRequest:
        return lambda client: bank.with_client(client).send_webhook("1", hot, f"R-{number}")

    requests = itertools.chain(
        *((pay, receive(number), send(number), top_up(number)) for number in range(45))
    )
    responses = await two_gateways.run_concurrently(*requests)
    assert count_outcomes(responses) == {200: 180}
    # 45 credits by friends, 45 by the partner, 45 card payments, 45 P2P transfers with a fee.
    assert Decimal(await hot.get_balance()) == 500 - 45 * _calculate_percentage(1, "1.5")
    assert _has_no_retried_batch(two_gateways)
