"""Agent builders and agent operations over HTTP."""

from typing import Any

import httpx2

from harness import PIN, Harness

AGENTS_URL = "/api/v1/agents"
AGENT_PIN = "5927"


def build_registration(harness: Harness, **fields: Any) -> dict[str, Any]:
    return {
        "agent_type": "super_agent",
        "name": "Foday Bangura",
        "phone_number": harness.new_phone_number(),
        "pin": AGENT_PIN,
        **fields,
    }


async def register_agent(harness: Harness, **fields: Any) -> httpx2.Response:
    return await harness.client.post(
        AGENTS_URL, json=build_registration(harness, **fields), auth=await harness.create_admin()
    )


async def create_agent(harness: Harness, *, balance: str = "0", **fields: Any) -> dict[str, Any]:
    """Create an agent whose PIN is `AGENT_PIN` and return its record."""
    response = await register_agent(harness, **fields)
    assert response.status_code == 201, response.text
    record: dict[str, Any] = response.json()["agent"]
    if balance != "0":
        response = await fund_agent(harness, record, balance)
        assert response.status_code == 200, response.text
    return record


async def create_sub_agent(harness: Harness, parent: dict[str, Any], **more: Any) -> dict[str, Any]:
    return await create_agent(harness, agent_type="sub_agent", parent_agent_id=parent["id"], **more)


async def post_as_admin(harness: Harness, path: str, **body: Any) -> httpx2.Response:
    """Send a POST as a system_admin, who has full access to agents."""
    return await harness.client.post(
        AGENTS_URL + path, json=body, auth=await harness.create_admin()
    )


async def fund_agent(
    harness: Harness, agent: dict[str, Any], amount: str, **more: Any
) -> httpx2.Response:
    return await post_as_admin(harness, f"/{agent['id']}/fund", amount=amount, **more)


async def change_status(harness: Harness, agent: dict[str, Any], verb: str) -> httpx2.Response:
    return await post_as_admin(harness, f"/{agent['id']}/{verb}", reason="agent asked")


async def create_agent_in_status(harness: Harness, status: str) -> dict[str, Any]:
    agent = await create_agent(harness)
    if status != "active":
        verb = {"suspended": "suspend", "terminated": "terminate"}[status]
        response = await change_status(harness, agent, verb)
        assert response.status_code == 200, response.text
    return agent


async def cash_in(
    harness: Harness, agent: dict[str, Any], customer: dict[str, Any], amount: str, **more: Any
) -> httpx2.Response:
    body = _build_cash_body(agent, customer, amount)
    return await post_as_admin(harness, "/cashin", **{**body, **more})


async def cash_out(
    harness: Harness, agent: dict[str, Any], customer: dict[str, Any], amount: str, **more: Any
) -> httpx2.Response:
    body = _build_cash_body(agent, customer, amount)
    return await post_as_admin(harness, "/cashout", **{**body, "pin": PIN, **more})


def _build_cash_body(
    agent: dict[str, Any], customer: dict[str, Any], amount: str
) -> dict[str, Any]:
    return {
        "agent_id": agent["id"],
        "subscriber_id": customer["id"],
        "amount": amount,
        "agent_pin": AGENT_PIN,
    }


async def transfer_float(
    harness: Harness, sender: dict[str, Any], receiver: dict[str, Any], amount: str, **more: Any
) -> httpx2.Response:
    body = {
        "from_agent_id": sender["id"],
        "to_agent_id": receiver["id"],
        "amount": amount,
        "pin": AGENT_PIN,
        **more,
    }
    return await post_as_admin(harness, "/transfer", **body)


async def pay_out_commission(
    harness: Harness, agent: dict[str, Any], **more: Any
) -> httpx2.Response:
    return await post_as_admin(harness, f"/{agent['id']}/payout-commission", **more)


async def get_balances(harness: Harness, agent: dict[str, Any]) -> tuple[str, str]:
    """Return the float and commission balances."""
    response = await harness.client.get(
        f"{AGENTS_URL}/{agent['id']}/balance", auth=await harness.create_api_key("balance:read")
    )
    balances = response.json()
    return balances["float_balance"], balances["commission_balance"]
