"""Restricted subscribers: API keys have no access and admins need a code, except to block."""

from typing import Any

import httpx2

from cases import each
from harness import PIN, BearerAuth, Harness
from tapgate_client.schemas.cards import CardRecord, DisclosedCard
from tapgate_client.schemas.subscribers import DisclosedSubscriber, SubscriberRecord

URL = "/api/v1/subscribers"

#: The routes, except block, that an API key may use for an unrestricted subscriber.
RESTRICTED_ROUTES: list[tuple[str, str, Any]] = [
    ("GET", "", None),
    ("PUT", "", {"first_name": "Eve"}),
    ("PUT", "", {}),
    ("POST", "/unblock", None),
    ("POST", "/verify-pin", {"pin": PIN}),
    ("POST", "/change-pin", {"old_pin": PIN, "new_pin": "5927"}),
]
#: Routes that an admin may use only for an unrestricted subscriber or with a code.
ROUTES_CLOSED_TO_ADMINS: list[tuple[str, str, Any]] = [
    *RESTRICTED_ROUTES,
    ("POST", "/close", {"reason": "r"}),
    ("POST", "/reset-pin", None),
    ("POST", "/reset-pin/confirm", {"otp": "123456", "new_pin": "5927"}),
    ("PUT", "", {"restricted": False}),
]


async def verify_access(
    harness: Harness, admin: BearerAuth, record: dict[str, Any]
) -> httpx2.Response:
    """Request an access code and verify it."""
    url = f"{URL}/{record['id']}/restricted-access"
    response = await harness.post(url, auth=admin)
    assert response.status_code == 200
    assert list(response.json()) == ["success", "message"]
    code = await harness.get_pending_code(record["phone_number"])
    assert code not in response.text
    return await harness.post(f"{url}/verify", json={"otp": code}, auth=admin)


async def list_ids(harness: Harness, caller: Any) -> list[str]:
    response = await harness.get(URL, auth=caller)
    return [record["id"] for record in response.json()["data"]]


async def block_subscriber(harness: Harness, record: dict[str, Any], caller: Any) -> dict[str, Any]:
    url = f"{URL}/{record['id']}/block"
    response = await harness.post(url, json={"reason": "fraud"}, auth=caller)
    assert response.status_code == 200, response.text
    blocked: dict[str, Any] = response.json()["subscriber"]
    return blocked


async def test_block_works_without_a_code_and_discloses_no_personal_data(harness: Harness) -> None:
    callers = [
        await harness.create_api_key("subscribers:write", "subscribers:read", "balance:read")
    ]
    callers += [await harness.create_admin(role) for role in "ACS"]
    for caller in callers:
        record = await harness.create_restricted_subscriber(balance="12")
        assert await block_subscriber(harness, record, caller) == {
            "id": record["id"],
            "restricted": True,
            "status": "BLOCKED",
            "status_reason": "fraud",
        }


async def test_block_returns_the_full_record_after_a_verified_code(harness: Harness) -> None:
    record = await harness.create_restricted_subscriber(balance="12")
    admin = await harness.create_admin("S")
    await verify_access(harness, admin, record)
    blocked = await block_subscriber(harness, record, admin)
    assert blocked.keys() == record.keys()
    assert (blocked["first_name"], blocked["balance"]) == ("Aminata", "12.00")
    unrestricted = await harness.create_subscriber()
    assert (await block_subscriber(harness, unrestricted, admin)).keys() == record.keys()


async def test_update_that_restricts_a_subscriber_discloses_no_personal_data(
    harness: Harness,
) -> None:
    record, admin = await harness.create_subscriber(), await harness.create_admin("C")
    url = f"{URL}/{record['id']}"
    response = await harness.put(url, json={"address": "1 Main St"}, auth=admin)
    assert response.json().keys() == record.keys()
    response = await harness.put(url, json={"restricted": True, "kyc_level": 2}, auth=admin)
    assert response.status_code == 200
    assert response.json().keys() == {"id", "restricted", "status", "status_reason"}
    await verify_access(harness, admin, record)
    response = await harness.put(url, json={"address": "2 Main St"}, auth=admin)
    assert response.json()["address"] == "2 Main St"


