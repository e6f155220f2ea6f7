"""Processors: create, read, list and search."""

import httpx2
import pytest

from harness import Harness
from processors.builders import (
    PROCESSORS_URL,
    SUSPEND_BODY,
    UNKNOWN_IDS,
    VALID_CREDENTIAL,
    create_processor,
    deposit,
    get_auth,
    probe_credential,
)


async def test_new_processor_gets_a_working_key(client: httpx2.AsyncClient, world: Harness) -> None:
    new = {"name": " Corner Shop ", "phone_number": "+232 76 123456", "email": "Shop@Example.com"}
    admin = await world.create_admin()
    answer = await client.post(PROCESSORS_URL, json=new, auth=admin)
    assert answer.status_code == 201, answer.text
    body = answer.json()
    processor = body["processor"]
    assert list(body) == [
        "success",
        "message",
        "processor_id",
        "processor",
        "api_key_id",
        "hmac_secret",
    ]
    assert body["processor_id"] == processor["id"]
    assert processor["id"].startswith("prc_")
    assert processor["account_id"].startswith("acc_")
    assert processor["created_at"] == processor["updated_at"]
    shown = {
        field: value
        for field, value in processor.items()
        if field not in ("id", "account_id", "created_at", "updated_at")
    }
    assert shown == {
        "name": "Corner Shop",
        "phone_number": "+23276123456",
        "email": "shop@example.com",
        "status": "active",
        "suspend_reason": None,
        "balance": "0.00",
        "currency": "SLE",
    }
    assert await probe_credential(client, get_auth(body)) == VALID_CREDENTIAL
    (entry,) = await world.list_audit_entries(processor["id"], "processor.created")
    assert entry["actor"]["id"] == admin.id
    assert entry["changes"] == {
        "name": [None, "Corner Shop"],
        "status": [None, "active"],
        "api_key_id": [None, body["api_key_id"]],
    }


@pytest.mark.parametrize(
    ("change", "status", "named"),
    [
        ({"name": None}, 400, "name"),
        ({"phone_number": None}, 400, "phone_number"),
        ({"email": None}, 400, "email"),
        ({"name": 5}, 400, "name"),
        ({"name": " "}, 422, "name"),
        ({"phone_number": "076"}, 422, "phone_number"),
        ({"email": "shop"}, 422, "email"),
    ],
)
async def test_invalid_processor_field_is_rejected(
    client: httpx2.AsyncClient, world: Harness, change: dict[str, object], status: int, named: str
) -> None:
    new = {"name": "Shop", "phone_number": "+23276123456", "email": "a@example.com", **change}
    answer = await client.post(PROCESSORS_URL, json=new, auth=await world.create_admin())
    assert answer.status_code == status
    assert list(answer.json()["details"]["fields"]) == [named]


async def test_processor_record_shows_the_balance(
    client: httpx2.AsyncClient, world: Harness
) -> None:
    processor = (await create_processor(world))["processor"]
    await deposit(world, processor["id"], "1234.5")
    for caller in (await world.create_api_key("payments:read"), await world.create_admin("S")):
        answer = await client.get(f"{PROCESSORS_URL}/{processor['id']}", auth=caller)
        assert answer.json() == processor | {"balance": "1234.50"}


@pytest.mark.parametrize("id", UNKNOWN_IDS)
async def test_unknown_processor_is_not_found(
    client: httpx2.AsyncClient, world: Harness, id: str
) -> None:
    admin = await world.create_admin()
    customer = await world.create_subscriber()
    url = f"{PROCESSORS_URL}/{id}"
    terminal = f"{url}/terminals/ter_0000000000001"
    for method, path, body in (
        ("GET", url, None),
        ("POST", f"{url}/suspend", SUSPEND_BODY),
        ("POST", f"{url}/activate", SUSPEND_BODY),
        ("POST", f"{url}/transfer", {"subscriber_id": customer["id"], "amount": "1"}),
        ("POST", f"{url}/terminals", {"name": "Till 1"}),
        ("GET", f"{url}/terminals", None),
        ("POST", f"{terminal}/block", None),
        ("POST", f"{terminal}/unblock", None),
        ("POST", f"{url}/keys", None),
        ("GET", f"{url}/keys", None),
        ("DELETE", f"{url}/keys/key_0000000000001", None),
    ):
        answer = await client.request(method, path, json=body, auth=admin)
        assert (answer.status_code, answer.json()["code"]) == (404, "PROCESSOR_NOT_FOUND"), path


async def test_processors_are_listed_newest_first_in_pages_and_by_status(
    client: httpx2.AsyncClient, world: Harness
) -> None:
    admin = await world.create_admin()
    made = [
        (await create_processor(world, name=name))["processor"] for name in ("one", "two", "three")
    ]
    first = (await client.get(PROCESSORS_URL, params={"limit": 2}, auth=admin)).json()
    assert first["data"] == [made[2], made[1]]
    rest = {"limit": 2, "cursor": first["next_cursor"]}
    second = (await client.get(PROCESSORS_URL, params=rest, auth=admin)).json()
    assert second == {"data": [made[0]], "has_more": False, "next_cursor": None}

    await client.post(f"{PROCESSORS_URL}/{made[1]['id']}/suspend", json=SUSPEND_BODY, auth=admin)
    for status, names in (("suspended", ["two"]), ("active", ["three", "one"])):
        page = (await client.get(PROCESSORS_URL, params={"status": status}, auth=admin)).json()
        assert [record["name"] for record in page["data"]] == names
    answer = await client.get(PROCESSORS_URL, params={"status": "blocked"}, auth=admin)
    assert (answer.status_code, answer.json()["code"]) == (422, "VALIDATION_FAILED")


async def test_processors_are_searched_by_name_email_phone_and_id(
    client: httpx2.AsyncClient, world: Harness
) -> None:
    corner = (await create_processor(world))["processor"]
    market = (await create_processor(world, name="Big Market", email="sales@market.example"))[
        "processor"
    ]
    admin = await world.create_admin("S")
    for text, expected in (
        ("corner SHOP", [corner]),
        ("market.example", [market]),
        (market["phone_number"][-8:], [market]),
        ("corner market", []),
        (corner["id"], [corner]),
        ("%%%", []),
    ):
        answer = await client.get(PROCESSORS_URL, params={"search": text}, auth=admin)
        assert answer.json()["data"] == expected, text
