"""Failure mode: repeated or concurrent partial refunds return more than was paid."""

import asyncio
import random
from decimal import Decimal

import pytest

from builders.payments import list_alerts, resolve_alert, update_rule
from drivers.actors import Customer, Merchant, Terminal, require_error, require_success
from drivers.deployments import TwoGateways
from drivers.processes import Client, PendingResponse, SendRequest, count_outcomes

REFUND_EXCEEDS_REMAINING = (422, "REFUND_EXCEEDS_REMAINING")
ALREADY_REFUNDED = (409, "ALREADY_REFUNDED")
INSUFFICIENT_FUNDS = (402, "INSUFFICIENT_FUNDS")
NOT_REFUNDABLE = (409, "NOT_REFUNDABLE")


async def _create_payment(
    two_gateways: TwoGateways, amount: str = "100"
) -> tuple[Customer, Merchant, str]:
    aminata = await two_gateways.create_customer(amount)
    merchant = await two_gateways.create_merchant()
    response = await merchant.server.pay(amount, aminata.card)
    return aminata, merchant, require_success(response)["transaction_id"]


def _build_refund(
    terminal: Terminal, payment_id: str, amount: str | None = None, **fields: str
) -> SendRequest:
    def send(client: Client) -> PendingResponse:
        return terminal.with_client(client).refund(payment_id, amount, **fields)

    return send


@pytest.mark.parametrize("seed", range(4))
async def test_concurrent_partial_refunds_cannot_exceed_the_payment(
    two_gateways: TwoGateways, seed: int
) -> None:
    """Each refund is below the paid amount, but their sum exceeds it."""
    aminata, merchant, payment_id = await _create_payment(two_gateways)
    rng = random.Random(seed)
    parts = [Decimal(rng.randrange(1, 40_00)) / 100 for _ in range(16)]
    responses = await two_gateways.run_concurrently(
        *(_build_refund(merchant.server, payment_id, str(part)) for part in parts)
    )
    # Before the last refund returns the fee, the merchant has less than the remainder.
    assert set(count_outcomes(responses)) <= {
        200,
        REFUND_EXCEEDS_REMAINING,
        ALREADY_REFUNDED,
        INSUFFICIENT_FUNDS,
    }
    refunded = sum(
        part for part, response in zip(parts, responses, strict=True) if response.is_success
    )
    assert 0 < refunded <= 100
    assert Decimal(await aminata.get_balance()) == refunded
    # The remainder is refunded once, and the merchant's fee is returned with it.
    rest = await two_gateways.run_concurrently(*[_build_refund(merchant.server, payment_id)] * 4)
    expected = {200: 1, ALREADY_REFUNDED: 3} if refunded < 100 else {ALREADY_REFUNDED: 4}
    assert count_outcomes(rest) == expected
    assert await aminata.get_balance() == "100.00"
    assert await two_gateways.admin.get_balance(merchant.id) == "0.00"


@pytest.mark.parametrize("decision", ["release", "reject"])
async def test_refund_concurrent_with_a_review_decision_returns_the_money_at_most_once(
    two_gateways: TwoGateways, decision: str
) -> None:
    """A payment that is both rejected and refunded would return the money twice."""
    await update_rule(two_gateways.harness, "Large amount", threshold="50", status="active")
    aminata, merchant, held = await _create_payment(two_gateways)
    # While the payment is under review, the merchant has not received the money.
    assert require_error(await merchant.server.refund(held, "10")) == NOT_REFUNDABLE
    assert await aminata.get_funds() == ("0.00", "100.00")
    (alert,) = await list_alerts(two_gateways.harness, subscriber_id=aminata.id)
    decided, *refunds = await asyncio.gather(
        resolve_alert(two_gateways.harness, alert["id"], transaction_decision=decision),
        *(_build_refund(merchant.server, held)(client) for client in two_gateways.clients * 4),
    )
    require_success(decided)
    counts = count_outcomes(refunds)
    assert counts[200] <= (1 if decision == "release" else 0)
    assert set(counts) <= {200, NOT_REFUNDABLE, ALREADY_REFUNDED}
    is_returned = decision == "reject" or counts[200] == 1
    assert await aminata.get_funds() == ("100.00" if is_returned else "0.00", "0.00")


async def test_concurrent_refunds_and_payouts_do_not_overdraw_the_merchant(
    two_gateways: TwoGateways,
) -> None:
    """Refunds and payouts debit the same merchant account."""
    aminata, merchant, payment_id = await _create_payment(two_gateways)
    owner = await two_gateways.create_customer()

    def pay_out(client: Client) -> PendingResponse:
        ada = two_gateways.admin.with_client(client)
        return ada.post(f"processors/{merchant.id}/transfer", subscriber_id=owner.id, amount="20")

    responses = await two_gateways.run_concurrently(
        *[_build_refund(merchant.server, payment_id, "20"), pay_out, pay_out] * 4
    )
    assert count_outcomes(responses) == {200: 4, (402, "INSUFFICIENT_FUNDS"): 8}
    assert Decimal(await aminata.get_balance()) + Decimal(await owner.get_balance()) == 80
    assert await two_gateways.admin.get_balance(merchant.id) == "19.00"


async def test_refund_concurrent_with_closing_the_wallet_never_credits_a_closed_wallet(
    two_gateways: TwoGateways,
) -> None:
    """Either the wallet is closed and the refund rejected, or the refund prevents the closing."""
    aminata, merchant, payment_id = await _create_payment(two_gateways)
    closed, refunded = await asyncio.gather(
        two_gateways.admin.with_client(two_gateways.clients[1]).post(
            f"subscribers/{aminata.id}/close", reason="asked"
        ),
        merchant.server.refund(payment_id),
    )
    if closed.is_success:
        assert require_error(refunded) == NOT_REFUNDABLE
    else:
        assert require_error(closed) == (409, "NOT_CLOSABLE")
        assert await aminata.get_balance() == "100.00"
