"""Agent registration and the agent record."""

import asyncio
from typing import Any

import pytest

from builders.participants import (
    AGENT_PIN,
    AGENTS_URL,
    build_registration,
    create_agent,
    create_agent_in_status,
    register_agent,
)
from cases import each
from harness import Harness, parse_error
from tapgate.business.agents import model, queries
from tapgate_client import ids

RECORD_FIELDS = [
    "id",
    "agent_type",
    "parent_agent_id",
    "name",
    "business_name",
    "phone_number",
    "email",
    "address",
    "commission_tier",
    "status",
    "account_id",
    "float_balance",
    "commission_balance",
    "currency",
    "created_at",
    "updated_at",
]


async def test_registration_returns_the_full_record(harness: Harness) -> None:
    parent = await create_agent(harness)
    body = build_registration(
        harness,
        agent_type="sub_agent",
        parent_agent_id=parent["id"],
        business_name="Kamara Stores",
        email="Shop@Example.com",
        address="12 Siaka Stevens Street, Freetown",
        commission_tier=3,
    )
    admin = await harness.create_admin()
    response = await harness.post(AGENTS_URL, json=body, auth=admin)
    assert response.status_code == 201
    receipt = response.json()
    assert list(receipt) == ["success", "message", "agent_id", "agent"]
    record = receipt["agent"]
    assert list(record) == RECORD_FIELDS
    assert receipt["agent_id"] == record["id"]
    assert record["id"].startswith("agt_")
    assert record["account_id"].startswith("acc_")
    assert record["created_at"] == record["updated_at"]
    assert record | {"id": "", "account_id": "", "created_at": "", "updated_at": ""} == {
        "id": "",
        "agent_type": "sub_agent",
        "parent_agent_id": parent["id"],
        "name": "Foday Bangura",
        "business_name": "Kamara Stores",
        "phone_number": body["phone_number"],
        "email": "shop@example.com",
        "address": "12 Siaka Stevens Street, Freetown",
        "commission_tier": 3,
        "status": "active",
        "account_id": "",
        "float_balance": "0.00",
        "commission_balance": "0.00",
        "currency": "SLE",
        "created_at": "",
        "updated_at": "",
    }
    assert (await harness.get(f"{AGENTS_URL}/{record['id']}", auth=admin)).json() == record
    (entry,) = await harness.list_audit_entries(record["id"], "agent.created")
    assert entry["actor"]["id"] == admin.id
    assert entry["changes"] == {"status": [None, "active"]}


async def test_omitted_fields_are_null_and_the_tier_defaults_to_one(harness: Harness) -> None:
    record = await create_agent(harness)
    for field in ("parent_agent_id", "business_name", "email", "address"):
        assert record[field] is None
    assert record["commission_tier"] == 1


async def test_registration_opens_a_float_and_a_commission_account(harness: Harness) -> None:
    record = await create_agent(harness)
    rows = await harness.database.fetch(
        "SELECT id, kind, holder_name FROM accounts WHERE owner_id = $1 ORDER BY kind DESC",
        ids.decode(ids.AGENT, record["id"]),
    )
    assert [row["kind"] for row in rows] == ["float", "commission"]
    assert {row["holder_name"] for row in rows} == {"Foday Bangura"}
    assert ids.encode(ids.ACCOUNT, rows[0]["id"]) == record["account_id"]


@pytest.mark.parametrize(
    ("fields", "public_name"),
    [
        ({"name": "Foday Alpha Bangura"}, "Foday B."),
        ({"name": "Foday"}, "Foday"),
        ({"name": "Foday Bangura", "business_name": "Kamara Stores"}, "Kamara Stores"),
    ],
)
async def test_public_name_is_the_business_name_or_the_abbreviated_name(
    harness: Harness, fields: dict[str, str], public_name: str
) -> None:
    record = await create_agent(harness, **fields)
    rows = await harness.database.fetch(
        "SELECT public_name FROM accounts WHERE owner_id = $1", ids.decode(ids.AGENT, record["id"])
    )
    assert {row["public_name"] for row in rows} == {public_name}


