"""Blocking, unblocking and closing subscribers: every transition from every status."""

import asyncio
from datetime import UTC, datetime
from typing import Any

import httpx2
import pytest

from cases import each
from harness import PIN, Harness, parse_error
from tapgate.business.customers.subscribers.model import CLOSE, Subscriber, apply_transition
from tapgate_client import ids
from tapgate_client.errors import ApiError, Code

URL = "/api/v1/subscribers"
UNKNOWN_IDS = (ids.encode(ids.SUBSCRIBER, 1), "sub_1", "sub_" + "u" * 13, "acc_0000000000001", "é")


async def change_status(
    harness: Harness, record: dict[str, Any], verb: str, **body: Any
) -> httpx2.Response:
    return await harness.post(
        f"{URL}/{record['id']}/{verb}",
        json={"reason": "customer asked", **body},
        auth=await harness.create_admin(),
    )


async def create_subscriber_in_status(harness: Harness, status: str) -> dict[str, Any]:
    record = await harness.create_subscriber()
    if status != "ACTIVE":
        response = await change_status(
            harness, record, {"BLOCKED": "block", "CLOSED": "close"}[status]
        )
        assert response.status_code == 200
    return record


@each(
    "status, verb, result",
    [
        ("ACTIVE", "block", "BLOCKED"),
        ("ACTIVE", "unblock", "NOT_BLOCKED"),
        ("ACTIVE", "close", "CLOSED"),
        ("BLOCKED", "block", "ALREADY_BLOCKED"),
        ("BLOCKED", "unblock", "ACTIVE"),
        ("BLOCKED", "close", "CLOSED"),
        ("CLOSED", "block", "NOT_CLOSABLE"),
        ("CLOSED", "unblock", "NOT_CLOSABLE"),
        ("CLOSED", "close", "NOT_CLOSABLE"),
    ],
)
async def test_transition_succeeds_or_conflicts_depending_on_the_status(
    harness: Harness, status: str, verb: str, result: str
) -> None:
    record = await create_subscriber_in_status(harness, status)
    response = await change_status(harness, record, verb)
    if response.status_code == 200:
        assert list(response.json()) == ["success", "message", "subscriber"]
        assert response.json()["subscriber"]["status"] == result
        assert response.json()["subscriber"]["status_reason"] == "customer asked"
    else:
        assert (response.status_code, response.json()["code"]) == (409, result)


async def test_transition_is_audited_with_old_and_new_status(harness: Harness) -> None:
    record = await harness.create_subscriber()
    admin = await harness.create_admin("C")
    url = f"{URL}/{record['id']}"
    await harness.post(f"{url}/block", json={"reason": "stolen phone"}, auth=admin)
    await harness.post(f"{url}/unblock", auth=admin)
    (blocked,) = await harness.list_audit_entries(record["id"], "subscriber.blocked")
    assert blocked["actor"] == {
        "type": "admin",
        "id": admin.id,
        "name": "Ada",
        "role": "compliance_user",
    }
    assert blocked["reason"] == "stolen phone"
    assert blocked["changes"] == {
        "status": ["ACTIVE", "BLOCKED"],
        "status_reason": [None, "stolen phone"],
    }
    (unblocked,) = await harness.list_audit_entries(record["id"], "subscriber.unblocked")
    assert unblocked["reason"] is None
    assert unblocked["changes"] == {
        "status": ["BLOCKED", "ACTIVE"],
        "status_reason": ["stolen phone", None],
    }


async def test_wallet_with_a_balance_cannot_be_closed(harness: Harness) -> None:
    record = await harness.create_subscriber(balance="0.01")
    assert parse_error(await change_status(harness, record, "close")) == (409, "NOT_CLOSABLE")


def test_wallet_with_held_funds_cannot_be_closed() -> None:
    now = datetime(2026, 1, 31, tzinfo=UTC)
    subscriber = Subscriber(
        id=1,
        account_id=2,
        phone_number="+23276000001",
        first_name="Aminata",
        last_name="Kamara",
        currency="SLE",
        created_at=now,
        updated_at=now,
        held=1,
    )
    with pytest.raises(ApiError) as error:
        apply_transition(subscriber, CLOSE, "customer asked")
    assert error.value.code == Code.NOT_CLOSABLE


async def test_concurrent_blocks_succeed_once(harness: Harness) -> None:
    record = await harness.create_subscriber()
    responses = await asyncio.gather(*(change_status(harness, record, "block") for _ in range(5)))
    assert sorted(response.status_code for response in responses) == [200, 409, 409, 409, 409]
    assert len(await harness.list_audit_entries(record["id"], "subscriber.blocked")) == 1


async def test_concurrent_deposit_never_reaches_a_closed_wallet(harness: Harness) -> None:
    for _ in range(5):
        record = await harness.create_subscriber()
        await asyncio.gather(
            change_status(harness, record, "close"),
            harness.deposit(record["id"], "5"),
            return_exceptions=True,
        )
        response = await harness.get(f"{URL}/{record['id']}", auth=harness.get_service_auth())
        after = (response.json()["status"], response.json()["balance"])
        assert after in (("CLOSED", "0.00"), ("ACTIVE", "5.00"))


async def test_closed_subscriber_cannot_be_changed(harness: Harness) -> None:
    record = await create_subscriber_in_status(harness, "CLOSED")
    admin = await harness.create_admin()
    requests: list[tuple[str, str, Any]] = [
        ("PUT", "", {"first_name": "Eve"}),
        ("PUT", "", {}),
        ("POST", "/verify-pin", {"pin": PIN}),
        ("POST", "/change-pin", {"old_pin": PIN, "new_pin": "5927"}),
        ("POST", "/reset-pin", None),
        ("POST", "/reset-pin/confirm", {"otp": "123456", "new_pin": "5927"}),
    ]
    for method, path, body in requests:
        response = await harness.client.request(
            method, f"{URL}/{record['id']}{path}", json=body, auth=admin
        )
        assert (response.status_code, response.json()["code"]) == (409, "NOT_CLOSABLE"), path
    response = await harness.get(f"{URL}/{record['id']}", auth=admin)
    assert response.json()["status"] == "CLOSED"


async def test_unknown_subscriber_is_not_found(harness: Harness) -> None:
    admin = await harness.create_admin()
    requests: list[tuple[str, str, Any]] = [
        ("GET", "", None),
        ("PUT", "", {"first_name": "Eve"}),
        ("POST", "/block", {"reason": "r"}),
        ("POST", "/unblock", None),
        ("POST", "/close", {"reason": "r"}),
        ("POST", "/verify-pin", {"pin": PIN}),
        ("POST", "/change-pin", {"old_pin": PIN, "new_pin": "5927"}),
        ("POST", "/reset-pin", None),
        ("POST", "/reset-pin/confirm", {"otp": "123456", "new_pin": "5927"}),
        ("POST", "/restricted-access", None),
        ("POST", "/restricted-access/verify", {"otp": "123456"}),
    ]
    for method, path, body in requests:
        for unknown in UNKNOWN_IDS:
            url = f"{URL}/{unknown}{path}"
            response = await harness.client.request(method, url, json=body, auth=admin)
            assert (response.status_code, response.json()["code"]) == (
                404,
                "SUBSCRIBER_NOT_FOUND",
            ), url


async def test_status_is_stored_on_the_account(harness: Harness) -> None:
    record = await harness.create_subscriber()
    await change_status(harness, record, "block", reason="stolen phone")
    row = await harness.database.fetchrow(
        "SELECT status, status_reason FROM accounts WHERE kind = 'wallet'"
    )
    assert row is not None
    assert tuple(row) == ("blocked", "stolen phone")
