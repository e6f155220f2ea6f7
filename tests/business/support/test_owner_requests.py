"""Support requests of owner users: the queue, the conversation, and who sees them."""

import asyncio
from typing import Any

import httpx2
import pytest

from builders.disputes import DisputeDriver
from harness import BearerAuth, Harness
from tapgate_client import ids
from tapgate_client.schemas.support import MAX_OWNER_REQUESTS

REQUESTS = "/api/v1/support/requests"
ASK = "/api/v1/support/owner-requests"


@pytest.fixture
async def pos(harness: Harness) -> DisputeDriver:
    return await DisputeDriver.create(harness)


@pytest.fixture
async def shop(harness: Harness, pos: DisputeDriver) -> str:
    return await harness.get_processor_id(pos.merchant_auth)


@pytest.fixture
async def manager(harness: Harness, shop: str) -> BearerAuth:
    return await harness.create_owner_user("M", shop)


@pytest.fixture
async def support(harness: Harness) -> BearerAuth:
    return await harness.create_admin("S")


async def ask(harness: Harness, auth: BearerAuth, text: str = "Why?", **fields: Any) -> Any:
    return await harness.post(ASK, json={"text": text, **fields}, auth=auth)


async def list_ids(harness: Harness, auth: BearerAuth, **query: str) -> list[str]:
    response = await harness.get(REQUESTS, params=query, auth=auth)
    assert response.status_code == 200, response.text
    return [item["id"] for item in response.json()["data"]]


async def read(harness: Harness, request_id: str, auth: BearerAuth) -> httpx2.Response:
    return await harness.get(f"{REQUESTS}/{request_id}", auth=auth)


async def test_question_waits_in_the_queue_and_the_reply_is_read_in_the_portal(
    harness: Harness, pos: DisputeDriver, shop: str, manager: BearerAuth, support: BearerAuth
) -> None:
    payment = await pos.create_payment("20.00")
    asked = await ask(harness, manager, "Where is the fee from?", about=payment)
    assert asked.status_code == 201, asked.text
    request = asked.json()
    assert (request["owner_id"], request["owner_name"], request["about"]) == (
        shop,
        "Shop",
        payment,
    )
    assert (request["phone_number"], request["status"]) == (None, "open")
    assert await list_ids(harness, support, status="open") == [request["id"]]
    assert await list_ids(harness, support, owner_id=shop) == [request["id"]]
    queue = (await harness.get("/api/v1/work-items", auth=support)).json()["data"]
    assert [item["subject"] for item in queue if item["id"] == request["id"]] == ["Shop"]

    body = {"text": "It is the fee of your plan."}
    replied = await harness.post(f"{REQUESTS}/{request['id']}/reply", json=body, auth=support)
    assert replied.status_code == 200, replied.text
    assert replied.json()["assignee"] == support.id
    answered = (await read(harness, request["id"], manager)).json()
    assert answered["status"] == "answered"
    assert [item["from"] for item in answered["messages"]] == ["customer", "staff"]
    assert (answered["assignee"], answered["assignee_name"]) == (None, None)
    assert not await harness.database.fetchval("SELECT count(*) FROM messages")

    path = f"{REQUESTS}/{request['id']}/messages"
    again = await harness.post(path, json={"text": "Thanks, and why twice?"}, auth=manager)
    assert (again.status_code, again.json()["status"]) == (200, "open")
    closed = await harness.post(f"{REQUESTS}/{request['id']}/close", auth=support)
    assert closed.status_code == 200, closed.text
    late = await harness.post(path, json={"text": "Hello?"}, auth=manager)
    assert (late.status_code, late.json()["code"]) == (409, "ALREADY_RESOLVED")


