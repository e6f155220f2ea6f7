"""Agent status transitions: suspend, activate and terminate from every status."""

import asyncio
from datetime import UTC, datetime
from typing import Any

import pytest

from builders.participants import (
    AGENT_PIN,
    AGENTS_URL,
    cash_in,
    cash_out,
    change_status,
    create_agent,
    create_agent_in_status,
    create_sub_agent,
    fund_agent,
    get_balances,
    pay_out_commission,
    post_as_admin,
    register_agent,
    transfer_float,
)
from cases import each
from harness import Harness, parse_error
from tapgate.business.agents.model import TERMINATE, Agent, apply_transition
from tapgate_client import ids
from tapgate_client.errors import ApiError, Code


@each(
    "status, verb, result",
    [
        ("active", "suspend", "suspended"),
        ("active", "activate", "NOT_SUSPENDED"),
        ("active", "terminate", "terminated"),
        ("suspended", "suspend", "ALREADY_SUSPENDED"),
        ("suspended", "activate", "active"),
        ("suspended", "terminate", "terminated"),
        ("terminated", "suspend", "NOT_CLOSABLE"),
        ("terminated", "activate", "NOT_CLOSABLE"),
        ("terminated", "terminate", "NOT_CLOSABLE"),
    ],
)
async def test_transition_is_applied_or_rejected_depending_on_the_current_status(
    harness: Harness, status: str, verb: str, result: str
) -> None:
    agent = await create_agent_in_status(harness, status)
    response = await change_status(harness, agent, verb)
    if response.status_code == 200:
        assert list(response.json()) == ["success", "message", "agent"]
        assert response.json()["agent"]["status"] == result
        assert response.json()["agent"]["updated_at"] > agent["updated_at"]
    else:
        assert parse_error(response) == (409, result)


async def test_transitions_are_audited_with_old_and_new_status(harness: Harness) -> None:
    agent, admin = await create_agent(harness), await harness.create_admin()
    url = f"{AGENTS_URL}/{agent['id']}"
    await harness.post(f"{url}/suspend", json={"reason": "cash was missing"}, auth=admin)
    await harness.post(f"{url}/activate", auth=admin)
    await harness.post(f"{url}/terminate", json={"reason": "gave up"}, auth=admin)
    expected: list[tuple[str, str | None, list[str]]] = [
        ("suspended", "cash was missing", ["active", "suspended"]),
        ("activated", None, ["suspended", "active"]),
        ("terminated", "gave up", ["active", "terminated"]),
    ]
    for event, reason, states in expected:
        (entry,) = await harness.list_audit_entries(agent["id"], f"agent.{event}")
        assert entry["actor"]["id"] == admin.id
        assert (entry["reason"], entry["changes"]) == (reason, {"status": states})


async def test_agent_status_applies_to_both_accounts(harness: Harness) -> None:
    agent = await create_agent_in_status(harness, "suspended")
    rows = await harness.database.fetch(
        "SELECT status, status_reason FROM accounts WHERE owner_id = $1",
        ids.decode(ids.AGENT, agent["id"]),
    )
    assert [tuple(row) for row in rows] == [("blocked", "agent asked")] * 2


async def test_suspend_and_terminate_require_a_reason(harness: Harness) -> None:
    agent, admin = await create_agent(harness), await harness.create_admin()
    bodies: list[tuple[dict[str, Any], int]] = [
        ({}, 400),
        ({"reason": None}, 400),
        ({"reason": 7}, 400),
        ({"reason": ""}, 422),
        ({"reason": "r" * 501}, 422),
    ]
    for verb in ("suspend", "terminate"):
        for body, status in bodies:
            response = await harness.post(
                f"{AGENTS_URL}/{agent['id']}/{verb}", json=body, auth=admin
            )
            assert response.status_code == status, body
            assert list(response.json()["details"]["fields"]) == ["reason"]


async def test_agent_with_float_or_commission_cannot_be_terminated(harness: Harness) -> None:
    agent, customer = await create_agent(harness, balance="100"), await harness.create_subscriber()
    assert parse_error(await change_status(harness, agent, "terminate")) == (409, "NOT_CLOSABLE")
    await cash_in(harness, agent, customer, "100")
    assert await get_balances(harness, agent) == ("0.00", "1.00")
    assert parse_error(await change_status(harness, agent, "terminate")) == (409, "NOT_CLOSABLE")
    await pay_out_commission(harness, agent)
    # An amount below the minimum earns no commission.
    await cash_in(harness, agent, customer, "1")
    assert await get_balances(harness, agent) == ("0.00", "0.00")
    assert (await change_status(harness, agent, "terminate")).status_code == 200


