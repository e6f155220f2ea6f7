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


async def get_balance(world: Harness, subscriber: dict[str, Any]) -> str:
    answer = await world.client.get(
        f"/api/v1/subscribers/{subscriber['id']}", auth=world.get_service_auth()
    )
    return str(answer.json()["balance"])


async def test_concurrent_cash_ins_cannot_overdraw_the_float(world: Harness) -> None:
    agent, admin = await create_agent(world, balance="200"), await world.create_admin()
    customers = [await world.create_subscriber() for _ in range(5)]
    order = {"agent_id": agent["id"], "amount": "10", "agent_pin": AGENT_PIN}
    answers = await asyncio.gather(
        *(
            world.client.post(
                "/api/v1/agents/cashin",
                json=order | {"subscriber_id": customers[number % 5]["id"]},
                auth=admin,
            )
            for number in range(50)
        )
    )
    done = [answer for answer in answers if answer.status_code == 200]
    assert len(done) == 20
    assert {parse_error(answer) for answer in answers if answer not in done} == {
        (402, "INSUFFICIENT_FLOAT")
    }
    assert await get_balances(world, agent) == ("0.00", "2.00")
    received = [float(await get_balance(world, customer)) for customer in customers]
    assert sum(received) == 200.0


async def test_concurrent_commission_payouts_pay_once(world: Harness) -> None:
    agent, customer = await create_agent(world, balance="100"), await world.create_subscriber()
    await cash_in(world, agent, customer, "100")
    answers = await asyncio.gather(*(pay_out_commission(world, agent) for _ in range(8)))
    assert sorted(answer.status_code for answer in answers) == [200] + [402] * 7
    assert await get_balances(world, agent) == ("1.00", "0.00")


async def test_concurrent_operations_of_parents_and_sub_agents_do_not_deadlock(
    world: Harness,
) -> None:
    """Each operation locks several accounts; none deadlocks and no money is lost."""
    parent = await create_agent(world, balance="100")
    sub_agents = [await create_sub_agent(world, parent, balance="10") for _ in range(3)]
    customer = await world.create_subscriber(balance="100")
    work = []
    for sub_agent in sub_agents * 5:
        work.append(transfer_float(world, parent, sub_agent, "1"))
        work.append(cash_in(world, sub_agent, customer, "2"))
        work.append(cash_out(world, sub_agent, customer, "2"))
        work.append(change_status(world, sub_agent, "activate"))
    answers = await asyncio.gather(*work)
    assert {answer.status_code for answer in answers} == {200, 409}
    assert await get_balances(world, parent) == ("85.00", "0.00")
    for sub_agent in sub_agents:
        assert await get_balances(world, sub_agent) == ("15.00", "0.00")  # below the minimum
    assert await get_balance(world, customer) == "100.00"