@each("full, disclosed", [(SubscriberRecord, DisclosedSubscriber), (CardRecord, DisclosedCard)])
def test_disclosed_record_has_all_fields_of_the_full_record(full: Any, disclosed: Any) -> None:
    """A field added to one type must be added to both."""
    extra_fields = {"restricted"} - set(full.__struct_fields__)
    assert set(disclosed.__struct_fields__) - extra_fields == set(full.__struct_fields__)


@each("role", ["A", "C", "S", "F"])
async def test_code_grants_access_to_one_subscriber_for_one_admin(
    harness: Harness, role: str
) -> None:
    record = await harness.create_restricted_subscriber()
    another = await harness.create_restricted_subscriber()
    admin, colleague = await harness.create_admin(role), await harness.create_admin(role)
    response = await verify_access(harness, admin, record)
    assert response.status_code == 200
    assert list(response.json()) == ["success", "expires_at"]
    assert response.json()["expires_at"].endswith("Z")
    response = await harness.get(f"{URL}/{record['id']}", auth=admin)
    assert response.json() == record
    assert await list_ids(harness, admin) == [record["id"]]
    for caller, hidden in ((admin, another), (colleague, record)):
        response = await harness.get(f"{URL}/{hidden['id']}", auth=caller)
        assert response.json()["code"] == "OTP_REQUIRED"
    assert await list_ids(harness, colleague) == []


async def test_verified_admin_can_update_the_subscriber(harness: Harness) -> None:
    record = await harness.create_restricted_subscriber()
    admin = await harness.create_admin("C")
    await verify_access(harness, admin, record)
    response = await harness.put(f"{URL}/{record['id']}", json={"restricted": False}, auth=admin)
    assert response.status_code == 200
    key = await harness.create_api_key("subscribers:read")
    assert (await harness.get(f"{URL}/{record['id']}", auth=key)).status_code == 200


async def test_access_expires_after_fifteen_minutes(harness: Harness) -> None:
    record = await harness.create_restricted_subscriber()
    admin = await harness.create_admin("S")
    await verify_access(harness, admin, record)
    harness.advance_clock(minutes=14)
    assert (await harness.get(f"{URL}/{record['id']}", auth=admin)).status_code == 200
    harness.advance_clock(minutes=1)
    response = await harness.get(f"{URL}/{record['id']}", auth=admin)
    assert response.json()["code"] == "OTP_REQUIRED"
    assert await list_ids(harness, admin) == []
    await verify_access(harness, admin, record)
    assert (await harness.get(f"{URL}/{record['id']}", auth=admin)).status_code == 200


async def test_closed_restricted_subscriber_can_be_read_with_a_code(harness: Harness) -> None:
    record = await harness.create_restricted_subscriber()
    admin = await harness.create_admin()
    await verify_access(harness, admin, record)
    await harness.post(f"{URL}/{record['id']}/close", json={"reason": "r"}, auth=admin)
    auditor = await harness.create_admin("C")
    harness.advance_clock(minutes=1)  # the rate limit allows one code per minute
    await verify_access(harness, auditor, record)
    response = await harness.get(f"{URL}/{record['id']}", auth=auditor)
    assert response.json()["status"] == "CLOSED"


async def test_access_requests_and_grants_are_audited(harness: Harness) -> None:
    record = await harness.create_restricted_subscriber()
    admin = await harness.create_admin("F")
    await harness.post(
        f"{URL}/{record['id']}/restricted-access/verify", json={"otp": "123456"}, auth=admin
    )
    await verify_access(harness, admin, record)
    (requested,) = await harness.list_audit_entries(
        record["id"], "subscriber.restricted_access_requested"
    )
    rejected, granted = await harness.list_audit_entries(
        record["id"], "subscriber.restricted_access_granted"
    )
    assert {entry["actor"]["id"] for entry in (requested, rejected, granted)} == {admin.id}
    assert (rejected["result"], granted["result"]) == ("failure", "success")
