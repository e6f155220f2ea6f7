"""Processors: create, read, list, search and transfer to a subscriber."""

from builders.participants import (
    PROCESSORS_URL,
    SUSPEND_BODY,
    UNKNOWN_PROCESSOR_IDS,
    VALID_CREDENTIAL,
    create_processor,
    deposit_to_processor,
    get_processor_auth,
    probe_credential,
)
from cases import each
from harness import Harness
from tapgate_client import ids


async def test_processors_are_listed_by_name_in_pages(harness: Harness) -> None:
    created = [
        (await create_processor(harness, name=name))["processor"]
        for name in ("Kissy Market", "Aberdeen Hotel", "bo Pharmacy")
    ]
    key = await harness.create_api_key("payments:read")
    names: list[str] = []
    query = {"limit": "2", "order": "name"}
    for has_more in (True, False):
        page = (await harness.get(PROCESSORS_URL, params=query, auth=key)).json()
        assert page["has_more"] is has_more
        names += [record["name"] for record in page["data"]]
        query["cursor"] = page["next_cursor"]
    assert names == [created[number]["name"] for number in (1, 2, 0)]


async def test_new_processor_gets_a_working_key(harness: Harness) -> None:
    new = {"name": " Corner Shop ", "phone_number": "+232 76 123456", "email": "Shop@Example.com"}
    admin = await harness.create_admin()
    response = await harness.post(PROCESSORS_URL, json=new, auth=admin)
    assert response.status_code == 201, response.text
    body = response.json()
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
    fields = {
        field: value
        for field, value in processor.items()
        if field not in ("id", "account_id", "created_at", "updated_at")
    }
    assert fields == {
        "name": "Corner Shop",
        "phone_number": "+23276123456",
        "email": "shop@example.com",
        "status": "active",
        "suspend_reason": None,
        "balance": "0.00",
        "currency": "SLE",
    }
    assert await probe_credential(harness.client, get_processor_auth(body)) == VALID_CREDENTIAL
    (entry,) = await harness.list_audit_entries(processor["id"], "processor.created")
    assert entry["actor"]["id"] == admin.id
    assert entry["changes"] == {
        "name": [None, "Corner Shop"],
        "status": [None, "active"],
        "api_key_id": [None, body["api_key_id"]],
    }


@each(
    "change, status, reported_field",
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
    harness: Harness, change: dict[str, object], status: int, reported_field: str
) -> None:
    new = {"name": "Shop", "phone_number": "+23276123456", "email": "a@example.com", **change}
    response = await harness.post(PROCESSORS_URL, json=new, auth=await harness.create_admin())
    assert response.status_code == status
    assert list(response.json()["details"]["fields"]) == [reported_field]


async def test_processor_record_shows_the_balance(harness: Harness) -> None:
    processor = (await create_processor(harness))["processor"]
    await deposit_to_processor(harness, processor["id"], "1234.5")
    for caller in (await harness.create_api_key("payments:read"), await harness.create_admin("S")):
        response = await harness.get(f"{PROCESSORS_URL}/{processor['id']}", auth=caller)
        assert response.json() == processor | {"balance": "1234.50"}


@each("id", UNKNOWN_PROCESSOR_IDS)
async def test_unknown_processor_is_not_found(harness: Harness, id: str) -> None:
    admin = await harness.create_admin()
    customer = await harness.create_subscriber()
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
        response = await harness.client.request(method, path, json=body, auth=admin)
        assert (response.status_code, response.json()["code"]) == (404, "PROCESSOR_NOT_FOUND"), path


