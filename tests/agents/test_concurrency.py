"""Concurrent operations on the same float, commission and wallets."""

import asyncio
from typing import Any

from agents.builders import (
    AGENT_PIN,
    cash_in,
    cash_out,
    change_status,
    create_agent,
    create_sub_agent,
    get_balances,
    parse_error,
    pay_out_commission,
    transfer_float,
)
from harness import Harness


async def get_balance(harness: Harness, subscriber: dict[str, Any]) -> str:
    response = await harness.client.get(
        f"/api/v1/subscribers/{subscriber['id']}", auth=harness.get_service_auth()
    )
    return str(response.json()["balance"])


async def test_concurrent_cash_ins_cannot_overdraw_the_float(harness: Harness) -> None:
    agent, admin = await create_agent(harness, balance="200"), await harness.create_admin()
    customers = [await harness.create_subscriber() for _ in range(5)]
    body = {"agent_id": agent["id"], "amount": "10", "agent_pin": AGENT_PIN}
    responses = await asyncio.gather(
        *(
            harness.client.post(
                "/api/v1/agents/cashin",
                json=body | {"subscriber_id": customers[number % 5]["id"]},
                auth=admin,
            )
            for number in range(50)
        )
    )
    accepted = [response for response in responses if response.status_code == 200]
    assert len(accepted) == 20
    assert {parse_error(response) for response in responses if response not in accepted} == {
        (402, "INSUFFICIENT_FLOAT")
    }
    assert await get_balances(harness, agent) == ("0.00", "2.00")
    received = [float(await get_balance(harness, customer)) for customer in customers]
    assert sum(received) == 200.0


async def test_concurrent_commission_payouts_pay_once(harness: Harness) -> None:
    agent, customer = await create_agent(harness, balance="100"), await harness.create_subscriber()
    await cash_in(harness, agent, customer, "100")
    responses = await asyncio.gather(*(pay_out_commission(harness, agent) for _ in range(8)))
    assert sorted(response.status_code for response in responses) == [200] + [402] * 7
    assert await get_balances(harness, agent) == ("1.00", "0.00")


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
