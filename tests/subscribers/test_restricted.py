"""Restricted subscribers: API keys never have access, admins only after verifying a code."""

from typing import Any

import httpx2
import pytest

from harness import PIN, BearerAuth, Harness
from tapgate.cards.model import CardRecord, DisclosedCard
from tapgate.subscribers.model import DisclosedSubscriber, SubscriberRecord

URL = "/api/v1/subscribers"

#: Every route except block that returns or changes the record.
RESTRICTED_ROUTES: list[tuple[str, str, Any]] = [
    ("GET", "", None),
    ("PUT", "", {"first_name": "Eve"}),
    ("PUT", "", {}),
    ("POST", "/unblock", None),
    ("POST", "/verify-pin", {"pin": PIN}),
    ("POST", "/change-pin", {"old_pin": PIN, "new_pin": "5927"}),
]
#: Adds the routes that are not available to API keys.
ROUTES_CLOSED_TO_ADMINS: list[tuple[str, str, Any]] = [
    *RESTRICTED_ROUTES,
    ("POST", "/close", {"reason": "r"}),
    ("POST", "/reset-pin", None),
    ("POST", "/reset-pin/confirm", {"otp": "123456", "new_pin": "5927"}),
    ("PUT", "", {"restricted": False}),
]


async def verify_access(
    world: Harness, admin: BearerAuth, record: dict[str, Any]
) -> httpx2.Response:
    """Request an access code and verify it."""
    url = f"{URL}/{record['id']}/restricted-access"
    answer = await world.client.post(url, auth=admin)
    assert answer.status_code == 200
    assert list(answer.json()) == ["success", "message"]
    code = await world.get_pending_code(record["phone_number"])
    assert code not in answer.text
    return await world.client.post(f"{url}/verify", json={"otp": code}, auth=admin)


async def list_ids(world: Harness, caller: Any) -> list[str]:
    answer = await world.client.get(URL, auth=caller)
    return [record["id"] for record in answer.json()["data"]]


async def test_restricted_subscriber_is_forbidden_to_api_keys(world: Harness) -> None:
    record = await world.create_restricted_subscriber()
    key = await world.create_api_key("subscribers:read", "subscribers:write")
    for method, path, body in RESTRICTED_ROUTES:
        url = f"{URL}/{record['id']}{path}"
        answer = await world.client.request(method, url, json=body, auth=key)
        assert (answer.status_code, answer.json()["code"]) == (403, "OTP_REQUIRED"), url
        assert record["phone_number"] not in answer.text
    answer = await world.client.get(f"{URL}/{record['id']}", auth=world.get_service_auth())
    assert answer.json() == record


async def test_restricted_subscriber_is_forbidden_to_admins_without_a_code(world: Harness) -> None:
    record = await world.create_restricted_subscriber()
    admin = await world.create_admin("A")
    for method, path, body in ROUTES_CLOSED_TO_ADMINS:
        url = f"{URL}/{record['id']}{path}"
        answer = await world.client.request(method, url, json=body, auth=admin)
        assert (answer.status_code, answer.json()["code"]) == (403, "OTP_REQUIRED"), url
    answer = await world.client.get(f"{URL}/{record['id']}", auth=world.get_service_auth())
    assert answer.json() == record


async def test_restricted_subscriber_is_listed_only_for_services(world: Harness) -> None:
    restricted = await world.create_restricted_subscriber()
    record = await world.create_subscriber()
    for caller in [
        await world.create_api_key("subscribers:read"),
        *[await world.create_admin(r) for r in "ACSF"],
    ]:
        assert await list_ids(world, caller) == [record["id"]]
    assert await list_ids(world, world.get_service_auth()) == [record["id"], restricted["id"]]


async def block_subscriber(world: Harness, record: dict[str, Any], caller: Any) -> dict[str, Any]:
    url = f"{URL}/{record['id']}/block"
    answer = await world.client.post(url, json={"reason": "fraud"}, auth=caller)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()["subscriber"]
    return found


