"""Agent PINs: change, lockout after three failures, and concurrent attempts."""

from typing import Any

import httpx2

from builders.participants import AGENT_PIN, cash_in, cash_out, create_agent, post_as_admin
from harness import PIN, WRONG_PIN, Harness, parse_error

NEW_PIN = "8302"


async def change_pin(
    harness: Harness, agent: dict[str, Any], old_pin: str = AGENT_PIN, new_pin: str = NEW_PIN
) -> httpx2.Response:
    return await post_as_admin(
        harness, f"/{agent['id']}/change-pin", old_pin=old_pin, new_pin=new_pin
    )


async def test_pin_change_takes_effect_and_is_audited(harness: Harness) -> None:
    agent, customer = await create_agent(harness, balance="10"), await harness.create_subscriber()
    response = await change_pin(harness, agent)
    assert response.status_code == 200
    assert response.json() == {"success": True, "message": "PIN changed"}
    assert parse_error(await cash_in(harness, agent, customer, "1")) == (400, "INVALID_PIN")
    response = await cash_in(harness, agent, customer, "1", agent_pin=NEW_PIN)
    assert response.status_code == 200
    (entry,) = await harness.list_audit_entries(agent["id"], "agent.pin_changed")
    assert (entry["result"], entry["changes"]) == ("success", {"pin": ["***", "***"]})


async def test_three_wrong_pins_lock_the_agent_for_30_minutes(harness: Harness) -> None:
    agent = await create_agent(harness)
    for remaining in (2, 1, 0):
        response = await change_pin(harness, agent, old_pin=WRONG_PIN)
        assert parse_error(response) == (400, "INVALID_PIN")
        assert response.json()["details"] == {"attempts_remaining": remaining}
    response = await change_pin(harness, agent)
    assert parse_error(response) == (403, "ACCOUNT_LOCKED")
    assert list(response.json()["details"]) == ["locked_until"]
    entries = await harness.list_audit_entries(agent["id"], "agent.pin_changed")
    assert [(entry["result"], entry["reason"]) for entry in entries] == [
        *[("failure", "INVALID_PIN")] * 3,
        ("failure", "ACCOUNT_LOCKED"),
    ]
    harness.advance_clock(minutes=31)
    assert (await change_pin(harness, agent)).status_code == 200


async def test_new_pin_must_differ_without_revealing_the_current_one(harness: Harness) -> None:
    agent = await create_agent(harness)
    assert parse_error(await change_pin(harness, agent, new_pin=AGENT_PIN)) == (400, "SAME_PIN")
    response = await change_pin(harness, agent, old_pin=WRONG_PIN, new_pin=WRONG_PIN)
    assert parse_error(response) == (400, "INVALID_PIN")


async def test_malformed_pin_change_is_rejected_and_not_counted(harness: Harness) -> None:
    agent = await create_agent(harness)
    bodies: list[tuple[dict[str, Any], str]] = [
        ({"new_pin": NEW_PIN}, "old_pin"),
        ({"old_pin": AGENT_PIN, "new_pin": 8302}, "new_pin"),
        ({"old_pin": AGENT_PIN, "new_pin": "83021"}, "new_pin"),
        ({"old_pin": "", "new_pin": NEW_PIN}, "old_pin"),
    ]
    for body, field in bodies:
        response = await post_as_admin(harness, f"/{agent['id']}/change-pin", **body)
        assert parse_error(response) == (400, "INVALID_REQUEST"), body
        assert list(response.json()["details"]["fields"]) == [field]
    response = await change_pin(harness, agent, old_pin=WRONG_PIN)
    assert response.json()["details"] == {"attempts_remaining": 2}


async def test_weak_new_pin_is_rejected(harness: Harness) -> None:
    agent = await create_agent(harness)
    response = await change_pin(harness, agent, new_pin="1111")
    assert parse_error(response) == (400, "INVALID_REQUEST")
    assert list(response.json()["details"]["fields"]) == ["new_pin"]
    assert (await change_pin(harness, agent)).status_code == 200


