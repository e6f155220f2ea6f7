"""Rotating a partner's signing keys and webhook secret."""

import asyncio
from typing import Any

import httpx2

from builders.participants import (
    FUND_URL,
    PARTNERS_URL,
    create_partner,
    get_partner_auth,
    get_partner_balance,
    post_webhook,
)
from harness import BearerAuth, Harness, HmacAuth, parse_error

REPLAYED_HEADER = "idempotent-replayed"


async def _create_key(harness: Harness, new: dict[str, Any]) -> HmacAuth:
    url = f"{PARTNERS_URL}/{new['partner']['id']}/keys"
    response = await harness.post(url, auth=await harness.create_admin())
    assert response.status_code == 201, response.text
    assert list(response.json()) == ["api_key_id", "hmac_secret"]
    return get_partner_auth(new | response.json())


async def _rotate_webhook_secret(
    client: httpx2.AsyncClient, new: dict[str, Any], admin: BearerAuth, grace: int | None = None
) -> dict[str, Any]:
    """Rotate the webhook secret and return the partner with the new secret."""
    response = await client.post(
        f"{PARTNERS_URL}/{new['partner']['id']}/rotate-webhook-secret",
        json={"grace_seconds": grace},
        auth=admin,
    )
    assert response.status_code == 200, response.text
    assert list(response.json()) == ["webhook_secret"]
    return new | response.json()


async def _build_request(harness: Harness, **fields: Any) -> dict[str, Any]:
    customer = await harness.create_subscriber()
    return {
        "request_id": "one",
        "subscriber_id": customer["id"],
        "partner_reference": "INV-1",
        "amount": "40.00",
        **fields,
    }


async def test_deleted_key_is_rejected_in_every_process_and_the_new_key_replays(
    other_process_client: httpx2.AsyncClient, harness: Harness
) -> None:
    partner, admin = await create_partner(harness, balance="1000"), await harness.create_admin()
    url, old = f"{PARTNERS_URL}/{partner['partner']['id']}/keys", get_partner_auth(partner)
    new = await _create_key(harness, partner)
    body = await _build_request(harness)
    paid = await other_process_client.post(FUND_URL, json=body, auth=old)
    assert paid.status_code == 200, paid.text
    response = await harness.delete(f"{url}/{old.id}", auth=admin)
    assert (response.status_code, response.content) == (204, b"")
    for process in (harness.client, other_process_client):
        assert parse_error(await process.post(FUND_URL, json=body, auth=old)) == (
            401,
            "UNAUTHORIZED",
        )
        retried = await process.post(FUND_URL, json=body, auth=new)
        assert (retried.content, retried.headers[REPLAYED_HEADER]) == (paid.content, "true")
        other = await process.post(FUND_URL, json=body | {"partner_reference": "INV-2"}, auth=new)
        assert parse_error(other) == (409, "DUPLICATE_REQUEST")
    assert await get_partner_balance(harness, partner) == "960.00"
    (entry,) = await harness.list_audit_entries(new.id, "signing_key.created")
    assert entry["changes"] == {"partner_id": [None, partner["partner"]["id"]]}
    (entry,) = await harness.list_audit_entries(old.id, "signing_key.deleted")
    assert entry["actor"]["id"] == admin.id

    # The last key can be deleted as well.
    await harness.delete(f"{url}/{new.id}", auth=admin)
    assert parse_error(await harness.post(FUND_URL, json=body, auth=new)) == (401, "UNAUTHORIZED")
    assert (await harness.get(url, auth=admin)).json()["data"] == []


async def test_keys_are_listed_newest_first_in_pages_without_secrets(harness: Harness) -> None:
    partner, admin = await create_partner(harness), await harness.create_admin()
    await create_partner(harness)
    url = f"{PARTNERS_URL}/{partner['partner']['id']}/keys"
    keys = [await _create_key(harness, partner) for _ in range(2)]
    first = (await harness.get(url, params={"limit": 2}, auth=admin)).json()
    rest = {"limit": 2, "cursor": first["next_cursor"]}
    second = (await harness.get(url, params=rest, auth=admin)).json()
    listed_ids = [key["api_key_id"] for key in first["data"] + second["data"]]
    assert listed_ids == [keys[1].id, keys[0].id, partner["api_key_id"]]
    assert set(first["data"][0]) == {
        "api_key_id", "created_at", "created_by", "created_by_name", "last_used_at",
    }  # fmt: skip
    assert second["has_more"] is False


async def test_both_webhook_secrets_verify_until_the_grace_period_ends(harness: Harness) -> None:
    old, admin = await create_partner(harness, balance="1000"), await harness.create_admin()
    customer = await harness.create_subscriber()

    async def get_status(partner: dict[str, Any], reference: str) -> int:
        body = {"reference": reference, "phone_number": customer["phone_number"], "amount": "1.00"}
        return (await post_webhook(harness.client, partner, body)).status_code

    new = await _rotate_webhook_secret(harness.client, old, admin, 60)
    assert new["webhook_secret"] != old["webhook_secret"]
    assert [await get_status(old, "1"), await get_status(new, "2")] == [200, 200]
    assert await get_status(new, "1") == 200  # redelivery under the new secret is a replay
    assert await get_partner_balance(harness, old) == "998.00"
    harness.advance_clock(seconds=60)
    assert [await get_status(old, "3"), await get_status(new, "4")] == [401, 200]

    newest = await _rotate_webhook_secret(harness.client, new, admin, 60)
    latest = await _rotate_webhook_secret(harness.client, newest, admin, 60)
    statuses = [await get_status(partner, "5") for partner in (new, newest, latest)]
    assert statuses == [401, 200, 200]
    final = await _rotate_webhook_secret(harness.client, latest, admin)
    assert [await get_status(latest, "6"), await get_status(final, "6")] == [401, 200]

    entries = await harness.list_audit_entries(
        old["partner"]["id"], "partner.webhook_secret_rotated"
    )
    assert [entry["changes"]["grace_seconds"] for entry in entries] == [
        [None, 60], [None, 60], [None, 60], [None, 0],
    ]  # fmt: skip
    assert final["webhook_secret"] not in str(entries)


async def test_concurrent_rotations_leave_two_valid_webhook_secrets(
    other_process_client: httpx2.AsyncClient, harness: Harness
) -> None:
    first, admin = await create_partner(harness, balance="1000"), await harness.create_admin()
    rotated = await asyncio.gather(
        *(
            _rotate_webhook_secret(process, first, admin, 600)
            for _ in range(5)
            for process in (harness.client, other_process_client)
        )
    )
    customer = await harness.create_subscriber()
    body = {"reference": "1", "phone_number": customer["phone_number"], "amount": "1.00"}
    accepted = [
        (await post_webhook(harness.client, item, body)).status_code == 200 for item in rotated
    ]
    assert accepted.count(True) == 2
    assert (await post_webhook(other_process_client, first, body)).status_code == 401
    assert await get_partner_balance(harness, first) == "999.00"
