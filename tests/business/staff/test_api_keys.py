"""Creating, listing, rotating and deleting API keys."""

import asyncio
from typing import Any

import httpx2
import pytest

from builders.api_keys import KEYS_URL, NEW_KEY, get_key_status
from builders.auth import Headers, ListAuditEntries
from cases import each
from harness import PIN, BearerAuth, Harness
from tapgate_client import ids


async def test_key_is_created_and_shown_once(
    client: httpx2.AsyncClient, ada: Headers, list_audit_entries: ListAuditEntries
) -> None:
    response = await client.post(KEYS_URL, json=NEW_KEY, headers=ada)
    assert response.status_code == 201
    created = response.json()
    key = created.pop("key")
    assert key.startswith("svc_test_")
    assert key.startswith(created["prefix"])
    assert len(created["prefix"]) < len(key) / 2
    assert created["id"].startswith("key_")
    assert (created["name"], created["expires_at"]) == ("Shop", "2999-01-31T12:00:00.000Z")
    assert created["scopes"] == NEW_KEY["scopes"]
    assert await get_key_status(client, key) == 403

    listed = await client.get(KEYS_URL, headers=ada)
    assert listed.json() == {"data": [created], "has_more": False, "next_cursor": None}
    (entry,) = await list_audit_entries("api_key.created")
    assert (entry["resource_type"], entry["resource_id"]) == ("api_key", created["id"])
    assert entry["changes"]["scopes"] == [None, created["scopes"]]
    assert key not in str(entry)


@pytest.mark.parametrize("expires", [{}, {"expires_at": None}])
async def test_key_expiry_is_optional(
    client: httpx2.AsyncClient, ada: Headers, expires: dict[str, None]
) -> None:
    new = {"name": "Shop", "scopes": ["cards:read"], **expires}
    created = (await client.post(KEYS_URL, json=new, headers=ada)).json()
    assert created["expires_at"] is None
    assert await get_key_status(client, created["key"]) == 403


@each(
    "field, value, reported_field",
    [
        ("name", "", "name"),
        ("scopes", [], "scopes"),
        ("scopes", ["payments:read", "everything"], "scopes[1]"),
        ("expires_at", "2020-01-31T12:00:00Z", "expires_at"),
        ("expires_at", "tomorrow", "expires_at"),
        ("expires_at", "2999-01-31T12:00:00", "expires_at"),
    ],
)
async def test_invalid_field_is_named(
    client: httpx2.AsyncClient, ada: Headers, field: str, value: object, reported_field: str
) -> None:
    response = await client.post(KEYS_URL, json=NEW_KEY | {field: value}, headers=ada)
    assert (response.status_code, response.json()["code"]) == (422, "VALIDATION_FAILED")
    assert list(response.json()["details"]["fields"]) == [reported_field]


@each("body", [{"name": "Shop"}, {"scopes": ["cards:read"]}, NEW_KEY | {"scopes": "cards:read"}])
async def test_malformed_key_body_returns_400(
    client: httpx2.AsyncClient, ada: Headers, body: dict[str, object]
) -> None:
    response = await client.post(KEYS_URL, json=body, headers=ada)
    assert (response.status_code, response.json()["code"]) == (400, "INVALID_REQUEST")


async def test_deleted_key_is_rejected_immediately_in_every_process(
    client: httpx2.AsyncClient,
    other_process_client: httpx2.AsyncClient,
    ada: Headers,
    list_audit_entries: ListAuditEntries,
) -> None:
    created = (await client.post(KEYS_URL, json=NEW_KEY, headers=ada)).json()
    assert await get_key_status(other_process_client, created["key"]) == 403
    response = await client.delete(f"{KEYS_URL}/{created['id']}", headers=ada)
    assert (response.status_code, response.content) == (204, b"")
    for process in (client, other_process_client):
        assert await get_key_status(process, created["key"]) == 401
    assert (await client.get(KEYS_URL, headers=ada)).json()["data"] == []
    (entry,) = await list_audit_entries("api_key.deleted")
    assert entry["resource_id"] == created["id"]

    url = f"{KEYS_URL}/{created['id']}"
    for again in (
        await client.delete(url, headers=ada),
        await client.put(url, json={"name": "Kiosk"}, headers=ada),
    ):
        assert (again.status_code, again.json()["code"]) == (404, "NOT_FOUND")


