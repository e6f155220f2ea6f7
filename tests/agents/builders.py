"""Agent builders and agent operations over HTTP."""

from typing import Any

import httpx2

from harness import PIN, Harness

AGENTS_URL = "/api/v1/agents"
AGENT_PIN = "5927"


def build_registration(world: Harness, **fields: Any) -> dict[str, Any]:
    return {
        "agent_type": "super_agent",
        "name": "Foday Bangura",
        "phone_number": world.new_phone_number(),
        "pin": AGENT_PIN,
        **fields,
    }


async def register_agent(world: Harness, **fields: Any) -> httpx2.Response:
    return await world.client.post(
        AGENTS_URL, json=build_registration(world, **fields), auth=await world.create_admin()
    )


async def create_agent(world: Harness, *, balance: str = "0", **fields: Any) -> dict[str, Any]:
    """Create an agent whose PIN is `AGENT_PIN` and return its record."""
    answer = await register_agent(world, **fields)
    assert answer.status_code == 201, answer.text
    record: dict[str, Any] = answer.json()["agent"]
    if balance != "0":
        answer = await fund_agent(world, record, balance)
        assert answer.status_code == 200, answer.text
    return record


async def create_sub_agent(world: Harness, parent: dict[str, Any], **more: Any) -> dict[str, Any]:
    return await create_agent(world, agent_type="sub_agent", parent_agent_id=parent["id"], **more)


async def post_as_admin(world: Harness, path: str, **body: Any) -> httpx2.Response:
    """Send a POST as a system_admin, who has full access to agents."""
    return await world.client.post(AGENTS_URL + path, json=body, auth=await world.create_admin())


async def fund_agent(
    world: Harness, agent: dict[str, Any], amount: str, **more: Any
) -> httpx2.Response:
    return await post_as_admin(world, f"/{agent['id']}/fund", amount=amount, **more)


async def change_status(world: Harness, agent: dict[str, Any], verb: str) -> httpx2.Response:
    return await post_as_admin(world, f"/{agent['id']}/{verb}", reason="agent asked")


async def create_agent_in_status(world: Harness, status: str) -> dict[str, Any]:
    agent = await create_agent(world)
    if status != "active":
        verb = {"suspended": "suspend", "terminated": "terminate"}[status]
        answer = await change_status(world, agent, verb)
        assert answer.status_code == 200, answer.text
    return agent


async def cash_in(
    world: Harness, agent: dict[str, Any], customer: dict[str, Any], amount: str, **more: Any
) -> httpx2.Response:
    order = {
        "agent_id": agent["id"],
        "subscriber_id": customer["id"],
        "amount": amount,
        "agent_pin": AGENT_PIN,
        **more,
    }
    return await post_as_admin(world, "/cashin", **order)


async def cash_out(
    world: Harness, agent: dict[str, Any], customer: dict[str, Any], amount: str, **more: Any
) -> httpx2.Response:
    order = {
        "agent_id": agent["id"],
        "subscriber_id": customer["id"],
        "amount": amount,
        "agent_pin": AGENT_PIN,
        "pin": PIN,
        **more,
    }
    return await post_as_admin(world, "/cashout", **order)


async def transfer_float(
    world: Harness, sender: dict[str, Any], receiver: dict[str, Any], amount: str, **more: Any
) -> httpx2.Response:
    order = {
        "from_agent_id": sender["id"],
        "to_agent_id": receiver["id"],
        "amount": amount,
        "pin": AGENT_PIN,
        **more,
    }
    return await post_as_admin(world, "/transfer", **order)


async def pay_out_commission(world: Harness, agent: dict[str, Any], **more: Any) -> httpx2.Response:
    return await post_as_admin(world, f"/{agent['id']}/payout-commission", **more)


async def get_balances(world: Harness, agent: dict[str, Any]) -> tuple[str, str]:
    """Return the float and commission balances."""
    answer = await world.client.get(
        f"{AGENTS_URL}/{agent['id']}/balance", auth=await world.create_api_key("balance:read")
    )
    found = answer.json()
    return found["float_balance"], found["commission_balance"]


def parse_error(answer: httpx2.Response) -> tuple[int, str]:
    return answer.status_code, answer.json().get("code")