async def test_cash_out_checks_the_customers_pin_first_and_counts_only_checked_pins(
    harness: Harness,
) -> None:
    agent, customer = await create_agent(harness), await harness.create_subscriber(balance="100")

    async def try_pins(pin: str, agent_pin: str) -> dict[str, Any]:
        response = await cash_out(harness, agent, customer, "1", pin=pin, agent_pin=agent_pin)
        assert parse_error(response) == (400, "INVALID_PIN")
        details: dict[str, Any] = response.json()["details"]
        return details

    assert await try_pins(WRONG_PIN, WRONG_PIN) == {"attempts_remaining": 2}
    # The agent's PIN was not checked before, and the customer's own count is reset.
    assert await try_pins(PIN, WRONG_PIN) == {"attempts_remaining": 2, "party": "receiver"}
    assert await try_pins(WRONG_PIN, AGENT_PIN) == {"attempts_remaining": 2}
    assert await try_pins(PIN, WRONG_PIN) == {"attempts_remaining": 1, "party": "receiver"}
    assert await try_pins(PIN, WRONG_PIN) == {"attempts_remaining": 0, "party": "receiver"}
    response = await cash_out(harness, agent, customer, "1")
    assert parse_error(response) == (403, "ACCOUNT_LOCKED")
    assert response.json()["details"]["party"] == "receiver"
    other = await create_agent(harness)
    assert (await cash_out(harness, other, customer, "1")).status_code == 200


async def test_pin_is_checked_before_the_agent_status(harness: Harness) -> None:
    agent = await create_agent(harness, balance="100")
    customer = await harness.create_subscriber(balance="9")
    await post_as_admin(harness, f"/{agent['id']}/suspend", reason="cash was missing")
    response = await cash_in(harness, agent, customer, "1", agent_pin=WRONG_PIN)
    assert parse_error(response) == (400, "INVALID_PIN")
    response = await cash_out(harness, agent, customer, "1", agent_pin=WRONG_PIN)
    assert parse_error(response) == (400, "INVALID_PIN")


async def test_staff_see_whether_the_code_of_an_agent_was_delivered(harness: Harness) -> None:
    agent = await create_agent(harness)
    url = f"/api/v1/agents/{agent['id']}/messages"
    support = await harness.create_admin("S")
    assert (await harness.get(url, auth=support)).json()["data"] == []
    await harness.post(f"/api/v1/agents/{agent['id']}/reset-pin", auth=support)
    (message,) = (await harness.get(url, auth=support)).json()["data"]
    assert (message["template"], message["status"]) == ("one_time_code", "queued")
    report = {"message_id": message["message_id"], "status": "failed", "error_code": "131026"}
    response = await harness.post(
        "/api/v1/messages/statuses", json={"data": [report]}, auth=harness.get_service_auth()
    )
    assert response.json() == {"updated": 1}
    (message,) = (await harness.get(url, auth=support)).json()["data"]
    assert (message["status"], message["error_code"]) == ("failed", "131026")


async def test_messages_of_an_agent_contain_only_codes(harness: Harness) -> None:
    phone = harness.new_phone_number()
    await harness.create_subscriber(phone_number=phone)
    agent = await create_agent(harness, phone_number=phone)
    await harness.post(
        "/api/v1/support/requests",
        json={"phone_number": phone, "text": "Hello"},
        auth=harness.get_service_auth(),
    )
    staff = await harness.create_admin("S")
    (request,) = (await harness.get("/api/v1/support/requests", auth=staff)).json()["data"]
    await harness.post(
        f"/api/v1/support/requests/{request['id']}/reply", json={"text": "Hi"}, auth=staff
    )
    response = await harness.get(f"/api/v1/agents/{agent['id']}/messages", auth=staff)
    assert response.json()["data"] == []


async def test_messages_from_before_the_number_was_the_agents_are_not_listed(
    harness: Harness,
) -> None:
    """They were sent to the number's previous owner."""
    agent, staff = await create_agent(harness), await harness.create_admin()
    customer = await harness.create_subscriber()
    await harness.post(f"/api/v1/subscribers/{customer['id']}/reset-pin", auth=staff)
    harness.advance_clock(minutes=1)
    changed = await harness.put(
        f"/api/v1/agents/{agent['id']}",
        json={"phone_number": customer["phone_number"]},
        auth=staff,
    )
    assert changed.status_code == 200, changed.text
    response = await harness.get(f"/api/v1/agents/{agent['id']}/messages", auth=staff)
    assert response.json()["data"] == []