async def test_block_works_without_a_code_and_discloses_nothing(world: Harness) -> None:
    callers = [await world.create_api_key("subscribers:write", "subscribers:read", "balance:read")]
    callers += [await world.create_admin(role) for role in "ACS"]
    for caller in callers:
        record = await world.create_restricted_subscriber(balance="12")
        assert await block_subscriber(world, record, caller) == {
            "id": record["id"],
            "restricted": True,
            "status": "BLOCKED",
            "status_reason": "fraud",
        }


async def test_block_returns_the_full_record_after_a_verified_code(world: Harness) -> None:
    record, admin = (
        await world.create_restricted_subscriber(balance="12"),
        await world.create_admin("S"),
    )
    await verify_access(world, admin, record)
    found = await block_subscriber(world, record, admin)
    assert found.keys() == record.keys()
    assert (found["first_name"], found["balance"]) == ("Aminata", "12.00")
    everybody = await world.create_subscriber()
    assert (await block_subscriber(world, everybody, admin)).keys() == record.keys()


async def test_update_that_restricts_discloses_nothing(world: Harness) -> None:
    record, admin = await world.create_subscriber(), await world.create_admin("C")
    url = f"{URL}/{record['id']}"
    answer = await world.client.put(url, json={"address": "1 Main St"}, auth=admin)
    assert answer.json().keys() == record.keys()
    answer = await world.client.put(url, json={"restricted": True, "kyc_level": 2}, auth=admin)
    assert answer.status_code == 200
    assert answer.json().keys() == {"id", "restricted", "status", "status_reason"}
    await verify_access(world, admin, record)
    answer = await world.client.put(url, json={"address": "2 Main St"}, auth=admin)
    assert answer.json()["address"] == "2 Main St"


@pytest.mark.parametrize(
    ("full", "disclosed"), [(SubscriberRecord, DisclosedSubscriber), (CardRecord, DisclosedCard)]
)
def test_disclosed_record_has_all_fields_of_the_full_record(full: Any, disclosed: Any) -> None:
    """A field added to one type must be added to both."""
    own = {"restricted"} - set(full.__struct_fields__)
    assert set(disclosed.__struct_fields__) - own == set(full.__struct_fields__)


async def test_services_have_access_without_a_code(world: Harness) -> None:
    record = await world.create_restricted_subscriber()
    url, messenger = f"{URL}/{record['id']}", world.get_service_auth()
    answer = await world.client.get(url, auth=messenger)
    assert answer.status_code == 200
    answer = await world.client.post(f"{url}/verify-pin", json={"pin": PIN}, auth=messenger)
    assert answer.status_code == 200


@pytest.mark.parametrize("role", ["A", "C", "S", "F"])
async def test_code_grants_access_to_one_subscriber_for_one_admin(
    world: Harness, role: str
) -> None:
    record, another = (
        await world.create_restricted_subscriber(),
        await world.create_restricted_subscriber(),
    )
    admin, colleague = await world.create_admin(role), await world.create_admin(role)
    answer = await verify_access(world, admin, record)
    assert answer.status_code == 200
    assert list(answer.json()) == ["success", "expires_at"]
    assert answer.json()["expires_at"].endswith("Z")
    answer = await world.client.get(f"{URL}/{record['id']}", auth=admin)
    assert answer.json() == record
    assert await list_ids(world, admin) == [record["id"]]
    for caller, closed in ((admin, another), (colleague, record)):
        answer = await world.client.get(f"{URL}/{closed['id']}", auth=caller)
        assert answer.json()["code"] == "OTP_REQUIRED"
    assert await list_ids(world, colleague) == []


