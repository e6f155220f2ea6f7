"""The signing keys and the webhook secret of a partner are rotated."""

import asyncio
from typing import Any

import httpx2
import pytest

from partners.stage import FUND, UNKNOWN, URL, balance_of, created, deliver, said, signed
from tapgate import ids
from world import Bearer, RequestSignature, World

REPLAYED = "idempotent-replayed"


async def _new_key(world: World, new: dict[str, Any]) -> RequestSignature:
    url = f"{URL}/{new['partner']['id']}/keys"
    response = await world.client.post(url, auth=await world.admin())
    assert response.status_code == 201, response.text
    assert list(response.json()) == ["api_key_id", "hmac_secret"]
    return signed(new | response.json())


async def _rotated(
    client: httpx2.AsyncClient, new: dict[str, Any], admin: Bearer, grace: int | None = None
) -> dict[str, Any]:
    """The partner with its new webhook secret."""
    response = await client.post(
        f"{URL}/{new['partner']['id']}/rotate-webhook-secret",
        json={"grace_seconds": grace},
        auth=admin,
    )
    assert response.status_code == 200, response.text
    assert list(response.json()) == ["webhook_secret"]
    return new | response.json()


async def _order(world: World, **fields: Any) -> dict[str, Any]:
    customer = await world.subscriber()
    return {
        "request_id": "one",
        "subscriber_id": customer["id"],
        "partner_reference": "INV-1",
        "amount": "40.00",
        **fields,
    }


async def test_key_is_rotated_and_the_old_one_refused_in_every_process(
    client: httpx2.AsyncClient, other_client: httpx2.AsyncClient, world: World
) -> None:
    partner, admin = await created(world, balance="1000"), await world.admin()
    url, old = f"{URL}/{partner['partner']['id']}/keys", signed(partner)
    new = await _new_key(world, partner)
    order = await _order(world)
    paid = await other_client.post(FUND, json=order, auth=old)
    assert paid.status_code == 200, paid.text
    response = await client.delete(f"{url}/{old.id}", auth=admin)
    assert (response.status_code, response.content) == (204, b"")
    for process in (client, other_client):
        assert said(await process.post(FUND, json=order, auth=old)) == (401, "UNAUTHORIZED")
        retried = await process.post(FUND, json=order, auth=new)
        assert (retried.content, retried.headers[REPLAYED]) == (paid.content, "true")
        other = await process.post(FUND, json=order | {"partner_reference": "INV-2"}, auth=new)
        assert said(other) == (409, "DUPLICATE_REQUEST")
    assert await balance_of(world, partner) == "960.00"
    (entry,) = await world.audit(new.id, "signing_key.created")
    assert entry["changes"] == {"partner_id": [None, partner["partner"]["id"]]}
    (entry,) = await world.audit(old.id, "signing_key.deleted")
    assert entry["actor"]["id"] == admin.id

    # The last one can be deleted as well.
    await client.delete(f"{url}/{new.id}", auth=admin)
    assert said(await client.post(FUND, json=order, auth=new)) == (401, "UNAUTHORIZED")
    assert (await client.get(url, auth=admin)).json()["data"] == []


async def test_keys_are_listed_newest_first_in_pages_without_secrets(
    client: httpx2.AsyncClient, world: World
) -> None:
    partner, admin = await created(world), await world.admin()
    await created(world)
    url = f"{URL}/{partner['partner']['id']}/keys"
    keys = [await _new_key(world, partner) for _ in range(2)]
    first = (await client.get(url, params={"limit": 2}, auth=admin)).json()
    rest = {"limit": 2, "cursor": first["next_cursor"]}
    second = (await client.get(url, params=rest, auth=admin)).json()
    shown = [key["api_key_id"] for key in first["data"] + second["data"]]
    assert shown == [keys[1].id, keys[0].id, partner["api_key_id"]]
    assert set(first["data"][0]) == {"api_key_id", "created_at"}
    assert second["has_more"] is False