@each("text", [ids.encode(ids.KEY, 1), ids.encode(ids.ADMIN, 1), "shop"])
async def test_unknown_key_is_not_found(
    client: httpx2.AsyncClient, ada: Headers, text: str
) -> None:
    for method, path, body in (
        ("GET", "", None),
        ("PUT", "", {"name": "Kiosk"}),
        ("POST", "/rotate", {}),
        ("DELETE", "", None),
    ):
        response = await client.request(method, f"{KEYS_URL}/{text}{path}", json=body, headers=ada)
        assert (response.status_code, response.json()["code"]) == (404, "NOT_FOUND")


async def test_keys_are_paged_newest_first(client: httpx2.AsyncClient, ada: Headers) -> None:
    for name in ("one", "two", "three"):
        await client.post(KEYS_URL, json=NEW_KEY | {"name": name}, headers=ada)
    first = (await client.get(KEYS_URL, params={"limit": 2}, headers=ada)).json()
    assert [key["name"] for key in first["data"]] == ["three", "two"]
    rest = {"limit": 2, "cursor": first["next_cursor"]}
    second = (await client.get(KEYS_URL, params=rest, headers=ada)).json()
    assert [key["name"] for key in second["data"]] == ["one"]


async def test_duplicate_scopes_are_removed(harness: Harness) -> None:
    new = {"name": "Shop", "scopes": ["cards:write", "cards:read", "cards:write"]}
    response = await harness.post(
        "/api/v1/admin/api-keys", json=new, auth=await harness.create_admin()
    )
    assert response.json()["scopes"] == ["cards:write", "cards:read"]


TRANSFER_URL = "/api/v1/wallet/transfer-p2p"


async def _rotate_key(
    harness: Harness, key: BearerAuth, admin: BearerAuth, grace: int = 0
) -> BearerAuth:
    url = f"{KEYS_URL}/{key.id}/rotate"
    response = await harness.post(url, json={"grace_seconds": grace}, auth=admin)
    assert response.status_code == 200, response.text
    return BearerAuth(response.json()["key"], key.id)


async def _build_transfer(harness: Harness, request_id: str, sender: str) -> dict[str, Any]:
    recipient = await harness.create_subscriber()
    serial = await harness.create_card(recipient["id"])
    return {
        "request_id": request_id,
        "sender_id": sender,
        "recipient_card_serial": serial,
        "amount": "10.00",
        "pin": PIN,
    }


async def _get_balance(harness: Harness, subscriber_id: str) -> int:
    balance: int = await harness.database.fetchval(
        "SELECT balance FROM accounts WHERE owner_id = $1",
        ids.decode(ids.SUBSCRIBER, subscriber_id),
    )
    return balance


async def test_retry_with_the_rotated_key_returns_the_original_response(harness: Harness) -> None:
    sender, admin = await harness.create_subscriber(balance="100"), await harness.create_admin()
    key = await harness.create_api_key("payments:write")
    body = await _build_transfer(harness, "one", sender["id"])
    paid = await harness.post(TRANSFER_URL, json=body, auth=key)
    assert paid.status_code == 200, paid.text
    rotated = await _rotate_key(harness, key, admin)
    retried = await harness.post(TRANSFER_URL, json=body, auth=rotated)
    assert (retried.content, retried.headers["idempotent-replayed"]) == (paid.content, "true")
    assert await _get_balance(harness, sender["id"]) == 89_85  # charged once: 10.00 plus the fee


async def test_rotation_with_grace_interrupts_no_payment(
    other_process_client: httpx2.AsyncClient, harness: Harness
) -> None:
    """Both secrets work in concurrent retries across two processes, and each request pays once."""
    await harness.disable_compliance_rules()
    sender, admin = await harness.create_subscriber(balance="1000"), await harness.create_admin()
    keys = [await harness.create_api_key("payments:write")]
    bodies = [await _build_transfer(harness, f"request-{n}", sender["id"]) for n in range(20)]

    async def pay(body: dict[str, Any], process: httpx2.AsyncClient) -> httpx2.Response:
        return await process.post(TRANSFER_URL, json=body, auth=keys[-1])

    async def rotate() -> None:
        keys.append(await _rotate_key(harness, keys[-1], admin, 600))

    responses, _ = await asyncio.gather(
        asyncio.gather(
            *(
                pay(body, process)
                for body in bodies
                for process in (harness.client, other_process_client)
            )
        ),
        rotate(),
    )
    responses += [await pay(body, harness.client) for body in bodies]
    assert {response.status_code for response in responses} == {200}
    assert len({response.json()["transaction_id"] for response in responses}) == 20
    assert await _get_balance(harness, sender["id"]) == 1000_00 - 20 * 10_15
