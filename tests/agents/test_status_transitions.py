"""Agent status transitions: suspend, activate and terminate from every status."""

import asyncio
from datetime import UTC, datetime
from typing import Any

import httpx2
import pytest

from agents.builders import (
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
    parse_error,
    pay_out_commission,
    post_as_admin,
    register_agent,
    transfer_float,
)
from harness import Harness
from tapgate import ids
from tapgate.agents.model import ACTIVATE, SUSPEND, TERMINATE, Agent, apply_transition
from tapgate.edge.services import Services
from tapgate.errors import ApiError, Code


@pytest.mark.parametrize(
    ("status", "verb", "result"),
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
async def test_every_transition_from_every_status(
    world: Harness, status: str, verb: str, result: str
) -> None:
    agent = await create_agent_in_status(world, status)
    answer = await change_status(world, agent, verb)
    if answer.status_code == 200:
        assert list(answer.json()) == ["success", "message", "agent"]
        assert answer.json()["agent"]["status"] == result
        assert answer.json()["agent"]["updated_at"] > agent["updated_at"]
    else:
        assert parse_error(answer) == (409, result)


def test_transition_table_is_complete() -> None:
    moves = (SUSPEND, ACTIVATE, TERMINATE)
    ways = {(move.event, *way) for move in moves for way in move.allowed.items()}
    assert ways == {
        ("suspended", "active", "blocked"),
        ("activated", "blocked", "active"),
        ("terminated", "active", "closed"),
        ("terminated", "blocked", "closed"),
    }


async def test_transitions_are_audited_with_old_and_new_status(
    client: httpx2.AsyncClient, world: Harness
) -> None:
    agent, admin = await create_agent(world), await world.create_admin()
    url = f"{AGENTS_URL}/{agent['id']}"
    await client.post(f"{url}/suspend", json={"reason": "cash was missing"}, auth=admin)
    await client.post(f"{url}/activate", auth=admin)
    await client.post(f"{url}/terminate", json={"reason": "gave up"}, auth=admin)
    expected: list[tuple[str, str | None, list[str]]] = [
        ("suspended", "cash was missing", ["active", "suspended"]),
        ("activated", None, ["suspended", "active"]),
        ("terminated", "gave up", ["active", "terminated"]),
    ]
    for event, reason, states in expected:
        (entry,) = await world.list_audit_entries(agent["id"], f"agent.{event}")
        assert entry["actor"]["id"] == admin.id
        assert (entry["reason"], entry["changes"]) == (reason, {"status": states})


async def test_agent_status_applies_to_both_accounts(world: Harness, services: Services) -> None:
    agent = await create_agent_in_status(world, "suspended")
    rows = await services.database.fetch(
        "SELECT status, status_reason FROM accounts WHERE owner_id = $1",
        ids.decode(ids.AGENT, agent["id"]),
    )
    assert [tuple(row) for row in rows] == [("blocked", "agent asked")] * 2


async def test_suspend_and_terminate_require_a_reason(
    client: httpx2.AsyncClient, world: Harness
) -> None:
    agent, admin = await create_agent(world), await world.create_admin()
    bodies: list[tuple[dict[str, Any], int]] = [
        ({}, 400),
        ({"reason": None}, 400),
        ({"reason": 7}, 400),
        ({"reason": ""}, 422),
        ({"reason": "r" * 501}, 422),
    ]
    for verb in ("suspend", "terminate"):
        for body, status in bodies:
            answer = await client.post(f"{AGENTS_URL}/{agent['id']}/{verb}", json=body, auth=admin)
            assert answer.status_code == status, body
            assert list(answer.json()["details"]["fields"]) == ["reason"]


async def test_agent_with_float_or_commission_cannot_be_terminated(world: Harness) -> None:
    agent, customer = await create_agent(world, balance="100"), await world.create_subscriber()
    assert parse_error(await change_status(world, agent, "terminate")) == (409, "NOT_CLOSABLE")
    await cash_in(world, agent, customer, "100")
    assert await get_balances(world, agent) == ("0.00", "1.00")
    assert parse_error(await change_status(world, agent, "terminate")) == (409, "NOT_CLOSABLE")
    await pay_out_commission(world, agent)
    # An amount below the minimum earns no commission.
    await cash_in(world, agent, customer, "1")
    assert await get_balances(world, agent) == ("0.00", "0.00")
    assert (await change_status(world, agent, "terminate")).status_code == 200


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
    with pytest.raises(ApiError) as objection:
        apply_transition(agent, TERMINATE, "gave up")
    assert objection.value.code == Code.NOT_CLOSABLE


async def test_terminated_agent_cannot_change_the_pin(world: Harness) -> None:
    agent = await create_agent_in_status(world, "terminated")
    path = f"/{agent['id']}/change-pin"
    answer = await post_as_admin(world, path, old_pin=AGENT_PIN, new_pin="4071")
    assert parse_error(answer) == (409, "NOT_CLOSABLE")


async def test_sub_agents_keep_working_after_their_parent_is_terminated(world: Harness) -> None:
    parent, customer = await create_agent(world), await world.create_subscriber()
    sub_agent = await create_sub_agent(world, parent, balance="50")
    assert (await change_status(world, parent, "terminate")).status_code == 200
    assert (await cash_in(world, sub_agent, customer, "50")).status_code == 200


@pytest.mark.parametrize("verb", ["suspend", "terminate"])
async def test_inactive_agent_cannot_send_or_receive_money(world: Harness, verb: str) -> None:
    parent, customer = (
        await create_agent(world, balance="100"),
        await world.create_subscriber(balance="9"),
    )
    agent = await create_sub_agent(world, parent)
    grandchild_of_nobody = await create_agent(world)
    assert (await change_status(world, agent, verb)).status_code == 200
    for answer, party in (
        (await cash_in(world, agent, customer, "5"), "sender"),
        (await cash_out(world, agent, customer, "5"), "receiver"),
        (await transfer_float(world, parent, agent, "5"), "receiver"),
        (await pay_out_commission(world, agent), "sender"),
        (await fund_agent(world, agent, "5"), "receiver"),
    ):
        assert parse_error(answer) == (403, "AGENT_NOT_ACTIVE")
        assert answer.json()["details"] == {"party": party}
    assert (await change_status(world, parent, "suspend")).status_code == 200
    answer = await transfer_float(world, parent, agent, "5")
    assert answer.json()["details"] == {"party": "sender"}
    assert parse_error(await transfer_float(world, agent, grandchild_of_nobody, "5")) == (
        403,
        "FORBIDDEN",
    )
    assert await get_balances(world, agent) == ("0.00", "0.00")


async def test_concurrent_suspensions_apply_once(world: Harness) -> None:
    agent = await create_agent(world)
    answers = await asyncio.gather(*(change_status(world, agent, "suspend") for _ in range(5)))
    assert sorted(answer.status_code for answer in answers) == [200, 409, 409, 409, 409]
    assert len(await world.list_audit_entries(agent["id"], "agent.suspended")) == 1


async def test_concurrent_funding_and_termination_leave_no_float_on_a_terminated_agent(
    world: Harness,
) -> None:
    for _ in range(5):
        agent = await create_agent(world)
        terminated, funded = await asyncio.gather(
            change_status(world, agent, "terminate"), fund_agent(world, agent, "5")
        )
        assert {terminated.status_code, funded.status_code} in ({200, 409}, {200, 403})
        expected = "5.00" if funded.status_code == 200 else "0.00"
        assert await get_balances(world, agent) == (expected, "0.00")


async def test_concurrent_registration_cannot_add_a_sub_agent_to_a_terminated_parent(
    world: Harness,
) -> None:
    parent = await create_agent(world)
    child = {"agent_type": "sub_agent", "parent_agent_id": parent["id"]}
    *registered, terminated = await asyncio.gather(
        *(register_agent(world, **child) for _ in range(6)),
        change_status(world, parent, "terminate"),
    )
    assert terminated.status_code == 200
    end = terminated.json()["agent"]["updated_at"]
    for answer in registered:
        if answer.status_code == 201:
            assert answer.json()["agent"]["created_at"] <= end
        else:
            assert parse_error(answer) == (422, "VALIDATION_FAILED")
