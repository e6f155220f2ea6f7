"""A guarded operation from the request to its execution, with agent funding as the example."""

import asyncio
from typing import Any

import httpx2
import pytest

from builders.approvals import (
    APPROVALS_URL,
    RULES_URL,
    approve,
    build_rule,
    decide,
    get_approval,
    require_held,
    set_email,
    set_rules,
)
from builders.participants import AGENTS_URL, change_status, create_agent, get_balances
from cases import each
from harness import BearerAuth, Harness, parse_error
from tapgate.business.approvals import execution, stored_calls
from tapgate.business.approvals.execution import ApprovalWorker
from tapgate.http.api.services import Services
from tapgate_client import ids
from tapgate_client.errors import ApiError, Code


async def fund(
    harness: Harness, agent: dict[str, Any], amount: str, auth: BearerAuth, **more: Any
) -> httpx2.Response:
    url = f"{AGENTS_URL}/{agent['id']}/fund"
    return await harness.post(url, json={"amount": amount, **more}, auth=auth)


@pytest.fixture
async def maker(harness: Harness) -> BearerAuth:
    await set_rules(harness, build_rule("agent_fund", above="100"))
    return await harness.create_admin("F")


@pytest.fixture
async def agent(harness: Harness) -> dict[str, Any]:
    return await create_agent(harness)


async def get_float(harness: Harness, agent: dict[str, Any]) -> str:
    return (await get_balances(harness, agent))[0]


async def test_held_request_executes_once_approved(
    harness: Harness, maker: BearerAuth, agent: dict[str, Any]
) -> None:
    approval = require_held(await fund(harness, agent, "500", maker, description="Float"))
    assert approval["operation"] == "agent_fund"
    assert (approval["amount"], approval["maker"]) == ("500.00", maker.id)
    assert approval["changes"] == {"amount": [None, "500.00"], "description": [None, "Float"]}
    assert await get_float(harness, agent) == "0.00"
    approver = await harness.create_admin("F")
    executed = await approve(harness, approval, approver)
    assert (executed["status"], executed["approvers"]) == ("executed", [approver.id])
    assert executed["result"]["new_balance"] == "500.00 SLE"
    assert await get_float(harness, agent) == "500.00"
    transaction = await harness.get(
        f"/api/v1/transactions/{executed['result']['transaction_id']}", auth=maker
    )
    assert transaction.json()["approval_id"] == approval["id"]
    assert transaction.json()["request_id"] == approval["id"]
    again = await decide(harness, approval, "approve", await harness.create_admin("F"))
    assert parse_error(again) == (409, "APPROVAL_NOT_PENDING")


async def test_amounts_of_24_hours_are_added(
    harness: Harness, maker: BearerAuth, agent: dict[str, Any]
) -> None:
    assert (await fund(harness, agent, "60", maker)).status_code == 200
    assert (await fund(harness, agent, "40", maker)).status_code == 200
    require_held(await fund(harness, agent, "0.01", maker))
    assert (await fund(harness, agent, "100", await harness.create_admin("F"))).status_code == 200


async def test_executed_approvals_count(
    harness: Harness, maker: BearerAuth, agent: dict[str, Any]
) -> None:
    approval = require_held(await fund(harness, agent, "101", maker))
    await approve(harness, approval, await harness.create_admin("F"))
    require_held(await fund(harness, agent, "1", maker))


async def test_declined_and_rejected_requests_do_not_count(
    harness: Harness, maker: BearerAuth, agent: dict[str, Any]
) -> None:
    assert (await change_status(harness, agent, "suspend")).status_code == 200
    assert parse_error(await fund(harness, agent, "80", maker)) == (403, "AGENT_NOT_ACTIVE")
    assert (await change_status(harness, agent, "activate")).status_code == 200
    approval = require_held(await fund(harness, agent, "101", maker))
    rejected = await decide(
        harness, approval, "reject", await harness.create_admin("F"), reason="Too much"
    )
    assert rejected.json()["status"] == "rejected"
    assert rejected.json()["decisions"][0]["reason"] == "Too much"
    assert (await fund(harness, agent, "100", maker)).status_code == 200


async def test_parallel_requests_cannot_split_the_amount(
    harness: Harness, maker: BearerAuth, agent: dict[str, Any]
) -> None:
    responses = await asyncio.gather(*(fund(harness, agent, "40", maker) for _ in range(6)))
    assert sorted(response.status_code for response in responses) == [200, 200, *[202] * 4]


