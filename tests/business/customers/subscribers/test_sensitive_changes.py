"""Changes of phone numbers, commission tiers and KYC levels are sensitive actions."""

from builders.auth import enroll_app
from builders.participants import create_agent
from harness import Harness, parse_error
from tapgate.server.gateway import list_endpoints
from tapgate_client import ids


async def test_change_of_a_phone_number_requires_a_recent_factor(harness: Harness) -> None:
    record = await harness.create_subscriber()
    path = f"/api/v1/subscribers/{record['id']}"
    admin, number = await harness.create_admin("S"), harness.new_phone_number()
    admin_id = ids.decode(ids.ADMIN, admin.id)
    assert admin_id is not None
    app = await enroll_app(harness.services, admin_id)

    stale = await harness.put(path, json={"phone_number": number}, auth=admin)
    assert (stale.status_code, stale.json()["code"]) == (403, "OTP_REQUIRED")
    assert stale.json()["details"] == {"methods": ["totp"]}
    unchanged = {"phone_number": record["phone_number"], "first_name": "Mariama"}
    assert (await harness.put(path, json=unchanged, auth=admin)).status_code == 200
    assert (await harness.put(path, json={"phone_number": None}, auth=admin)).status_code == 200

    code = {"otp": app.at(harness.services.clock())}
    response = await harness.post("/api/v1/admin/me/step-up", json=code, auth=admin)
    assert response.status_code == 200
    changed = await harness.put(path, json={"phone_number": number}, auth=admin)
    assert changed.json()["phone_number"] == number


async def test_other_callers_change_a_phone_number_without_a_factor(harness: Harness) -> None:
    record = await harness.create_subscriber()
    path = f"/api/v1/subscribers/{record['id']}"
    key, admin = await harness.create_api_key("subscribers:write"), await harness.create_admin("S")
    for caller in (key, admin):
        body = {"phone_number": harness.new_phone_number()}
        assert (await harness.put(path, json=body, auth=caller)).status_code == 200


async def test_change_of_an_agents_phone_number_requires_a_recent_factor(harness: Harness) -> None:
    agent = await create_agent(harness)
    path = f"/api/v1/agents/{agent['id']}"
    admin, number = await harness.create_admin(), harness.new_phone_number()
    admin_id = ids.decode(ids.ADMIN, admin.id)
    assert admin_id is not None
    app = await enroll_app(harness.services, admin_id)

    stale = await harness.put(path, json={"phone_number": number}, auth=admin)
    assert parse_error(stale) == (403, "OTP_REQUIRED")
    unknown = await harness.put(
        f"/api/v1/agents/{ids.encode(ids.AGENT, 1)}", json={"phone_number": number}, auth=admin
    )
    assert parse_error(unknown) == (404, "AGENT_NOT_FOUND")
    unchanged = {"phone_number": agent["phone_number"], "name": "Mariama"}
    assert (await harness.put(path, json=unchanged, auth=admin)).status_code == 200
    code = {"otp": app.at(harness.services.clock())}
    response = await harness.post("/api/v1/admin/me/step-up", json=code, auth=admin)
    assert response.status_code == 200
    changed = await harness.put(path, json={"phone_number": number}, auth=admin)
    assert changed.json()["phone_number"] == number


async def test_raising_a_kyc_level_requires_a_recent_factor(harness: Harness) -> None:
    record = await harness.create_subscriber()
    path = f"/api/v1/subscribers/{record['id']}"
    admin = await harness.create_admin("C")
    admin_id = ids.decode(ids.ADMIN, admin.id)
    assert admin_id is not None
    await enroll_app(harness.services, admin_id)
    raised = await harness.put(path, json={"kyc_level": 2}, auth=admin)
    assert parse_error(raised) == (403, "OTP_REQUIRED")
    decided = await harness.post(
        f"{path}/kyc-decision", json={"decision": "approve", "kyc_level": 2}, auth=admin
    )
    assert parse_error(decided) == (403, "OTP_REQUIRED")
    rejection = {"decision": "reject", "reason": "Blurred photo"}
    rejected = await harness.post(f"{path}/kyc-decision", json=rejection, auth=admin)
    assert rejected.status_code == 200, rejected.text


async def test_change_of_a_commission_tier_requires_a_recent_factor(harness: Harness) -> None:
    agent = await create_agent(harness)
    admin = await harness.create_admin()
    admin_id = ids.decode(ids.ADMIN, admin.id)
    assert admin_id is not None
    await enroll_app(harness.services, admin_id)
    path = f"/api/v1/agents/{agent['id']}"
    raised = await harness.put(path, json={"commission_tier": 3}, auth=admin)
    assert parse_error(raised) == (403, "OTP_REQUIRED")


def test_every_change_of_a_phone_number_declares_the_sensitive_field() -> None:
    """An admin who changes the number of another person could receive that person's codes."""
    changing = {
        endpoint.name
        for endpoint in list_endpoints()
        if endpoint.method == "PUT"
        and endpoint.body_struct is not None
        and "phone_number" in endpoint.body_struct.__struct_fields__
    }
    declared = {
        endpoint.name
        for endpoint in list_endpoints()
        if isinstance(endpoint.step_up, tuple) and "phone_number" in endpoint.step_up
    }
    assert changing == declared == {"PUT /api/v1/subscribers/{id}", "PUT /api/v1/agents/{id}"}
