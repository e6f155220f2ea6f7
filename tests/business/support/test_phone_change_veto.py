"""A replaced phone number can object to the change for 24 hours."""

from typing import Any

import httpx2

from builders.approvals import set_email
from harness import BearerAuth, Harness, parse_error

URL = "/api/v1/subscribers"


async def change_phone(harness: Harness, customer: dict[str, Any], admin: Any) -> str:
    """Give the customer a new phone number, and return it."""
    number = harness.new_phone_number()
    response = await harness.put(
        f"{URL}/{customer['id']}", json={"phone_number": number}, auth=admin
    )
    assert response.status_code == 200, response.text
    return number


async def veto(harness: Harness, customer: dict[str, Any], number: str) -> httpx2.Response:
    return await harness.post(
        f"{URL}/{customer['id']}/dispute-phone-change",
        json={"phone_number": number},
        auth=harness.get_service_auth(),
    )


async def test_veto_blocks_the_wallet_and_names_who_made_the_change(harness: Harness) -> None:
    customer, thief = await harness.create_subscriber(), await harness.create_admin("S")
    await change_phone(harness, customer, thief)
    response = await veto(harness, customer, customer["phone_number"])
    assert response.status_code == 200, response.text
    body = response.json()
    assert (body["status"], body["status_reason"]) == ("BLOCKED", "phone_change_disputed")
    support = await harness.get(
        f"/api/v1/support/requests/{body['support_request_id']}",
        auth=await harness.create_admin("S"),
    )
    record = support.json()
    assert (record["priority"], record["status"]) == ("urgent", "open")
    assert record["subscriber_id"] == customer["id"]
    assert record["phone_number"] == customer["phone_number"]
    me = await harness.get("/api/v1/admin/me", auth=thief)
    assert me.json()["id"] in record["messages"][0]["text"]
    again = await veto(harness, customer, customer["phone_number"])
    assert again.json()["support_request_id"] == body["support_request_id"]


async def test_every_number_replaced_within_a_day_may_object(harness: Harness) -> None:
    customer, admin = await harness.create_subscriber(), await harness.create_admin()
    second = await change_phone(harness, customer, admin)
    third = await change_phone(harness, customer, admin)
    assert parse_error(await veto(harness, customer, third)) == (403, "FORBIDDEN")
    stranger = await veto(harness, customer, harness.new_phone_number())
    assert parse_error(stranger) == (403, "FORBIDDEN")
    assert (await veto(harness, customer, second)).status_code == 200
    assert (await veto(harness, customer, customer["phone_number"])).status_code == 200


async def test_number_cannot_object_after_a_day(harness: Harness) -> None:
    customer = await harness.create_subscriber()
    await change_phone(harness, customer, await harness.create_admin())
    harness.advance_clock(hours=24)
    response = await veto(harness, customer, customer["phone_number"])
    assert parse_error(response) == (403, "FORBIDDEN")


async def test_maker_cannot_undo_the_veto_until_someone_else_has_unblocked(
    harness: Harness,
) -> None:
    customer, maker = await harness.create_subscriber(), await harness.create_admin()
    await change_phone(harness, customer, maker)
    await veto(harness, customer, customer["phone_number"])
    path = f"{URL}/{customer['id']}"
    for verb in ("unblock", "close"):
        response = await harness.post(f"{path}/{verb}", json={"reason": "mine"}, auth=maker)
        assert parse_error(response) == (403, "FORBIDDEN"), verb
    body = {"phone_number": harness.new_phone_number()}
    response = await harness.put(path, json=body, auth=maker)
    assert parse_error(response) == (403, "FORBIDDEN")
    colleague = await harness.create_admin()
    response = await harness.post(f"{path}/unblock", json={"reason": "checked"}, auth=colleague)
    assert response.status_code == 200
    await change_phone(harness, customer, maker)


async def test_maker_cannot_undo_the_veto_as_another_admin_or_key(harness: Harness) -> None:
    """A second account of the same person, or a key that the person has created."""
    customer, maker = await harness.create_subscriber(), await harness.create_admin()
    second = await harness.create_admin()
    await set_email(harness, maker, "ada@example.com")
    await set_email(harness, second, "Ada+2@example.com")
    key = {"name": "Import", "scopes": ["subscribers:write"]}
    created = (await harness.post("/api/v1/admin/api-keys", json=key, auth=maker)).json()
    by_key = BearerAuth(created["key"], created["id"])
    for auth in (maker, by_key):
        await change_phone(harness, customer, auth)
        await veto(harness, customer, customer["phone_number"])
        body = {"phone_number": harness.new_phone_number()}
        for other in (second, by_key, maker):
            response = await harness.put(f"{URL}/{customer['id']}", json=body, auth=other)
            assert parse_error(response) == (403, "FORBIDDEN")
        path = f"{URL}/{customer['id']}/unblock"
        unblocked = await harness.post(
            path, json={"reason": "checked"}, auth=await harness.create_admin()
        )
        assert unblocked.status_code == 200


async def test_replies_go_to_the_number_that_objects(harness: Harness) -> None:
    customer, admin = await harness.create_subscriber(), await harness.create_admin()
    new_number = await change_phone(harness, customer, admin)
    body = (await veto(harness, customer, customer["phone_number"])).json()
    path = f"/api/v1/support/requests/{body['support_request_id']}/reply"
    response = await harness.post(path, json={"text": "We check it."}, auth=admin)
    assert response.status_code == 200, response.text
    old = customer["phone_number"]
    assert await harness.list_pending_messages(old, "support_reply") == [["We check it."]]
    assert await harness.list_pending_messages(new_number, "support_reply") == []
