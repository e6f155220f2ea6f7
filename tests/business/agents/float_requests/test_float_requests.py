"""Float requests: when finance takes over, funding, decline, cancellation and parallel calls."""

import asyncio
from typing import Any

import pytest

from builders.approvals import approve, build_rule, require_held, set_rules
from builders.float_requests import (
    FLOAT_REQUESTS_URL,
    ask_for_float,
    create_float_request,
    end_float_request,
    get_float_request,
    list_float_requests,
)
from builders.participants import (
    AGENT_PIN,
    change_status,
    create_agent,
    create_sub_agent,
    get_balances,
)
from harness import WRONG_PIN, Harness, parse_error

RIVALS = ("fund", "transfer", "decline", "cancel")


async def create_pair(harness: Harness) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return a super-agent with a float of 1,000.00 and its sub-agent."""
    parent = await create_agent(harness, balance="1000")
    return parent, await create_sub_agent(harness, parent, business_name="Kissy Kiosk")


async def count_waiting(harness: Harness) -> int:
    response = await harness.get(
        "/api/v1/work-items", params={"fresh": "true"}, auth=await harness.create_admin("F")
    )
    return sum(item["queue"] == "float_requests" for item in response.json()["data"])


async def test_super_agents_request_waits_for_finance_at_once(harness: Harness) -> None:
    agent = await create_agent(harness)
    item = await create_float_request(harness, agent, "250.5", note="Market day")
    assert item == {
        "id": item["id"],
        "agent_id": agent["id"],
        "agent_name": "Foday B.",
        "amount": "250.50",
        "currency": "SLE",
        "note": "Market day",
        "status": "open",
        "waits_for": "finance",
        "finance_at": item["created_at"],
        "transaction_id": None,
        "reason": None,
        "created_at": item["created_at"],
        "updated_at": item["created_at"],
    }
    assert item["id"].startswith("frq_")
    assert await get_float_request(harness, item) == {**item, "float_balance": "0.00"}
    assert await count_waiting(harness) == 1


async def test_sub_agents_request_waits_for_the_super_agent_for_30_minutes(
    harness: Harness,
) -> None:
    parent, sub_agent = await create_pair(harness)
    item = await create_float_request(harness, sub_agent, note="Busy day")
    assert item["waits_for"] == "super_agent"
    sent = await harness.list_pending_messages(parent["phone_number"], "float_request")
    assert sent == [["100.00 SLE", "Kissy Kiosk", " (Busy day)"]]
    harness.advance_clock(minutes=29)
    assert await list_float_requests(harness, waits_for="super_agent") == [item["id"]]
    assert await list_float_requests(harness, waits_for="finance") == []
    assert await count_waiting(harness) == 0
    harness.advance_clock(minutes=1)
    assert await list_float_requests(harness, waits_for="super_agent") == []
    assert await list_float_requests(harness, waits_for="finance") == [item["id"]]
    assert (await get_float_request(harness, item))["waits_for"] == "finance"
    assert await count_waiting(harness) == 1


async def test_request_that_is_passed_on_waits_for_finance(harness: Harness) -> None:
    _, sub_agent = await create_pair(harness)
    item = await create_float_request(harness, sub_agent)
    for _ in range(2):
        response = await end_float_request(harness, item, "pass-on")
        assert response.json()["waits_for"] == "finance"
    assert await count_waiting(harness) == 1


async def test_finance_funds_a_request(harness: Harness) -> None:
    agent = await create_agent(harness, balance="10")
    item = await create_float_request(harness, agent)
    auth = await harness.create_admin("F")
    response = await end_float_request(harness, item, "fund", auth=auth, request_id="fund-1")
    receipt = response.json()
    assert receipt == {
        "success": True,
        "message": "Float funded",
        "transaction_id": receipt["transaction_id"],
        "status": "completed",
        "amount": "100.00 SLE",
        "new_balance": "110.00 SLE",
    }
    ended = await get_float_request(harness, item)
    assert (ended["status"], ended["waits_for"]) == ("funded", None)
    assert ended["transaction_id"] == receipt["transaction_id"]
    replay = await end_float_request(harness, item, "fund", auth=auth, request_id="fund-1")
    assert replay.json() == receipt
    assert replay.headers["idempotent-replayed"] == "true"
    assert await get_balances(harness, agent) == ("110.00", "0.00")
    sent = await harness.list_pending_messages(agent["phone_number"], "float_request_funded")
    assert sent == [["100.00 SLE", receipt["transaction_id"]]]
    for verb in RIVALS[:1] + RIVALS[2:]:
        again = await end_float_request(harness, item, verb)
        assert parse_error(again) == (409, "FLOAT_REQUEST_NOT_OPEN")


async def test_super_agent_funds_a_request_with_the_pin(harness: Harness) -> None:
    parent, sub_agent = await create_pair(harness)
    item = await create_float_request(harness, sub_agent)
    wrong = await end_float_request(harness, item, "transfer", pin=WRONG_PIN)
    assert parse_error(wrong) == (400, "INVALID_PIN")
    response = await end_float_request(harness, item, "transfer")
    assert response.json()["from_balance"] == "900.00 SLE"
    assert response.json()["to_balance"] == "100.00 SLE"
    assert (await get_float_request(harness, item))["status"] == "funded"
    alone = await create_float_request(harness, parent)
    response = await end_float_request(harness, alone, "transfer")
    assert parse_error(response) == (404, "AGENT_NOT_FOUND")


async def test_transfer_above_the_float_leaves_the_request_open(harness: Harness) -> None:
    _, sub_agent = await create_pair(harness)
    item = await create_float_request(harness, sub_agent, "1000.01")
    response = await end_float_request(harness, item, "transfer")
    assert parse_error(response) == (402, "INSUFFICIENT_FLOAT")
    assert (await get_float_request(harness, item))["status"] == "open"


async def test_declined_agent_reads_the_reason(harness: Harness) -> None:
    agent = await create_agent(harness)
    item = await create_float_request(harness, agent)
    response = await end_float_request(harness, item, "decline", reason="Deposit the cash first.")
    assert response.json()["status"] == "declined"
    assert response.json()["reason"] == "Deposit the cash first."
    sent = await harness.list_pending_messages(agent["phone_number"], "float_request_declined")
    assert sent == [["100.00 SLE", "Deposit the cash first."]]
    missing = await end_float_request(harness, item, "decline", reason=None)
    assert parse_error(missing) == (400, "INVALID_REQUEST")


async def test_repeated_request_is_made_once(harness: Harness) -> None:
    agent = await create_agent(harness)
    responses = await asyncio.gather(
        *(ask_for_float(harness, agent, request_id="ask-1") for _ in range(5))
    )
    assert sorted(response.status_code for response in responses) == [200] * 4 + [201]
    assert len({response.json()["id"] for response in responses}) == 1
    other = await ask_for_float(harness, agent, "101", request_id="ask-1")
    assert parse_error(other) == (409, "DUPLICATE_REQUEST")


async def test_suspended_or_unknown_agent_cannot_ask(harness: Harness) -> None:
    agent = await create_agent(harness)
    await change_status(harness, agent, "suspend")
    assert parse_error(await ask_for_float(harness, agent)) == (403, "AGENT_NOT_ACTIVE")
    response = await ask_for_float(harness, {"id": "agt_0000000000001"})
    assert parse_error(response) == (404, "AGENT_NOT_FOUND")


@pytest.mark.parametrize("verb", [*RIVALS, "pass-on"])
async def test_unknown_request_is_not_found(harness: Harness, verb: str) -> None:
    response = await end_float_request(harness, {"id": "frq_0000000000001"}, verb)
    assert parse_error(response) == (404, "FLOAT_REQUEST_NOT_FOUND")


async def test_lists_are_filtered_by_agent_and_status(harness: Harness) -> None:
    parent, sub_agent = await create_pair(harness)
    own, asked = (
        await create_float_request(harness, parent),
        await create_float_request(harness, sub_agent),
    )
    assert await list_float_requests(harness) == [asked["id"], own["id"]]
    assert await list_float_requests(harness, order="oldest") == [own["id"], asked["id"]]
    assert await list_float_requests(harness, agent_id=parent["id"]) == [own["id"]]
    assert await list_float_requests(harness, parent_agent_id=parent["id"]) == [asked["id"]]
    await end_float_request(harness, own, "cancel")
    assert await list_float_requests(harness, status="cancelled") == [own["id"]]


async def test_approval_rule_for_agent_funding_applies(harness: Harness) -> None:
    agent = await create_agent(harness)
    item = await create_float_request(harness, agent)
    await set_rules(harness, build_rule("agent_fund"))
    approval = require_held(await end_float_request(harness, item, "fund"))
    assert (await get_float_request(harness, item))["status"] == "open"
    approved = await approve(harness, approval)
    assert approved["status"] == "executed", approved
    assert (await get_float_request(harness, item))["status"] == "funded"
    assert await get_balances(harness, agent) == ("100.00", "0.00")


@pytest.mark.parametrize("rival", RIVALS)
async def test_funding_racing_another_decision_has_one_winner(harness: Harness, rival: str) -> None:
    _, sub_agent = await create_pair(harness)
    moved = 0
    for _ in range(4):
        item = await create_float_request(harness, sub_agent, "10")
        verbs = ["fund", rival] * 2
        responses = await asyncio.gather(
            *(end_float_request(harness, item, verb) for verb in verbs)
        )
        statuses = [response.status_code for response in responses]
        assert sorted(statuses) == [200, 409, 409, 409], statuses
        winner = verbs[statuses.index(200)]
        moved += winner in ("fund", "transfer")
        ended = {"decline": "declined", "cancel": "cancelled"}.get(winner, "funded")
        assert (await get_float_request(harness, item))["status"] == ended
    assert (await get_balances(harness, sub_agent))[0] == f"{moved * 10}.00"


async def test_audit_entries_name_each_step(harness: Harness) -> None:
    _, sub_agent = await create_pair(harness)
    item = await create_float_request(harness, sub_agent)
    await end_float_request(harness, item, "pass-on")
    await end_float_request(harness, item, "fund")
    rows = await harness.database.fetch(
        "SELECT event FROM audit_entries WHERE resource_id = $1 ORDER BY id", item["id"]
    )
    assert [row["event"] for row in rows] == [
        "float_request.created",
        "float_request.passed_on",
        "float_request.funded",
    ]


async def test_support_reads_and_cancels_but_does_not_fund(harness: Harness) -> None:
    item = await create_float_request(harness, await create_agent(harness))
    support = await harness.create_admin("S")
    assert (await harness.get(FLOAT_REQUESTS_URL, auth=support)).status_code == 200
    response = await end_float_request(harness, item, "fund", auth=support)
    assert parse_error(response) == (403, "FORBIDDEN")
    assert (await end_float_request(harness, item, "cancel", auth=support)).status_code == 200
    assert AGENT_PIN not in (await harness.get(FLOAT_REQUESTS_URL, auth=support)).text
