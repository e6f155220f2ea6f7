"""Subscriber profile updates, and the published events."""

import asyncio
from typing import Any

import pytest

from cases import each
from harness import Harness

URL = "/api/v1/subscribers"


async def test_update_changes_the_given_fields_and_keeps_the_rest(harness: Harness) -> None:
    record = await harness.create_subscriber(email="old@example.com", address="Freetown")
    changes = {
        "first_name": "Mariama",
        "email": "new@example.com",
        "date_of_birth": "1985-05-05",
        "category": "corporate",
        "phone_number": harness.new_phone_number(),
        "id_type": "DRIVERS_LICENSE",
        "id_number": "D-1",
    }
    response = await harness.put(
        f"{URL}/{record['id']}",
        json=changes,
        auth=await harness.create_api_key("subscribers:write"),
    )
    assert response.status_code == 200
    after = response.json()
    assert after["updated_at"] > record["updated_at"]
    expected = record | changes | {"max_child_cards": None, "updated_at": after["updated_at"]}
    assert after == expected
    response = await harness.get(f"{URL}/{record['id']}", auth=harness.get_service_auth())
    assert response.json() == expected


async def test_update_is_audited_with_old_and_new_values(harness: Harness) -> None:
    record = await harness.create_subscriber()
    phone_number = harness.new_phone_number()
    admin = await harness.create_admin("S")
    body = {"phone_number": phone_number, "first_name": record["first_name"]}
    await harness.put(f"{URL}/{record['id']}", json=body, auth=admin)
    (entry,) = await harness.list_audit_entries(record["id"], "subscriber.updated")
    assert entry["actor"]["id"] == admin.id
    assert entry["changes"] == {"phone_number": [record["phone_number"], phone_number]}


async def test_update_without_changes_writes_nothing(harness: Harness) -> None:
    record = await harness.create_subscriber()
    admin = await harness.create_admin()
    for body in ({}, {"first_name": record["first_name"]}, {"email": None}, {"id": "x"}):
        response = await harness.put(f"{URL}/{record['id']}", json=body, auth=admin)
        assert response.status_code == 200
        assert response.json() == record
    assert await harness.list_audit_entries(record["id"], "subscriber.updated") == []


async def test_duplicate_phone_number_or_id_number_is_rejected(harness: Harness) -> None:
    other = await harness.create_subscriber(id_type="PASSPORT", id_number="P1")
    record = await harness.create_subscriber(id_type="PASSPORT", id_number="P2")
    admin = await harness.create_admin()
    for field, code in (("phone_number", "DUPLICATE_PHONE"), ("id_number", "DUPLICATE_ID_NUMBER")):
        response = await harness.put(
            f"{URL}/{record['id']}", json={field: other[field]}, auth=admin
        )
        assert (response.status_code, response.json()["code"]) == (409, code)
    response = await harness.get(f"{URL}/{record['id']}", auth=admin)
    assert response.json() == record


async def test_concurrent_swap_of_phone_numbers_is_rejected(harness: Harness) -> None:
    first, second = await harness.create_subscriber(), await harness.create_subscriber()
    admin = await harness.create_admin()
    responses = await asyncio.gather(
        harness.put(
            f"{URL}/{first['id']}", json={"phone_number": second["phone_number"]}, auth=admin
        ),
        harness.put(
            f"{URL}/{second['id']}", json={"phone_number": first["phone_number"]}, auth=admin
        ),
    )
    assert {response.status_code for response in responses} <= {409, 503}


async def test_id_number_can_be_corrected_without_the_id_type(harness: Harness) -> None:
    record = await harness.create_subscriber(id_type="PASSPORT", id_number="P1")
    response = await harness.put(
        f"{URL}/{record['id']}", json={"id_number": "P2"}, auth=await harness.create_admin()
    )
    assert (response.json()["id_type"], response.json()["id_number"]) == ("PASSPORT", "P2")


