"""Agents for tests, and what they do, over HTTP."""

from typing import Any

import httpx2

from world import PIN, World

URL = "/api/v1/agents"
AGENT_PIN = "5927"


def registration(world: World, **fields: Any) -> dict[str, Any]:
    return {
        "agent_type": "super_agent",
        "name": "Foday Bangura",
        "phone_number": world.phone(),
        "pin": AGENT_PIN,
        **fields,
    }


async def register(world: World, **fields: Any) -> httpx2.Response:
    return await world.client.post(
        URL, json=registration(world, **fields), auth=await world.admin()
    )


async def new_agent(world: World, *, balance: str = "0", **fields: Any) -> dict[str, Any]:
    """The record of a new agent whose PIN is `AGENT_PIN`."""
    answer = await register(world, **fields)
    assert answer.status_code == 201, answer.text
    record: dict[str, Any] = answer.json()["agent"]
    if balance != "0":
        answer = await fund(world, record, balance)
        assert answer.status_code == 200, answer.text
    return record


async def new_sub_agent(world: World, parent: dict[str, Any], **more: Any) -> dict[str, Any]:
    return await new_agent(world, agent_type="sub_agent", parent_agent_id=parent["id"], **more)


async def ask(world: World, path: str, **body: Any) -> httpx2.Response:
    """As a system_admin, who may do everything with agents."""
    return await world.client.post(URL + path, json=body, auth=await world.admin())


async def fund(world: World, agent: dict[str, Any], amount: str, **more: Any) -> httpx2.Response:
    return await ask(world, f"/{agent['id']}/fund", amount=amount, **more)


async def move(world: World, agent: dict[str, Any], verb: str) -> httpx2.Response:
    return await ask(world, f"/{agent['id']}/{verb}", reason="agent asked")


async def in_state(world: World, status: str) -> dict[str, Any]:
    agent = await new_agent(world)
    if status != "active":
        verb = {"suspended": "suspend", "terminated": "terminate"}[status]
        answer = await move(world, agent, verb)
        assert answer.status_code == 200, answer.text
    return agent


async def cash_in(
    world: World, agent: dict[str, Any], customer: dict[str, Any], amount: str, **more: Any
) -> httpx2.Response:
    order = {
        "agent_id": agent["id"],
        "subscriber_id": customer["id"],
        "amount": amount,
        "agent_pin": AGENT_PIN,
        **more,
    }
    return await ask(world, "/cashin", **order)


async def cash_out(
    world: World, agent: dict[str, Any], customer: dict[str, Any], amount: str, **more: Any
) -> httpx2.Response:
    order = {
        "agent_id": agent["id"],
        "subscriber_id": customer["id"],
        "amount": amount,
        "agent_pin": AGENT_PIN,
        "pin": PIN,
        **more,
    }
    return await ask(world, "/cashout", **order)


async def transfer(
    world: World, sender: dict[str, Any], receiver: dict[str, Any], amount: str, **more: Any
) -> httpx2.Response:
    order = {
        "from_agent_id": sender["id"],
        "to_agent_id": receiver["id"],
        "amount": amount,
        "pin": AGENT_PIN,
        **more,
    }
    return await ask(world, "/transfer", **order)


async def pay_out(world: World, agent: dict[str, Any], **more: Any) -> httpx2.Response:
    return await ask(world, f"/{agent['id']}/payout-commission", **more)


async def balances(world: World, agent: dict[str, Any]) -> tuple[str, str]:
    """Float and commission."""
    answer = await world.client.get(
        f"{URL}/{agent['id']}/balance", auth=await world.api_key("balance:read")
    )
    found = answer.json()
    return found["float_balance"], found["commission_balance"]


def refusal(answer: httpx2.Response) -> tuple[int, str]:
    return answer.status_code, answer.json().get("code")
