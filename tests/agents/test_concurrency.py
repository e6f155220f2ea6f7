"""Concurrent operations on the same float, commission and wallets."""

import asyncio
from typing import Any

from builders.participants import (
    cash_in,
    cash_out,
    change_status,
    create_agent,
    create_sub_agent,
    get_balances,
    transfer_float,
)
from harness import Harness


async def get_balance(harness: Harness, subscriber: dict[str, Any]) -> str:
    response = await harness.client.get(
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