@pytest.mark.parametrize("role", ["A", "C"])
async def test_system_admins_and_compliance_can_set_kyc_level_and_status(
    harness: Harness, role: str
) -> None:
    record = await harness.create_subscriber()
    body = {"kyc_level": 3, "kyc_status": "VERIFIED"}
    response = await harness.put(
        f"{URL}/{record['id']}", json=body, auth=await harness.create_admin(role)
    )
    assert response.status_code == 200
    assert response.json()["kyc_level"] == 3
    assert response.json()["kyc_status"] == "VERIFIED"
    level = await harness.database.fetchval("SELECT kyc_level FROM accounts WHERE kind = 'wallet'")
    assert level == 3


@each(
    "body",
    [
        {"kyc_level": 9},
        {"kyc_status": "nope"},
        {"restricted": "x"},
        {"kyc_level": 2, "first_name": 5},
        {"restricted": True},
    ],
)
async def test_forbidden_field_is_reported_before_other_errors(
    harness: Harness, body: dict[str, object]
) -> None:
    """403 takes precedence over 400, 422 and 404."""
    for caller in (
        await harness.create_admin("S"),
        await harness.create_api_key("subscribers:write"),
    ):
        response = await harness.put(f"{URL}/sub_nobody", json=body, auth=caller)
        assert (response.status_code, response.json()["code"]) == (403, "FORBIDDEN")
        assert response.json()["details"]["required"] == ["compliance_user", "system_admin"]
    null = await harness.put(f"{URL}/sub_nobody", json={"restricted": None}, auth=caller)
    assert null.status_code == 404


async def list_events(harness: Harness) -> list[tuple[str, Any]]:
    rows = await harness.database.fetch("SELECT type, data FROM events ORDER BY id")
    return [(row["type"], row["data"]) for row in rows]


async def test_registration_blocks_unblocks_and_kyc_changes_are_published(harness: Harness) -> None:
    await harness.database.execute(
        """INSERT INTO webhook_endpoints (id, url, events, secret, created_at)
           VALUES ($1, 'https://example.com', '{*}', '', now())""",
        harness.services.new_id(),
    )
    admin, record = await harness.create_admin(), await harness.create_subscriber()
    url = f"{URL}/{record['id']}"
    expected = [("subscriber.created", record)]
    changes: list[tuple[str, str, Any, str | None]] = [
        ("POST", "/block", {"reason": "r"}, "subscriber.blocked"),
        ("POST", "/unblock", None, "subscriber.unblocked"),
        ("PUT", "", {"first_name": "Eve"}, None),
        ("POST", "/kyc-decision", {"decision": "more_needed"}, "subscriber.kyc_changed"),
        ("POST", "/kyc-decision", {"decision": "reject", "reason": "r"}, "subscriber.kyc_changed"),
        ("PUT", "", {"kyc_level": 2}, "subscriber.kyc_changed"),
        ("PUT", "", {"kyc_level": 2}, None),
        ("PUT", "", {"kyc_status": "VERIFIED", "kyc_level": 3}, "subscriber.kyc_changed"),
        ("POST", "/close", {"reason": "r"}, None),
    ]
    for method, path, body, event in changes:
        response = await harness.client.request(method, url + path, json=body, auth=admin)
        assert response.status_code == 200, response.text
        if event is not None:
            expected.append((event, response.json().get("subscriber", response.json())))
    assert await list_events(harness) == expected


async def test_rejected_changes_are_not_published(harness: Harness) -> None:
    record, admin = await harness.create_subscriber(), await harness.create_admin()
    await harness.database.execute(
        """INSERT INTO webhook_endpoints (id, url, events, secret, created_at)
           VALUES ($1, 'https://example.com', '{*}', '', now())""",
        harness.services.new_id(),
    )
    await harness.post(f"{URL}/{record['id']}/unblock", auth=admin)
    await harness.post(
        URL,
        json={
            "phone_number": record["phone_number"],
            "first_name": "Eve",
            "last_name": "Kamara",
            "pin": "4071",
        },
        auth=admin,
    )
    assert await list_events(harness) == []
