"""Failure mode: contention on one account causes deadlocks, errors, or a wrong balance."""

import itertools
from decimal import ROUND_HALF_UP, Decimal

from drivers.actors import require_success
from drivers.deployments import TwoGateways
from drivers.processes import Client, PendingResponse, SendRequest, count_outcomes
from harness import PIN


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
    hot, friends = (
        await two_gateways.create_customer("500"),
        [await two_gateways.create_customer("100") for _ in range(3)],
    )
    terminal, bank = (
        (await two_gateways.create_merchant()).server,
        await two_gateways.create_bank("1000"),
    )

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