async def test_amount_counts_although_a_parallel_request_with_its_key_failed(
    harness: Harness,
    maker: BearerAuth,
    agent: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Both requests are checked before the first one fails and the second one is executed."""
    submit = harness.services.ledger.submit
    are_checked = asyncio.Barrier(2)
    has_failed = asyncio.Event()
    calls: list[None] = []

    async def fail_or_submit(*arguments: Any, **options: Any) -> Any:
        calls.append(None)
        number = len(calls)
        if number <= 2:
            async with asyncio.timeout(30):  # a request that is held does not come here
                await are_checked.wait()
        if number == 1:
            raise ApiError(Code.AGENT_NOT_ACTIVE)
        if number == 2:
            await has_failed.wait()
        return await submit(*arguments, **options)

    monkeypatch.setattr(harness.services.ledger, "submit", fail_or_submit)
    first, second = (
        asyncio.create_task(fund(harness, agent, "80", maker, request_id="f-1")) for _ in range(2)
    )
    done, _ = await asyncio.wait((first, second), return_when=asyncio.FIRST_COMPLETED)
    assert [parse_error(task.result()) for task in done] == [(403, "AGENT_NOT_ACTIVE")]
    require_held(await fund(harness, agent, "80", maker))
    has_failed.set()
    assert sorted([(await first).status_code, (await second).status_code]) == [200, 403]
    require_held(await fund(harness, agent, "80", maker))
    assert await get_float(harness, agent) == "80.00"


async def test_repeated_request_returns_the_same_approval(
    harness: Harness, maker: BearerAuth, agent: dict[str, Any]
) -> None:
    first = require_held(await fund(harness, agent, "500", maker, request_id="f-1"))
    assert require_held(await fund(harness, agent, "500", maker, request_id="f-1")) == first
    other = await fund(harness, agent, "50", maker, request_id="f-1")
    assert parse_error(other) == (409, "DUPLICATE_REQUEST")
    await approve(harness, first)
    repeated = await fund(harness, agent, "500", maker, request_id="f-1")
    assert (repeated.status_code, repeated.json()["approval"]["status"]) == (202, "executed")
    assert await get_float(harness, agent) == "500.00"


async def test_executed_request_is_replayed_after_a_rule_was_added(harness: Harness) -> None:
    agent, maker = await create_agent(harness), await harness.create_admin("F")
    first = await fund(harness, agent, "500", maker, request_id="f-1")
    await set_rules(harness, build_rule("agent_fund"))
    assert (await fund(harness, agent, "500", maker, request_id="f-1")).json() == first.json()
    require_held(await fund(harness, agent, "500", maker))


async def test_same_person_cannot_approve(
    harness: Harness, maker: BearerAuth, agent: dict[str, Any]
) -> None:
    await set_email(harness, maker, "ada@example.com")
    second = await harness.create_admin("A")
    await set_email(harness, second, "Ada+Two@Example.com")
    approval = require_held(await fund(harness, agent, "500", maker))
    for admin in (maker, second):
        for verb, body in (("approve", {}), ("reject", {"reason": "no"})):
            response = await decide(harness, approval, verb, admin, **body)
            assert parse_error(response) == (403, "FORBIDDEN")
    assert parse_error(await decide(harness, approval, "cancel", second)) == (403, "FORBIDDEN")
    assert (await decide(harness, approval, "cancel", maker)).json()["status"] == "cancelled"
    # The sums of both accounts count as one person's.
    assert (await fund(harness, agent, "60", maker, request_id="f-1")).status_code == 200
    require_held(await fund(harness, agent, "60", second))
    # Each account has its own idempotency keys, so this is another request.
    require_held(await fund(harness, agent, "60", second, request_id="f-1"))


async def test_two_approvals_of_admins_who_still_may_approve_are_needed(harness: Harness) -> None:
    await set_rules(harness, build_rule("agent_fund", approvers=2, roles=["finance_user"]))
    agent, maker = await create_agent(harness), await harness.create_admin("A")
    approval = require_held(await fund(harness, agent, "500", maker))
    first, second, third = [await harness.create_admin("F") for _ in range(3)]
    for _ in range(2):  # a repeated approval of one admin counts once
        assert (await approve(harness, approval, first))["status"] == "pending"
    await harness.database.execute(
        "UPDATE admins SET status = 'disabled' WHERE id = $1", ids.decode(ids.ADMIN, first.id)
    )
    assert (await approve(harness, approval, second))["status"] == "pending"
    assert (await approve(harness, approval, third))["status"] == "executed"
    assert await get_float(harness, agent) == "500.00"


async def test_repeated_approval_of_an_enabled_admin_can_be_the_last_one(harness: Harness) -> None:
    await set_rules(harness, build_rule("agent_fund", approvers=2, roles=["finance_user"]))
    agent, maker = await create_agent(harness), await harness.create_admin("A")
    approval = require_held(await fund(harness, agent, "500", maker))
    first, second = [await harness.create_admin("F") for _ in range(2)]
    assert (await approve(harness, approval, first))["status"] == "pending"
    set_status = "UPDATE admins SET status = $2 WHERE id = $1"
    first_id = ids.decode(ids.ADMIN, first.id)
    await harness.database.execute(set_status, first_id, "disabled")
    assert (await approve(harness, approval, second))["status"] == "pending"
    await harness.database.execute(set_status, first_id, "active")
    assert (await approve(harness, approval, first))["status"] == "executed"


async def test_failed_check_ends_the_approval_with_its_code(
    harness: Harness, maker: BearerAuth, agent: dict[str, Any]
) -> None:
    approval = require_held(await fund(harness, agent, "500", maker))
    assert (await change_status(harness, agent, "suspend")).status_code == 200
    failed = await approve(harness, approval)
    assert (failed["status"], failed["code"]) == ("failed", "AGENT_NOT_ACTIVE")
    assert failed["result"]["code"] == "AGENT_NOT_ACTIVE"


@pytest.mark.parametrize("column", ["status = 'disabled'", "role = 'support_user'"])
async def test_rights_of_the_maker_are_checked_again(
    harness: Harness, maker: BearerAuth, agent: dict[str, Any], column: str
) -> None:
    approval = require_held(await fund(harness, agent, "500", maker))
    await harness.database.execute(
        f"UPDATE admins SET {column} WHERE id = $1", ids.decode(ids.ADMIN, maker.id)
    )
    failed = await approve(harness, approval)
    assert (failed["status"], failed["code"]) == ("failed", "FORBIDDEN")
    assert await get_float(harness, agent) == "0.00"


async def test_pending_approval_expires(
    harness: Harness, maker: BearerAuth, agent: dict[str, Any]
) -> None:
    approval = require_held(await fund(harness, agent, "500", maker))
    await harness.database.execute("UPDATE approvals SET expires_at = created_at")
    late = await decide(harness, approval, "approve", await harness.create_admin("F"))
    assert parse_error(late) == (409, "APPROVAL_NOT_PENDING")
    await ApprovalWorker(harness.services).work()
    assert (await get_approval(harness, approval, maker))["status"] == "expired"
    assert await harness.database.fetchval("SELECT status FROM approvals") == "expired"


async def test_concurrent_decisions_execute_at_most_once(
    harness: Harness, maker: BearerAuth, agent: dict[str, Any]
) -> None:
    """Two approvers at the same time, and an approval against a cancellation."""
    approvers = [await harness.create_admin("F") for _ in range(4)]
    for others in ((), ("cancel",)):
        before = await get_float(harness, agent)
        approval = require_held(await fund(harness, agent, "500", maker))
        decisions = [decide(harness, approval, "approve", approver) for approver in approvers]
        decisions += [decide(harness, approval, verb, maker) for verb in others]
        responses = await asyncio.gather(*decisions)
        assert sorted(response.status_code for response in responses)[:2] == [200, 409]
        status = (await get_approval(harness, approval, maker))["status"]
        moved = float(await get_float(harness, agent)) - float(before)
        assert (status, moved) in (("executed", 500), ("cancelled", 0))


async def test_worker_executes_what_a_killed_process_left(
    harness: Harness,
    maker: BearerAuth,
    agent: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    approval = require_held(await fund(harness, agent, "500", maker))
    with monkeypatch.context() as killed:

        async def die(*arguments: Any) -> None:
            raise RuntimeError("killed")

        killed.setattr(stored_calls, "load", die)
        assert (await approve(harness, approval))["status"] == "approved"
    await ApprovalWorker(harness.services).work()
    assert await get_float(harness, agent) == "0.00"  # the first process may still be working
    await harness.database.execute("UPDATE approvals SET next_attempt_at = now() - interval '1h'")
    approval_id = ids.decode(ids.APPROVAL, approval["id"]) or 0
    await asyncio.gather(
        *(ApprovalWorker(harness.services).work() for _ in range(3)),
        *(execution.execute(harness.services, approval_id) for _ in range(3)),
    )
    assert (await get_approval(harness, approval, maker))["status"] == "executed"
    assert await get_float(harness, agent) == "500.00"


async def test_stored_request_is_sealed(
    harness: Harness, maker: BearerAuth, agent: dict[str, Any], services: Services
) -> None:
    require_held(await fund(harness, agent, "500", maker, request_id="f-1"))
    sealed = await harness.database.fetchval("SELECT sealed_request FROM approvals")
    assert b"amount" not in sealed


async def test_steps_are_audited_and_published(
    harness: Harness, maker: BearerAuth, agent: dict[str, Any]
) -> None:
    admin = await harness.create_admin()
    await harness.post(
        "/api/v1/admin/webhook-endpoints",
        json={"url": "https://shop.example/", "events": ["*"]},
        auth=admin,
    )
    approval = require_held(await fund(harness, agent, "500", maker))
    await approve(harness, approval)
    entries = await harness.get(
        "/api/v1/audit/logs", params={"resource_id": approval["id"]}, auth=admin
    )
    assert [entry["event"] for entry in entries.json()["data"]] == [
        "approval.executed",
        "approval.approved",
        "approval.created",
    ]
    assert entries.json()["data"][0]["actor"]["approval_id"] == approval["id"]
    types = await harness.database.fetch("SELECT type FROM events ORDER BY id")
    assert {"approval.created", "approval.executed"} <= {row["type"] for row in types}


async def test_admins_see_their_own_requests_and_those_they_may_approve(
    harness: Harness, agent: dict[str, Any]
) -> None:
    await set_rules(harness, build_rule("agent_fund", roles=["compliance_user"]))
    maker = await harness.create_admin("F")
    approval = require_held(await fund(harness, agent, "500", maker))
    url = f"{APPROVALS_URL}/{approval['id']}"
    for role, visible in {"A": True, "C": True, "F": False, "S": False}.items():
        admin = await harness.create_admin(role)
        listed = (await harness.get(APPROVALS_URL, auth=admin)).json()["data"]
        assert [item["id"] for item in listed] == [approval["id"]] * visible
        assert (await harness.get(url, auth=admin)).status_code == (200 if visible else 404)
    hidden = await decide(harness, approval, "approve", await harness.create_admin("S"))
    assert parse_error(hidden) == (404, "APPROVAL_NOT_FOUND")
    wrong_role = await decide(harness, approval, "approve", await harness.create_admin("A"))
    assert parse_error(wrong_role) == (403, "FORBIDDEN")


async def test_rule_change_requires_approval_once_rules_exist(
    harness: Harness, maker: BearerAuth
) -> None:
    admin = await harness.create_admin()
    rules = (await harness.get(RULES_URL, auth=admin)).json()
    assert rules["data"] == [build_rule("agent_fund", above="100.00")]
    assert "subscriber_phone" in rules["operations"]
    approval = require_held(await harness.put(RULES_URL, json={"data": []}, auth=admin))
    assert (approval["operation"], approval["changes"]["data"]) == (
        "approval_rules",
        [rules["data"], []],
    )
    assert (await approve(harness, approval))["status"] == "executed"
    assert (await harness.get(RULES_URL, auth=admin)).json()["data"] == []
    await set_rules(harness, build_rule("keysets"))


@each(
    "fields",
    [
        {"operation": "approval_rules"},
        {"operation": "fee_rules", "above": "1"},
        {"roles": []},
        {"roles": ["owner"]},
        {"approvers": 3},
        {"expires_in": 59},
    ],
)
async def test_invalid_rules_are_rejected(harness: Harness, fields: dict[str, Any]) -> None:
    rule = {**build_rule("agent_fund"), **fields}
    response = await harness.put(
        RULES_URL, json={"data": [rule]}, auth=await harness.create_admin()
    )
    assert parse_error(response) == (422, "VALIDATION_FAILED")