async def test_processors_are_listed_newest_first_in_pages_and_by_status(harness: Harness) -> None:
    admin = await harness.create_admin()
    created = [
        (await create_processor(harness, name=name))["processor"]
        for name in ("one", "two", "three")
    ]
    first = (await harness.get(PROCESSORS_URL, params={"limit": 2}, auth=admin)).json()
    assert first["data"] == [created[2], created[1]]
    rest = {"limit": 2, "cursor": first["next_cursor"]}
    second = (await harness.get(PROCESSORS_URL, params=rest, auth=admin)).json()
    assert second == {"data": [created[0]], "has_more": False, "next_cursor": None}

    await harness.post(
        f"{PROCESSORS_URL}/{created[1]['id']}/suspend", json=SUSPEND_BODY, auth=admin
    )
    for status, names in (("suspended", ["two"]), ("active", ["three", "one"])):
        page = (await harness.get(PROCESSORS_URL, params={"status": status}, auth=admin)).json()
        assert [record["name"] for record in page["data"]] == names
    response = await harness.get(PROCESSORS_URL, params={"status": "blocked"}, auth=admin)
    assert (response.status_code, response.json()["code"]) == (422, "VALIDATION_FAILED")


async def test_processors_are_searched_by_name_email_phone_and_id(harness: Harness) -> None:
    corner = (await create_processor(harness))["processor"]
    market = (await create_processor(harness, name="Big Market", email="sales@market.example"))[
        "processor"
    ]
    admin = await harness.create_admin("S")
    for text, expected in (
        ("corner SHOP", [corner]),
        ("market.example", [market]),
        (market["phone_number"][-8:], [market]),
        ("corner market", []),
        (corner["id"], [corner]),
        ("%%%", []),
    ):
        response = await harness.get(PROCESSORS_URL, params={"search": text}, auth=admin)
        assert response.json()["data"] == expected, text


async def _create_funded_processor(harness: Harness, amount: str = "100") -> str:
    """Create a processor with a balance and return its transfers URL."""
    processor_id: str = (await create_processor(harness))["processor_id"]
    await deposit_to_processor(harness, processor_id, amount)
    return f"{PROCESSORS_URL}/{processor_id}/transfer"


async def test_transfer_receipt_shows_the_remaining_balance(harness: Harness) -> None:
    url = await _create_funded_processor(harness, "2000")
    customer = await harness.create_subscriber()
    body = {"subscriber_id": customer["id"], "amount": "750", "description": "Prize"}
    admin = await harness.create_admin("F")
    response = await harness.post(url, json=body, auth=admin)
    assert response.status_code == 200, response.text
    receipt = response.json()
    transaction_id = ids.decode(ids.TRANSACTION, receipt.pop("transaction_id"))
    assert receipt == {
        "success": True,
        "message": "Transfer completed",
        "status": "completed",
        "amount": "750.00 SLE",
        "processor_balance": "1,250.00 SLE",
    }
    row = await harness.database.fetchrow(
        "SELECT type, channel, fee_amount, context FROM transactions WHERE id = $1", transaction_id
    )
    assert row is not None
    context = {"memo": "Prize", "requested_by": admin.id}
    assert tuple(row) == ("processor_transfer", "admin", 0, context)
    subscriber = await harness.get(
        f"/api/v1/subscribers/{customer['id']}", auth=harness.get_service_auth()
    )
    assert subscriber.json()["balance"] == "750.00"


async def test_suspended_processor_cannot_transfer(harness: Harness) -> None:
    url, admin = await _create_funded_processor(harness), await harness.create_admin()
    customer = await harness.create_subscriber()
    await harness.post(url.replace("/transfer", "/suspend"), json=SUSPEND_BODY, auth=admin)
    body = {"subscriber_id": customer["id"], "amount": "1"}
    response = await harness.post(url, json=body, auth=admin)
    assert (response.status_code, response.json()["code"]) == (403, "PROCESSOR_SUSPENDED")
    assert response.json()["details"] == {"party": "sender"}


@each("id", [ids.encode(ids.SUBSCRIBER, 1), "sub_1", "x"])
async def test_unknown_subscriber_is_not_found(harness: Harness, id: str) -> None:
    body = {"subscriber_id": id, "amount": "1"}
    response = await harness.post(
        await _create_funded_processor(harness), json=body, auth=await harness.create_admin()
    )
    assert (response.status_code, response.json()["code"]) == (404, "SUBSCRIBER_NOT_FOUND")
