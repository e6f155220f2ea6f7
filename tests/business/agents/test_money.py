"""Receipts of float funding, cash-in, cash-out, float transfer and commission payout."""

import asyncio
from typing import Any

import httpx2
import pytest

from builders.participants import (
    AGENT_PIN,
    AGENTS_URL,
    CHILD_PIN,
    cash_in,
    cash_out,
    change_status,
    create_agent,
    create_card,
    create_sub_agent,
    fund_agent,
    get_balances,
    link_child_card,
    pay_out_commission,
    transfer_float,
)
from harness import WRONG_PIN, Harness, parse_error


def drop_transaction_id(response: httpx2.Response) -> dict[str, Any]:
    assert response.status_code == 200, response.text
    receipt: dict[str, Any] = response.json()
    assert receipt.pop("transaction_id").startswith("txn_")
    return receipt


async def test_funding_an_agent_increases_the_float(harness: Harness) -> None:
    agent = await create_agent(harness)
    await fund_agent(harness, agent, "1000")
    response = await fund_agent(harness, agent, "234.5", description="Float for the weekend")
    assert drop_transaction_id(response) == {
        "success": True,
        "message": "Float funded",
        "status": "completed",
        "amount": "234.50 SLE",
        "new_balance": "1,234.50 SLE",
    }
    assert await get_balances(harness, agent) == ("1234.50", "0.00")


@pytest.mark.parametrize(("tier", "earned"), [(1, "1.00"), (2, "1.50"), (3, "2.00")])
async def test_cash_in_commission_depends_on_the_tier(
    harness: Harness, tier: int, earned: str
) -> None:
    agent = await create_agent(harness, balance="500", commission_tier=tier)
    customer = await harness.create_subscriber(balance="20")
    response = await cash_in(harness, agent, customer, "100")
    assert drop_transaction_id(response) == {
        "success": True,
        "message": "Cash-in completed",
        "status": "completed",
        "amount": "100.00 SLE",
        "agent_balance": "400.00 SLE",
        "subscriber_balance": "120.00 SLE",
        "commission_earned": f"{earned} SLE",
    }
    assert await get_balances(harness, agent) == ("400.00", earned)


async def test_cash_out_moves_money_from_the_wallet_to_the_float(harness: Harness) -> None:
    agent, customer = await create_agent(harness), await harness.create_subscriber(balance="100")
    response = await cash_out(harness, agent, customer, "40")
    assert drop_transaction_id(response) == {
        "success": True,
        "message": "Cash-out completed",
        "status": "completed",
        "amount": "40.00 SLE",
        "agent_balance": "40.00 SLE",
        "subscriber_balance": "60.00 SLE",
        "commission_earned": "0.00 SLE",
    }
    assert await get_balances(harness, agent) == ("40.00", "0.00")


async def test_transfer_moves_float_to_a_sub_agent(harness: Harness) -> None:
    parent = await create_agent(harness, balance="100")
    sub_agent = await create_sub_agent(harness, parent)
    response = await transfer_float(harness, parent, sub_agent, "30", description="For Saturday")
    assert drop_transaction_id(response) == {
        "success": True,
        "message": "Transfer completed",
        "status": "completed",
        "amount": "30.00 SLE",
        "from_balance": "70.00 SLE",
        "to_balance": "30.00 SLE",
    }


async def test_commission_belongs_to_the_executing_agent_and_is_paid_out_in_full(
    harness: Harness,
) -> None:
    parent, customer = await create_agent(harness, balance="700"), await harness.create_subscriber()
    sub_agent = await create_sub_agent(harness, parent)
    await transfer_float(harness, parent, sub_agent, "600")
    await cash_in(harness, sub_agent, customer, "500")
    assert await get_balances(harness, parent) == ("100.00", "0.00")
    assert await get_balances(harness, sub_agent) == ("100.00", "5.00")
    assert drop_transaction_id(await pay_out_commission(harness, sub_agent)) == {
        "success": True,
        "message": "Commission paid out",
        "status": "completed",
        "amount": "5.00 SLE",
        "float_balance": "105.00 SLE",
    }
    response = await pay_out_commission(harness, sub_agent, request_id="again")
    assert parse_error(response) == (402, "INSUFFICIENT_FUNDS")
    # The rejection stored nothing under the idempotency key.
    await cash_in(harness, sub_agent, customer, "100")
    response = await pay_out_commission(harness, sub_agent, request_id="again")
    assert drop_transaction_id(response)["amount"] == "1.00 SLE"