async def test_agent_can_be_loaded_by_internal_id(harness: Harness) -> None:
    record = await create_agent(harness, balance="12")
    agent = await queries.get(harness.database, ids.decode(ids.AGENT, record["id"]) or 0)
    assert model.to_record(agent).float_balance == "12.00"


async def test_sub_agent_requires_a_parent(harness: Harness) -> None:
    for fields in ({}, {"parent_agent_id": None}, {"phone_number": "nobody's"}):
        response = await register_agent(harness, agent_type="sub_agent", **fields)
        assert parse_error(response) == (400, "MISSING_PARENT")


async def test_unknown_parent_is_not_found(harness: Harness) -> None:
    for unknown in (ids.encode(ids.AGENT, 1), "agt_1", "sub_0000000000001"):
        response = await register_agent(harness, agent_type="sub_agent", parent_agent_id=unknown)
        assert parse_error(response) == (404, "AGENT_NOT_FOUND")


async def test_parent_must_be_a_super_agent_that_is_not_terminated(harness: Harness) -> None:
    parent = await create_agent(harness)
    sub_agent = await create_agent(harness, agent_type="sub_agent", parent_agent_id=parent["id"])
    terminated = await create_agent_in_status(harness, "terminated")
    for invalid_parent in (sub_agent, terminated):
        response = await register_agent(
            harness, agent_type="sub_agent", parent_agent_id=invalid_parent["id"]
        )
        assert parse_error(response) == (422, "VALIDATION_FAILED")
        assert list(response.json()["details"]["fields"]) == ["parent_agent_id"]
    suspended = await create_agent_in_status(harness, "suspended")
    response = await register_agent(
        harness, agent_type="sub_agent", parent_agent_id=suspended["id"]
    )
    assert response.status_code == 201


async def test_super_agent_cannot_have_a_parent(harness: Harness) -> None:
    parent = await create_agent(harness)
    response = await register_agent(harness, parent_agent_id=parent["id"])
    assert parse_error(response) == (422, "VALIDATION_FAILED")
    assert list(response.json()["details"]["fields"]) == ["parent_agent_id"]


async def test_phone_number_is_unique_among_agents(harness: Harness) -> None:
    phone = harness.new_phone_number()
    responses = await asyncio.gather(
        *(register_agent(harness, phone_number=phone) for _ in range(5))
    )
    assert sorted(response.status_code for response in responses) == [201, 409, 409, 409, 409]
    formatted = f"{phone[:4]} {phone[4:]}"
    assert parse_error(await register_agent(harness, phone_number=formatted)) == (
        409,
        "DUPLICATE_PHONE",
    )
    # A subscriber can have the same phone number as an agent.
    assert (await harness.create_subscriber(phone_number=phone))["phone_number"] == phone


async def test_weak_pins_are_rejected_unless_allowed_by_the_settings(harness: Harness) -> None:
    harness.allow_weak_pins()
    assert (await register_agent(harness, pin="1111")).status_code == 201
    harness.allow_weak_pins(False)
    response = await register_agent(harness, pin="1111")
    assert parse_error(response) == (422, "VALIDATION_FAILED")
    assert list(response.json()["details"]["fields"]) == ["pin"]
    assert (await register_agent(harness, pin=AGENT_PIN)).status_code == 201


@each(
    "field, value, status",
    [
        ("agent_type", None, 400),
        ("agent_type", "agent", 422),
        ("name", None, 400),
        ("name", 7, 400),
        ("name", " ", 422),
        ("name", "n" * 256, 422),
        ("phone_number", None, 400),
        ("phone_number", "12", 422),
        ("pin", None, 400),
        ("pin", 5927, 400),
        ("pin", "592", 422),
        ("email", "nobody", 422),
        ("commission_tier", 0, 422),
        ("commission_tier", 4, 422),
        ("commission_tier", "1", 400),
    ],
)
async def test_invalid_registration_field_is_rejected(
    harness: Harness, field: str, value: Any, status: int
) -> None:
    response = await register_agent(harness, **{field: value})
    assert response.status_code == status, response.text
    assert list(response.json()["details"]["fields"]) == [field]