async def test_verified_admin_can_update_the_subscriber(world: Harness) -> None:
    record = await world.create_restricted_subscriber()
    admin = await world.create_admin("C")
    await verify_access(world, admin, record)
    answer = await world.client.put(f"{URL}/{record['id']}", json={"restricted": False}, auth=admin)
    assert answer.status_code == 200
    key = await world.create_api_key("subscribers:read")
    assert (await world.client.get(f"{URL}/{record['id']}", auth=key)).status_code == 200


async def test_access_expires_after_fifteen_minutes(world: Harness) -> None:
    record = await world.create_restricted_subscriber()
    admin = await world.create_admin("S")
    await verify_access(world, admin, record)
    world.advance_clock(minutes=14)
    assert (await world.client.get(f"{URL}/{record['id']}", auth=admin)).status_code == 200
    world.advance_clock(minutes=1)
    answer = await world.client.get(f"{URL}/{record['id']}", auth=admin)
    assert answer.json()["code"] == "OTP_REQUIRED"
    assert await list_ids(world, admin) == []
    await verify_access(world, admin, record)
    assert (await world.client.get(f"{URL}/{record['id']}", auth=admin)).status_code == 200


async def test_code_of_another_admin_grants_no_access(world: Harness) -> None:
    record = await world.create_restricted_subscriber()
    admin, thief = await world.create_admin(), await world.create_admin()
    url = f"{URL}/{record['id']}/restricted-access"
    await world.client.post(url, auth=admin)
    code = await world.get_pending_code(record["phone_number"])
    answer = await world.client.post(f"{url}/verify", json={"otp": code}, auth=thief)
    assert (answer.status_code, answer.json()["code"]) == (400, "INVALID_OTP")
    assert answer.json()["details"] == {"attempts_remaining": 0}


async def test_pin_reset_code_grants_no_access(world: Harness) -> None:
    record = await world.create_restricted_subscriber()
    url = f"{URL}/{record['id']}"
    await world.client.post(f"{url}/reset-pin", auth=world.get_service_auth())
    code = await world.get_pending_code(record["phone_number"])
    answer = await world.client.post(
        f"{url}/restricted-access/verify", json={"otp": code}, auth=await world.create_admin()
    )
    assert answer.json()["code"] == "INVALID_OTP"


async def test_closed_restricted_subscriber_can_be_read_with_a_code(world: Harness) -> None:
    record = await world.create_restricted_subscriber()
    admin = await world.create_admin()
    await verify_access(world, admin, record)
    await world.client.post(f"{URL}/{record['id']}/close", json={"reason": "r"}, auth=admin)
    auditor = await world.create_admin("C")
    world.advance_clock(minutes=1)  # the rate limit allows one code per minute
    await verify_access(world, auditor, record)
    answer = await world.client.get(f"{URL}/{record['id']}", auth=auditor)
    assert answer.json()["status"] == "CLOSED"


async def test_access_requests_and_grants_are_audited(world: Harness) -> None:
    record = await world.create_restricted_subscriber()
    admin = await world.create_admin("F")
    await world.client.post(
        f"{URL}/{record['id']}/restricted-access/verify", json={"otp": "123456"}, auth=admin
    )
    await verify_access(world, admin, record)
    (requested,) = await world.list_audit_entries(
        record["id"], "subscriber.restricted_access_requested"
    )
    refused, granted = await world.list_audit_entries(
        record["id"], "subscriber.restricted_access_granted"
    )
    assert {entry["actor"]["id"] for entry in (requested, refused, granted)} == {admin.id}
    assert (refused["result"], granted["result"]) == ("failure", "success")


async def test_malformed_code_is_rejected(world: Harness) -> None:
    record = await world.create_restricted_subscriber()
    admin = await world.create_admin()
    bodies: list[tuple[Any, int]] = [({}, 400), ({"otp": 123456}, 400), ({"otp": "12345x"}, 422)]
    for body, status in bodies:
        url = f"{URL}/{record['id']}/restricted-access/verify"
        answer = await world.client.post(url, json=body, auth=admin)
        assert answer.status_code == status
        assert list(answer.json()["details"]["fields"]) == ["otp"]
