"""Partners: create, fund, read, list, suspend and search."""

import httpx2

from builders.participants import (
    PARTNERS_URL,
    UNKNOWN_PARTNER_IDS,
    create_partner,
    get_partner_auth,
    post_webhook,
    suspend_partner,
)
from cases import each
from harness import Harness, parse_error
from tapgate_client import ids


async def test_new_partner_gets_secrets_that_are_stored_encrypted(harness: Harness) -> None:
    admin = await harness.create_admin()
    new = {"name": "Big Bank", "overdraft_limit": "250"}
    response = await harness.post(PARTNERS_URL, json=new, auth=admin)
    assert response.status_code == 201, response.text
    body = response.json()
    assert list(body) == ["partner", "api_key_id", "hmac_secret", "webhook_secret"]
    partner = body["partner"]
    assert partner == {
        "id": partner["id"],
        "name": "Big Bank",
        "status": "active",
        "account_id": partner["account_id"],
        "balance": "0.00",
        "overdraft_limit": "250.00",
        "currency": "SLE",
        "created_at": partner["created_at"],
    }
    assert partner["id"].startswith("ptn_")
    assert parse_error(await harness.get(PARTNERS_URL, auth=get_partner_auth(body))) == (
        403,
        "FORBIDDEN",
    )
    stored = await harness.database.fetchval("SELECT webhook_secret FROM partners")
    assert body["webhook_secret"].encode() not in stored
    (entry,) = await harness.list_audit_entries(partner["id"], "partner.created")
    assert entry["changes"]["overdraft_limit"] == [None, "250.00"]
    assert not {body["hmac_secret"], body["webhook_secret"]} & set(str(entry).split("'"))


@each(
    "body, status, reported_field",
    [
        ({}, 400, "name"),
        ({"name": "B", "overdraft_limit": 5}, 400, "overdraft_limit"),
        ({"name": ""}, 422, "name"),
        ({"name": "B", "overdraft_limit": "-1"}, 422, "overdraft_limit"),
        ({"name": "B", "overdraft_limit": "0.001"}, 422, "overdraft_limit"),
    ],
)
async def test_invalid_partner_field_is_rejected(
    harness: Harness, body: dict[str, object], status: int, reported_field: str
) -> None:
    response = await harness.post(PARTNERS_URL, json=body, auth=await harness.create_admin())
    assert response.status_code == status
    assert list(response.json()["details"]["fields"]) == [reported_field]


async def test_overdraft_limit_defaults_to_zero(harness: Harness) -> None:
    for fields in ({}, {"overdraft_limit": None}, {"overdraft_limit": "0"}):
        assert (await create_partner(harness, **fields))["partner"]["overdraft_limit"] == "0.00"


async def test_suspended_partner_cannot_be_funded(harness: Harness) -> None:
    new = await create_partner(harness)
    await suspend_partner(harness, new)
    url = f"{PARTNERS_URL}/{new['partner']['id']}/fund"
    response = await harness.post(url, json={"amount": "1"}, auth=await harness.create_admin())
    assert parse_error(response) == (403, "PARTNER_SUSPENDED")
    assert response.json()["details"] == {"party": "receiver"}


async def test_partners_are_listed_newest_first_in_pages(harness: Harness) -> None:
    admin = await harness.create_admin()
    created = [
        (await create_partner(harness, name=name))["partner"] for name in ("one", "two", "three")
    ]
    first = (await harness.get(PARTNERS_URL, params={"limit": 2}, auth=admin)).json()
    assert first["data"] == [created[2], created[1]]
    rest = {"limit": 2, "cursor": first["next_cursor"]}
    second = (await harness.get(PARTNERS_URL, params=rest, auth=admin)).json()
    assert second == {"data": [created[0]], "has_more": False, "next_cursor": None}


@each("id", UNKNOWN_PARTNER_IDS)
async def test_unknown_partner_is_not_found(harness: Harness, id: str) -> None:
    admin = await harness.create_admin()
    for method, path in (
        ("GET", ""),
        ("POST", "/fund"),
        ("POST", "/suspend"),
        ("POST", "/activate"),
        ("POST", "/rotate-webhook-secret"),
        ("POST", "/keys"),
        ("GET", "/keys"),
        ("DELETE", f"/keys/{ids.encode(ids.KEY, 1)}"),
    ):
        body = {"amount": "1"} if path == "/fund" else None
        response = await harness.client.request(
            method, f"{PARTNERS_URL}/{id}{path}", json=body, auth=admin
        )
        assert parse_error(response) == (404, "PARTNER_NOT_FOUND"), path


async def test_suspension_immediately_rejects_keys_and_webhooks_in_every_process(
    other_process_client: httpx2.AsyncClient, harness: Harness
) -> None:
    new = await create_partner(harness)
    url, admin = f"{PARTNERS_URL}/{new['partner']['id']}", await harness.create_admin()
    for verb, status, key_error, webhook_error in (
        ("suspend", "suspended", (403, "PARTNER_SUSPENDED"), (403, "PARTNER_SUSPENDED")),
        ("activate", "active", (403, "FORBIDDEN"), (400, "INVALID_REQUEST")),
        ("suspend", "suspended", (403, "PARTNER_SUSPENDED"), (403, "PARTNER_SUSPENDED")),
    ):
        response = await harness.post(f"{url}/{verb}", json={"reason": "unpaid"}, auth=admin)
        assert response.status_code == 200, response.text
        assert list(response.json()) == ["success", "message", "partner"]
        assert response.json()["partner"] == new["partner"] | {"status": status}
        for process in (other_process_client, harness.client):
            error = parse_error(await process.get(PARTNERS_URL, auth=get_partner_auth(new)))
            assert error == key_error
            # The suspension is checked before the body is parsed.
            assert parse_error(await post_webhook(process, new, b"not JSON")) == webhook_error
    entry, _ = await harness.list_audit_entries(new["partner"]["id"], "partner.suspended")
    assert (entry["reason"], entry["changes"]) == ("unpaid", {"status": ["active", "suspended"]})
    (entry,) = await harness.list_audit_entries(new["partner"]["id"], "partner.activated")
    assert entry["changes"] == {"status": ["suspended", "active"]}


async def test_invalid_transition_is_rejected(harness: Harness) -> None:
    new = await create_partner(harness)
    url, admin = f"{PARTNERS_URL}/{new['partner']['id']}", await harness.create_admin()
    assert parse_error(await harness.post(f"{url}/activate", auth=admin)) == (409, "NOT_SUSPENDED")
    await suspend_partner(harness, new)
    assert parse_error(await harness.post(f"{url}/suspend", auth=admin)) == (
        409,
        "ALREADY_SUSPENDED",
    )


async def test_partners_are_searched_and_filtered_by_status(harness: Harness) -> None:
    bank, wire = await create_partner(harness), await create_partner(harness, name="Wire Ltd")
    await suspend_partner(harness, wire)
    admin = await harness.create_admin()
    for query, expected in (
        ({"search": "big BANK"}, [bank]),
        ({"search": "wire"}, [wire]),
        ({"search": "wire", "status": "active"}, []),
        ({"search": bank["partner"]["id"]}, [bank]),
        ({"status": "suspended"}, [wire]),
        ({"status": "active"}, [bank]),
    ):
        response = await harness.get(PARTNERS_URL, params=query, auth=admin)
        found_ids = [record["id"] for record in response.json()["data"]]
        assert found_ids == [new["partner"]["id"] for new in expected], query
    response = await harness.get(PARTNERS_URL, params={"status": "closed"}, auth=admin)
    assert (response.status_code, response.json()["code"]) == (422, "VALIDATION_FAILED")