def test_agent_with_held_funds_cannot_be_terminated() -> None:
    now = datetime(2026, 1, 31, tzinfo=UTC)
    agent = Agent(
        id=1,
        account_id=2,
        commission_account_id=3,
        agent_type="super_agent",
        name="Foday Bangura",
        phone_number="+23276000001",
        currency="SLE",
        created_at=now,
        updated_at=now,
        held=1,
    )
    with pytest.raises(ApiError) as error:
        apply_transition(agent, TERMINATE, "gave up")
    assert error.value.code == Code.NOT_CLOSABLE


async def test_terminated_agent_cannot_change_the_pin(harness: Harness) -> None:
    agent = await create_agent_in_status(harness, "terminated")
    path = f"/{agent['id']}/change-pin"
    response = await post_as_admin(harness, path, old_pin=AGENT_PIN, new_pin="4071")
    assert parse_error(response) == (409, "NOT_CLOSABLE")


async def test_sub_agents_keep_working_after_their_parent_is_terminated(harness: Harness) -> None:
    parent, customer = await create_agent(harness), await harness.create_subscriber()
    sub_agent = await create_sub_agent(harness, parent, balance="50")
    assert (await change_status(harness, parent, "terminate")).status_code == 200
    assert (await cash_in(harness, sub_agent, customer, "50")).status_code == 200


@pytest.mark.parametrize("verb", ["suspend", "terminate"])
async def test_inactive_agent_cannot_send_or_receive_money(harness: Harness, verb: str) -> None:
    parent = await create_agent(harness, balance="100")
    customer = await harness.create_subscriber(balance="9")
    agent = await create_sub_agent(harness, parent)
    unrelated_agent = await create_agent(harness)
    assert (await change_status(harness, agent, verb)).status_code == 200
    for response, party in (
        (await cash_in(harness, agent, customer, "5"), "sender"),
        (await cash_out(harness, agent, customer, "5"), "receiver"),
        (await transfer_float(harness, parent, agent, "5"), "receiver"),
        (await pay_out_commission(harness, agent), "sender"),
        (await fund_agent(harness, agent, "5"), "receiver"),
    ):
        assert parse_error(response) == (403, "AGENT_NOT_ACTIVE")
        assert response.json()["details"] == {"party": party}
    assert (await change_status(harness, parent, "suspend")).status_code == 200
    response = await transfer_float(harness, parent, agent, "5")
    assert response.json()["details"] == {"party": "sender"}
    assert parse_error(await transfer_float(harness, agent, unrelated_agent, "5")) == (
        403,
        "FORBIDDEN",
    )
    assert await get_balances(harness, agent) == ("0.00", "0.00")


async def test_concurrent_suspensions_apply_once(harness: Harness) -> None:
    agent = await create_agent(harness)
    responses = await asyncio.gather(*(change_status(harness, agent, "suspend") for _ in range(5)))
    assert sorted(response.status_code for response in responses) == [200, 409, 409, 409, 409]
    assert len(await harness.list_audit_entries(agent["id"], "agent.suspended")) == 1


async def test_agent_funded_and_terminated_concurrently_is_never_left_terminated_with_float(
    harness: Harness,
) -> None:
    for _ in range(5):
        agent = await create_agent(harness)
        terminated, funded = await asyncio.gather(
            change_status(harness, agent, "terminate"), fund_agent(harness, agent, "5")
        )
        assert {terminated.status_code, funded.status_code} in ({200, 409}, {200, 403})
        expected = "5.00" if funded.status_code == 200 else "0.00"
        assert await get_balances(harness, agent) == (expected, "0.00")


async def test_concurrent_registration_cannot_add_a_sub_agent_to_a_terminated_parent(
    harness: Harness,
) -> None:
    parent = await create_agent(harness)
    child = {"agent_type": "sub_agent", "parent_agent_id": parent["id"]}
    *registered, terminated = await asyncio.gather(
        *(register_agent(harness, **child) for _ in range(6)),
        change_status(harness, parent, "terminate"),
    )
    assert terminated.status_code == 200
    terminated_at = terminated.json()["agent"]["updated_at"]
    for response in registered:
        if response.status_code == 201:
            assert response.json()["agent"]["created_at"] <= terminated_at
        else:
            assert parse_error(response) == (422, "VALIDATION_FAILED")
