"""Failure mode: webhooks and top-ups are lost, duplicated, delayed, or reordered."""

import random
from collections import Counter

import pytest

from drivers.actors import require_success
from drivers.deployments import TwoGateways
from drivers.processes import SendRequest, count_outcomes


async def test_concurrent_top_ups_with_one_reference_and_two_amounts_execute_one_amount(
    two_gateways: TwoGateways,
) -> None:
    """A partner corrects an amount and sends both versions under one reference."""
    bank, aminata = await two_gateways.create_bank("1000"), await two_gateways.create_customer()

    def build_webhook(amount: str) -> SendRequest:
        return lambda client: bank.with_client(client).send_webhook(amount, aminata, "INV-1")

    def build_top_up(amount: str) -> SendRequest:
        return lambda client: bank.with_client(client).top_up(amount, aminata, "INV-1")

    responses = await two_gateways.run_concurrently(
        *[build_webhook("40"), build_webhook("50"), build_top_up("50"), build_top_up("40")] * 4
    )
    assert count_outcomes(responses) == {200: 8, (409, "DUPLICATE_REFERENCE"): 8}
    (paid,) = {require_success(response)["amount"] for response in responses if response.is_success}
    assert await aminata.get_balance() == paid.removesuffix(" SLE")


@pytest.mark.parametrize("seed", range(2))
async def test_duplicated_and_reordered_partner_webhooks_credit_each_reference_once(
    two_gateways: TwoGateways, seed: int
) -> None:
    """Each webhook is delivered three times, shuffled, across two processes."""
    bank, aminata = await two_gateways.create_bank("1000"), await two_gateways.create_customer()

    def build_webhook(number: int) -> SendRequest:
        return lambda client: bank.with_client(client).send_webhook(
            f"{number}", aminata, f"INV-{number}"
        )

    deliveries = [number for number in range(1, 11) for _ in range(3)]
    random.Random(seed).shuffle(deliveries)
    responses = await two_gateways.run_concurrently(*map(build_webhook, deliveries))
    assert count_outcomes(responses) == {200: 30}
    assert Counter(
        Counter(response.json()["transaction_id"] for response in responses).values()
    ) == {3: 10}
    assert await aminata.get_balance() == "55.00"