async def test_cashier_sees_only_own_questions_and_others_none(
    harness: Harness, shop: str, manager: BearerAuth
) -> None:
    cashier, colleague = [await harness.create_owner_user("K", shop) for _ in range(2)]
    other_shop = await harness.get_processor_id(await harness.create_processor())
    stranger = await harness.create_owner_user("M", other_shop)
    about_money = (await ask(harness, manager, "Is my balance of 900 correct?")).json()["id"]
    about_printer = (await ask(harness, cashier, "The printer is broken.")).json()["id"]
    assert await list_ids(harness, manager) == [about_printer, about_money]
    assert await list_ids(harness, cashier) == [about_printer]
    assert await list_ids(harness, colleague) == []
    unknown = await read(harness, ids.encode(ids.SUPPORT_REQUEST, 1 << 30), stranger)
    for request_id, auth in (
        (about_money, cashier),
        (about_printer, colleague),
        (about_money, stranger),
    ):
        response = await read(harness, request_id, auth)
        assert (response.status_code, response.json()) == (404, unknown.json())
        path = f"{REQUESTS}/{request_id}/messages"
        appended = await harness.post(path, json={"text": "Me too"}, auth=auth)
        assert appended.status_code == 404
    for verb in ("reply", "assign", "unassign", "close"):
        response = await harness.post(
            f"{REQUESTS}/{about_money}/{verb}", json={"text": "x"}, auth=manager
        )
        assert response.status_code == 403, verb


async def test_question_about_a_foreign_object_is_rejected_like_an_unknown_one(
    harness: Harness, manager: BearerAuth
) -> None:
    other = await DisputeDriver.create(harness)
    foreign = await other.create_payment("10.00")
    unknown = ids.encode(ids.TRANSACTION, 1 << 30)
    responses = [await ask(harness, manager, about=item) for item in (foreign, unknown, "sub_1")]
    assert [response.status_code for response in responses] == [422] * 3
    assert len({str(response.json()["details"]) for response in responses}) == 1
    assert list(responses[0].json()["details"]["fields"]) == ["about"]
    assert await list_ids(harness, manager) == []


async def test_owner_does_not_learn_the_assignee_from_the_filter(
    harness: Harness, manager: BearerAuth, support: BearerAuth
) -> None:
    asked = (await ask(harness, manager)).json()["id"]
    assigned = await harness.post(f"{REQUESTS}/{asked}/assign", auth=support)
    assert await list_ids(harness, support, assignee=assigned.json()["assignee"]) == [asked]
    for assignee in (assigned.json()["assignee"], "none"):
        response = await harness.get(REQUESTS, params={"assignee": assignee}, auth=manager)
        assert response.status_code == 422
        assert list(response.json()["details"]["fields"]) == ["assignee"]


async def test_suspended_owner_may_ask(harness: Harness, shop: str, manager: BearerAuth) -> None:
    url = f"/api/v1/processors/{shop}/suspend"
    admin = await harness.create_admin()
    assert (await harness.post(url, json={"reason": "x"}, auth=admin)).status_code == 200
    asked = await ask(harness, manager, "Why am I suspended?")
    assert asked.status_code == 201, asked.text


async def test_parallel_questions_do_not_exceed_the_limit(
    harness: Harness, manager: BearerAuth
) -> None:
    responses = await asyncio.gather(
        *(ask(harness, manager, f"Question {number}") for number in range(MAX_OWNER_REQUESTS + 4))
    )
    statuses = sorted(response.status_code for response in responses)
    assert statuses == [201] * MAX_OWNER_REQUESTS + [429] * 4
    assert len(await list_ids(harness, manager, limit="100")) == MAX_OWNER_REQUESTS


async def test_text_is_sealed_and_not_in_the_audit_log_or_the_event(
    harness: Harness, manager: BearerAuth
) -> None:
    await ask(harness, manager, "Zqsecret words")
    for table in ("support_messages", "support_requests", "audit_entries", "events"):
        stored = await harness.database.fetch(f"SELECT {table}::text FROM {table}")
        assert "Zqsecret" not in str(stored), table
