"""Agent PINs: change, lockout after three failures, and concurrent attempts."""

import asyncio
from collections import Counter
from typing import Any

import httpx2

from agents.builders import (
    AGENT_PIN,
    cash_in,
    cash_out,
    create_agent,
    create_sub_agent,
    get_balances,
    parse_error,
    post_as_admin,
    transfer_float,
)
from harness import PIN, WRONG_PIN, Harness

NEW_PIN = "8302"


async def change_pin(
    world: Harness, agent: dict[str, Any], old_pin: str = AGENT_PIN, new_pin: str = NEW_PIN
) -> httpx2.Response:
    return await post_as_admin(
        world, f"/{agent['id']}/change-pin", old_pin=old_pin, new_pin=new_pin
    )


async def test_pin_change_takes_effect_and_is_audited(world: Harness) -> None:
    agent, customer = await create_agent(world, balance="10"), await world.create_subscriber()
    answer = await change_pin(world, agent)
    assert answer.status_code == 200
    assert answer.json() == {"success": True, "message": "PIN changed"}
    assert parse_error(await cash_in(world, agent, customer, "1")) == (400, "INVALID_PIN")
    answer = await cash_in(world, agent, customer, "1", agent_pin=NEW_PIN)
    assert answer.status_code == 200
    (entry,) = await world.list_audit_entries(agent["id"], "agent.pin_changed")
    assert (entry["result"], entry["changes"]) == ("success", {"pin": ["***", "***"]})


async def test_three_wrong_pins_lock_the_agent_for_30_minutes(world: Harness) -> None:
    agent = await create_agent(world)
    for remaining in (2, 1, 0):
        answer = await change_pin(world, agent, old_pin=WRONG_PIN)
        assert parse_error(answer) == (400, "INVALID_PIN")
        assert answer.json()["details"] == {"attempts_remaining": remaining}
    answer = await change_pin(world, agent)
    assert parse_error(answer) == (403, "ACCOUNT_LOCKED")
    assert list(answer.json()["details"]) == ["locked_until"]
    entries = await world.list_audit_entries(agent["id"], "agent.pin_changed")
    assert [(entry["result"], entry["reason"]) for entry in entries] == [
        *[("failure", "INVALID_PIN")] * 3,
        ("failure", "ACCOUNT_LOCKED"),
    ]
    world.advance_clock(minutes=31)
    assert (await change_pin(world, agent)).status_code == 200


async def test_new_pin_must_differ_without_revealing_the_current_one(world: Harness) -> None:
    agent = await create_agent(world)
    assert parse_error(await change_pin(world, agent, new_pin=AGENT_PIN)) == (400, "SAME_PIN")
    answer = await change_pin(world, agent, old_pin=WRONG_PIN, new_pin=WRONG_PIN)
    assert parse_error(answer) == (400, "INVALID_PIN")


async def test_malformed_pin_change_is_rejected_and_not_counted(world: Harness) -> None:
    agent = await create_agent(world)
    bodies: list[tuple[dict[str, Any], str]] = [
        ({"new_pin": NEW_PIN}, "old_pin"),
        ({"old_pin": AGENT_PIN, "new_pin": 8302}, "new_pin"),
        ({"old_pin": AGENT_PIN, "new_pin": "83021"}, "new_pin"),
        ({"old_pin": "", "new_pin": NEW_PIN}, "old_pin"),
    ]
    for body, field in bodies:
        answer = await post_as_admin(world, f"/{agent['id']}/change-pin", **body)
        assert parse_error(answer) == (400, "INVALID_REQUEST"), body
        assert list(answer.json()["details"]["fields"]) == [field]
    answer = await change_pin(world, agent, old_pin=WRONG_PIN)
    assert answer.json()["details"] == {"attempts_remaining": 2}


async def test_weak_new_pin_is_rejected(world: Harness) -> None:
    agent = await create_agent(world)
    answer = await change_pin(world, agent, new_pin="1111")
    assert parse_error(answer) == (400, "INVALID_REQUEST")
    assert list(answer.json()["details"]["fields"]) == ["new_pin"]
    assert (await change_pin(world, agent)).status_code == 200


async def test_cash_out_checks_the_customers_pin_first_and_counts_only_checked_pins(
    world: Harness,
) -> None:
    agent, customer = await create_agent(world), await world.create_subscriber(balance="100")

    async def try_pins(pin: str, agent_pin: str) -> dict[str, Any]:
        answer = await cash_out(world, agent, customer, "1", pin=pin, agent_pin=agent_pin)
        assert parse_error(answer) == (400, "INVALID_PIN")
        details: dict[str, Any] = answer.json()["details"]
        return details

    assert await try_pins(WRONG_PIN, WRONG_PIN) == {"attempts_remaining": 2}
    # The agent's PIN was not checked before, and the customer's correct PIN resets its count.
    assert await try_pins(PIN, WRONG_PIN) == {"attempts_remaining": 2, "party": "receiver"}
    assert await try_pins(WRONG_PIN, AGENT_PIN) == {"attempts_remaining": 2}
    assert await try_pins(PIN, WRONG_PIN) == {"attempts_remaining": 1, "party": "receiver"}
    assert await try_pins(PIN, WRONG_PIN) == {"attempts_remaining": 0, "party": "receiver"}
    answer = await cash_out(world, agent, customer, "1")
    assert parse_error(answer) == (403, "ACCOUNT_LOCKED")
    assert answer.json()["details"]["party"] == "receiver"
    other = await create_agent(world)
    assert (await cash_out(world, other, customer, "1")).status_code == 200


async def test_pin_is_checked_before_the_agent_status(world: Harness) -> None:
    agent, customer = (
        await create_agent(world, balance="100"),
        await world.create_subscriber(balance="9"),
    )
    await post_as_admin(world, f"/{agent['id']}/suspend", reason="cash was missing")
    answer = await cash_in(world, agent, customer, "1", agent_pin=WRONG_PIN)
    assert parse_error(answer) == (400, "INVALID_PIN")
    answer = await cash_out(world, agent, customer, "1", agent_pin=WRONG_PIN)
    assert parse_error(answer) == (400, "INVALID_PIN")


async def test_concurrent_wrong_pins_across_operations_share_one_attempt_limit(
    world: Harness,
) -> None:
    agent, customer = (
        await create_agent(world, balance="100"),
        await world.create_subscriber(balance="100"),
    )
    sub_agent = await create_sub_agent(world, agent)
    tries = [
        one
        for _ in range(10)
        for one in (
            cash_in(world, agent, customer, "1", agent_pin=WRONG_PIN),
            cash_out(world, agent, customer, "1", agent_pin=WRONG_PIN),
            transfer_float(world, agent, sub_agent, "1", pin=WRONG_PIN),
            change_pin(world, agent, old_pin=WRONG_PIN),
        )
    ]
    answers = await asyncio.gather(*tries)
    codes = Counter(answer.json()["code"] for answer in answers)
    assert codes == {"INVALID_PIN": 3, "ACCOUNT_LOCKED": 37}
    remaining = [
        answer.json()["details"]["attempts_remaining"]
        for answer in answers
        if answer.status_code == 400
    ]
    assert sorted(remaining) == [0, 1, 2]
    assert await get_balances(world, agent) == ("100.00", "0.00")