async def test_key_of_another_owner_is_not_found(client: httpx2.AsyncClient, world: World) -> None:
    partner, admin = await created(world), await world.admin()
    url = f"{URL}/{partner['partner']['id']}/keys"
    others = (await created(world))["api_key_id"], (await world.processor()).id
    for key in (*others, ids.encode(ids.KEY, 1), "key_1", "é"):
        assert said(await client.delete(f"{url}/{key}", auth=admin)) == (404, "NOT_FOUND")


@pytest.mark.parametrize("partner", UNKNOWN)
async def test_unknown_partner_is_not_found(
    client: httpx2.AsyncClient, world: World, partner: str
) -> None:
    admin, url = await world.admin(), f"{URL}/{partner}"
    for response in (
        await client.post(f"{url}/keys", auth=admin),
        await client.get(f"{url}/keys", auth=admin),
        await client.delete(f"{url}/keys/{ids.encode(ids.KEY, 1)}", auth=admin),
        await client.post(f"{url}/rotate-webhook-secret", auth=admin),
    ):
        assert said(response) == (404, "PARTNER_NOT_FOUND")


async def test_both_webhook_secrets_verify_until_the_grace_period_ends(
    client: httpx2.AsyncClient, world: World
) -> None:
    old, admin = await created(world, balance="1000"), await world.admin()
    customer = await world.subscriber()

    async def status(partner: dict[str, Any], reference: str) -> int:
        body = {
            "reference": reference,
            "phone_number": customer["phone_number"],
            "amount": "1.00",
        }
        return (await deliver(client, partner, body)).status_code

    new = await _rotated(client, old, admin, 60)
    assert new["webhook_secret"] != old["webhook_secret"]
    assert [await status(old, "1"), await status(new, "2")] == [200, 200]
    assert await status(new, "1") == 200  # delivered again under the new secret: a replay
    assert await balance_of(world, old) == "998.00"
    world.forward(seconds=60)
    assert [await status(old, "3"), await status(new, "4")] == [401, 200]

    newest = await _rotated(client, new, admin, 60)
    latest = await _rotated(client, newest, admin, 60)
    statuses = [await status(one, "5") for one in (new, newest, latest)]
    assert statuses == [401, 200, 200]
    final = await _rotated(client, latest, admin)
    assert [await status(latest, "6"), await status(final, "6")] == [401, 200]

    entries = await world.audit(old["partner"]["id"], "partner.webhook_secret_rotated")
    assert [entry["changes"]["grace_seconds"] for entry in entries] == [
        [None, 60], [None, 60], [None, 60], [None, 0],
    ]  # fmt: skip
    assert final["webhook_secret"] not in str(entries)


@pytest.mark.parametrize("grace", [-1, 86_401])
async def test_grace_period_out_of_range_is_refused(
    client: httpx2.AsyncClient, world: World, grace: int
) -> None:
    partner = await created(world)
    response = await client.post(
        f"{URL}/{partner['partner']['id']}/rotate-webhook-secret",
        json={"grace_seconds": grace},
        auth=await world.admin(),
    )
    assert said(response) == (422, "VALIDATION_FAILED")
    assert list(response.json()["details"]["fields"]) == ["grace_seconds"]


async def test_parallel_rotations_leave_two_valid_webhook_secrets(
    client: httpx2.AsyncClient, other_client: httpx2.AsyncClient, world: World
) -> None:
    first, admin = await created(world, balance="1000"), await world.admin()
    rotated = await asyncio.gather(
        *(
            _rotated(process, first, admin, 600)
            for _ in range(5)
            for process in (client, other_client)
        )
    )
    customer = await world.subscriber()
    body = {"reference": "1", "phone_number": customer["phone_number"], "amount": "1.00"}
    accepted = [(await deliver(client, one, body)).status_code == 200 for one in rotated]
    assert accepted.count(True) == 2
    assert (await deliver(other_client, first, body)).status_code == 401
    assert await balance_of(world, first) == "999.00"