async def test_agent_transactions_are_recorded_with_the_agent_channel(harness: Harness) -> None:
    agent, customer = await create_agent(harness), await harness.create_subscriber()
    sub_agent = await create_sub_agent(harness, agent)
    await fund_agent(harness, agent, "1000", description="Float for the weekend")
    await cash_in(harness, agent, customer, "500")
    await cash_out(harness, agent, customer, "50")
    await transfer_float(harness, agent, sub_agent, "50", description="For Saturday")
    await pay_out_commission(harness, agent)
    rows = await harness.database.fetch(
        "SELECT type, channel, context->>'memo' FROM transactions ORDER BY id"
    )
    assert [tuple(row) for row in rows] == [
        ("agent_fund", "agent", "Float for the weekend"),
        ("agent_cashin", "agent", None),
        ("agent_cashout", "agent", None),
        ("agent_transfer", "agent", "For Saturday"),
        ("commission_payout", "agent", None),
    ]


async def test_customer_can_be_identified_by_card(harness: Harness) -> None:
    agent, customer = await create_agent(harness, balance="100"), await harness.create_subscriber()
    serial = await harness.create_card(customer["id"])
    by_card = {"subscriber_id": None, "card_serial": serial}
    response = await cash_in(harness, agent, customer, "80", **by_card)
    assert response.json()["subscriber_balance"] == "80.00 SLE"
    response = await cash_out(harness, agent, customer, "30", **by_card)
    assert response.json()["subscriber_balance"] == "50.00 SLE"


async def test_replay_ignores_the_pin(harness: Harness) -> None:
    agent, customer = await create_agent(harness, balance="100"), await harness.create_subscriber()
    admin = await harness.create_admin()
    body = {"request_id": "one", "agent_id": agent["id"], "subscriber_id": customer["id"]}
    first, replayed = [
        await harness.post(
            f"{AGENTS_URL}/cashin", json=body | {"amount": "40", "agent_pin": pin}, auth=admin
        )
        for pin in (AGENT_PIN, WRONG_PIN)
    ]
    assert (replayed.status_code, replayed.json()) == (200, first.json())
    assert replayed.headers["Idempotent-Replayed"] == "true"


async def test_cash_out_with_a_child_card_requires_its_own_pin_and_limit(harness: Harness) -> None:
    agent, parent = await create_agent(harness), await harness.create_subscriber(balance="100")
    serial = await create_card(harness)
    linked = await link_child_card(harness, serial, parent["id"], daily_limit="50")
    assert linked.status_code == 201, linked.text
    by_card = {"subscriber_id": None, "card_serial": serial}
    response = await cash_out(harness, agent, parent, "30", **by_card)
    assert parse_error(response) == (400, "INVALID_PIN")
    response = await cash_out(harness, agent, parent, "30", pin=CHILD_PIN, **by_card)
    assert response.json()["subscriber_balance"] == "70.00 SLE"
    response = await cash_out(harness, agent, parent, "20.01", pin=CHILD_PIN, **by_card)
    assert parse_error(response) == (403, "CARD_LIMIT_EXCEEDED")


async def get_balance(harness: Harness, subscriber: dict[str, Any]) -> str:
    response = await harness.get(
        f"/api/v1/subscribers/{subscriber['id']}", auth=harness.get_service_auth()
    )
    return str(response.json()["balance"])


async def test_concurrent_operations_of_parents_and_sub_agents_do_not_deadlock(
    harness: Harness,
) -> None:
    """Each operation locks several accounts; none deadlocks and no money is lost."""
    parent = await create_agent(harness, balance="100")
    sub_agents = [await create_sub_agent(harness, parent, balance="10") for _ in range(3)]
    customer = await harness.create_subscriber(balance="100")
    operations = []
    for sub_agent in sub_agents * 5:
        operations.append(transfer_float(harness, parent, sub_agent, "1"))
        operations.append(cash_in(harness, sub_agent, customer, "2"))
        operations.append(cash_out(harness, sub_agent, customer, "2"))
        operations.append(change_status(harness, sub_agent, "activate"))
    responses = await asyncio.gather(*operations)
    assert {response.status_code for response in responses} == {200, 409}
    assert await get_balances(harness, parent) == ("85.00", "0.00")
    for sub_agent in sub_agents:
        assert await get_balances(harness, sub_agent) == (
            "15.00",
            "0.00",
        )  # below the minimum for commission
    assert await get_balance(harness, customer) == "100.00"
