"""Failure mode: funds held for review are spent anyway, or move twice when the hold ends."""

import asyncio
from collections.abc import Callable
from decimal import Decimal

import pytest

from builders.payments import list_alerts, resolve_alert, update_rule
from drivers.actors import (
    Agent,
    Customer,
    Merchant,
    require_error,
    require_error_details,
    require_success,
)
from drivers.deployments import TwoGateways
from drivers.messenger import ServicesDriver
from drivers.processes import Client, PendingResponse, count_outcomes
from harness import PIN

INSUFFICIENT_FUNDS = (402, "INSUFFICIENT_FUNDS")


class HeldPayment:
    """A customer with a balance of 100: a payment of 80 is on hold, and 20 are available."""

    def __init__(
        self, two_gateways: TwoGateways, customer: Customer, merchant: Merchant, agent: Agent
    ) -> None:
        self.gateways = two_gateways
        self.customer = customer
        self.merchant = merchant
        self.agent = agent
        self.friend: Customer
        self.alert_id = ""

    def build_spend_requests(self, amount: str) -> dict[str, Callable[[Client], PendingResponse]]:
        """Return one request per endpoint that debits the customer."""
        customer, terminal = self.customer, self.merchant.server
        accounts = {
            "from_account_id": customer.account_id,
            "to_account_id": self.friend.account_id,
        }
        return {
            "by POS": lambda client: terminal.with_client(client).pay(amount, customer.card, PIN),
            "in app": lambda client: terminal.with_client(client).pay_in_app(amount, customer.card),
            "by P2P": lambda client: customer.with_client(client).send_money(amount, self.friend),
            "by cash-out": lambda client: self.agent.with_client(client).cash_out(amount, customer),
            "by transfer": lambda client: self.gateways.app.with_client(client).post(
                "wallet/transfer", amount=amount, pin=PIN, **accounts
            ),
            "by an admin": lambda client: self.gateways.admin.with_client(client).post(
                "wallet/transfer", amount=amount, **accounts
            ),
        }

    async def resolve(self, decision: str) -> None:
        require_success(
            await resolve_alert(self.gateways.harness, self.alert_id, transaction_decision=decision)
        )


@pytest.fixture
async def held_payment(two_gateways: TwoGateways) -> HeldPayment:
    await update_rule(two_gateways.harness, "Large amount", threshold="50", status="active")
    held = HeldPayment(
        two_gateways,
        await two_gateways.create_customer("100"),
        await two_gateways.create_merchant(),
        await two_gateways.create_agent("100"),
    )
    held.friend = await two_gateways.create_customer()
    paid = require_success(await held.merchant.server.pay("80", held.customer.card))
    assert paid["status"] == "under_review"
    assert paid["remaining_balance"] == "20.00 SLE"
    (alert,) = await list_alerts(two_gateways.harness, subscriber_id=held.customer.id)
    held.alert_id = alert["id"]
    return held


async def test_held_funds_cannot_be_spent_through_any_endpoint(held_payment: HeldPayment) -> None:
    """Every endpoint must check the available balance, not the total balance."""
    for name, spend in held_payment.build_spend_requests("20.01").items():
        for client in held_payment.gateways.clients:
            response = await spend(client)
            assert require_error(response) == INSUFFICIENT_FUNDS, name
            assert require_error_details(response)["available"] == 20.0
    assert await held_payment.customer.get_funds() == ("20.00", "80.00")


async def test_held_funds_cannot_be_spent_in_a_chat(
    held_payment: HeldPayment, database_url: str
) -> None:
    """The chat shows the available balance, and a transfer above it moves no money."""
    services_driver = ServicesDriver(held_payment.gateways.harness, database_url)
    async with services_driver.run_messenger() as messenger:
        phone = messenger.create_phone(held_payment.customer.phone)
        assert "20.00 SLE" in await phone.send_by_bridge("balance")
        for text in (f"send 21 to {held_payment.friend.card}", "yes", PIN):
            await phone.send_by_bridge(text)
    assert await held_payment.friend.get_balance() == "0.00"
    assert await held_payment.customer.get_funds() == ("20.00", "80.00")


@pytest.mark.parametrize("decision", ["release", "reject"])
async def test_review_decision_concurrent_with_spending_does_not_spend_funds_twice(
    held_payment: HeldPayment, decision: str
) -> None:
    """Held funds must not be both released to the merchant and spent by the customer."""
    requests = held_payment.build_spend_requests("10").values()
    spends = [spend(client) for client in held_payment.gateways.clients for spend in requests]
    half = len(spends) // 2
    *first, _ = await asyncio.gather(*spends[:half], held_payment.resolve(decision))
    rest = await asyncio.gather(*spends[half:])
    responses = [*first, *rest]
    spent = sum(response.is_success for response in responses)
    assert set(count_outcomes(responses)) <= {200, INSUFFICIENT_FUNDS}
    # 20 covers two requests of 10. 100 covers nine if one of them is a P2P transfer with its fee.
    assert spent <= (2 if decision == "release" else 9)
    available, still_held = await held_payment.customer.get_funds()
    assert still_held == "0.00"
    fees = Decimal("0.15") * sum(item.is_success for item in responses[2::6])
    debited = Decimal(80 if decision == "release" else 0) + spent * 10 + fees
    assert Decimal(available) == 100 - debited
