"""Changes to an agent's profile and commission tier."""

import asyncio
from typing import Any

import httpx2

from builders.participants import (
    AGENTS_URL,
    cash_in,
    create_agent,
    create_agent_in_status,
    get_balances,
)
from cases import each
from harness import Harness, parse_error
from tapgate_client import ids


async def update_agent(harness: Harness, agent: dict[str, Any], **fields: Any) -> httpx2.Response:
    return await harness.client.put(
        f"{AGENTS_URL}/{agent['id']}", json=fields, auth=await harness.create_admin()
    )


async def test_update_changes_the_given_fields_and_is_audited(harness: Harness) -> None:
    agent = await create_agent(harness, address="1 Old Road")
    phone_number = harness.new_phone_number()
    changes = {
        "name": "Mariama Jalloh",
        "business_name": "Jalloh Cash Point",
        "email": "mariama@example.com",
        "address": "9 Kissy Road",
        "phone_number": phone_number,
        "commission_tier": 3,
    }
    harness.advance_clock(seconds=1)
    response = await update_agent(harness, agent, **changes, business_owner="ignored")
    assert response.status_code == 200
    record = response.json()
    assert record == agent | changes | {"updated_at": record["updated_at"]}
    assert record["updated_at"] > agent["updated_at"]
    read = await harness.client.get(
        f"{AGENTS_URL}/{agent['id']}", auth=await harness.create_admin("S")
    )
    assert read.json() == record
    (entry,) = await harness.list_audit_entries(agent["id"], "agent.updated")
    assert entry["changes"] == {name: [agent[name], value] for name, value in changes.items()}


async def test_new_name_is_on_both_accounts_and_in_searches(harness: Harness) -> None:
    agent = await create_agent(harness)
    await update_agent(harness, agent, name="Sia Koroma")
    accounts = "SELECT DISTINCT holder_name, public_name FROM accounts WHERE owner_id = $1"
    agent_id = ids.decode(ids.AGENT, agent["id"])
    rows = await harness.services.database.fetch(accounts, agent_id)
    assert [tuple(row) for row in rows] == [("Sia Koroma", "Sia K.")]
    await update_agent(harness, agent, business_name="Koroma Stores")
    rows = await harness.services.database.fetch(accounts, agent_id)
    assert [tuple(row) for row in rows] == [("Sia Koroma", "Koroma Stores")]
    key = await harness.create_api_key("payments:read")
    for search, count in (("sia stores", 1), ("foday", 0)):
        response = await harness.client.get(AGENTS_URL, params={"search": search}, auth=key)
        assert len(response.json()["data"]) == count, search


async def test_update_without_changes_is_not_audited(harness: Harness) -> None:
    agent = await create_agent(harness)
    for fields in ({}, {"name": agent["name"]}, {"email": None}):
        response = await update_agent(harness, agent, **fields)
        assert (response.status_code, response.json()) == (200, agent)
    assert await harness.list_audit_entries(agent["id"], "agent.updated") == []


@each(
    "fields, status, field",
    [
        ({"name": ""}, 422, "name"),
        ({"name": 5}, 400, "name"),
        ({"email": "nobody"}, 422, "email"),
        ({"phone_number": "076123456"}, 422, "phone_number"),
        ({"commission_tier": 4}, 422, "commission_tier"),
        ({"commission_tier": "2"}, 400, "commission_tier"),
        ({"address": "x" * 256}, 422, "address"),
    ],
)
async def test_invalid_field_is_rejected(
    harness: Harness, fields: dict[str, Any], status: int, field: str
) -> None:
    agent = await create_agent(harness)
    response = await update_agent(harness, agent, **fields)
    assert response.status_code == status
    assert list(response.json()["details"]["fields"]) == [field]


async def test_phone_number_of_another_agent_is_rejected(harness: Harness) -> None:
    agent, other = await create_agent(harness), await create_agent(harness)
    response = await update_agent(harness, agent, phone_number=other["phone_number"], name="Eve")
    assert parse_error(response) == (409, "DUPLICATE_PHONE")
    customer = await harness.create_subscriber()
    response = await update_agent(harness, agent, phone_number=customer["phone_number"])
    assert response.json()["name"] == agent["name"]


async def test_terminated_agent_cannot_be_changed(harness: Harness) -> None:
    agent = await create_agent_in_status(harness, "terminated")
    assert parse_error(await update_agent(harness, agent, name="Eve")) == (409, "NOT_CLOSABLE")
    suspended = await create_agent_in_status(harness, "suspended")
    response = await update_agent(harness, suspended, name="Sia Koroma")
    assert (response.json()["name"], response.json()["status"]) == ("Sia Koroma", "suspended")


async def test_new_tier_applies_from_the_next_cash_in(harness: Harness) -> None:
    agent, customer = await create_agent(harness, balance="500"), await harness.create_subscriber()
    for tier, commission in ((1, "1.00 SLE"), (3, "2.00 SLE"), (2, "1.50 SLE")):
        assert (await update_agent(harness, agent, commission_tier=tier)).status_code == 200
        receipt = (await cash_in(harness, agent, customer, "100")).json()
        assert receipt["commission_earned"] == commission
    assert await get_balances(harness, agent) == ("200.00", "4.50")


async def test_updates_during_cash_ins_lose_neither_money_nor_changes(harness: Harness) -> None:
    agent, customer = await create_agent(harness, balance="500"), await harness.create_subscriber()
    responses = await asyncio.gather(
        *(cash_in(harness, agent, customer, "10") for _ in range(8)),
        *(update_agent(harness, agent, address=f"{number} Kissy Road") for number in range(4)),
        *(update_agent(harness, agent, business_name=f"Shop {number}") for number in range(4)),
    )
    assert {response.status_code for response in responses} == {200}
    assert await get_balances(harness, agent) == ("420.00", "0.80")
    record = (await update_agent(harness, agent)).json()
    assert record["address"].endswith("Kissy Road") and record["business_name"].startswith("Shop")
