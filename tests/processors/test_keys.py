"""Rotation of the signing keys of a processor."""

from typing import Any

import httpx2

from builders.participants import (
    PROCESSORS_URL,
    VALID_CREDENTIAL,
    create_processor,
    get_processor_auth,
    probe_credential,
)
from harness import Harness

UNAUTHORIZED = (401, "UNAUTHORIZED")


async def _create_key(harness: Harness, url: str, **body: Any) -> dict[str, Any]:
    response = await harness.client.post(
        f"{url}/keys", json=body or None, auth=await harness.create_admin()
    )
    assert response.status_code == 201, response.text
    assert list(response.json()) == ["api_key_id", "hmac_secret"]
    key: dict[str, Any] = response.json()
    return key


async def test_deleted_key_is_rejected_immediately_in_every_process(
    client: httpx2.AsyncClient, other_process_client: httpx2.AsyncClient, harness: Harness
) -> None:
    old = await create_processor(harness)
    url, admin = f"{PROCESSORS_URL}/{old['processor_id']}", await harness.create_admin()
    new = await _create_key(harness, url)
    assert new["hmac_secret"] != old["hmac_secret"]
    for process in (client, other_process_client):
        assert await probe_credential(process, get_processor_auth(new)) == VALID_CREDENTIAL
        assert await probe_credential(process, get_processor_auth(old)) == VALID_CREDENTIAL
    response = await client.delete(f"{url}/keys/{old['api_key_id']}", auth=admin)
    assert (response.status_code, response.content) == (204, b"")
    for process in (other_process_client, client):
        assert await probe_credential(process, get_processor_auth(old)) == UNAUTHORIZED
        assert await probe_credential(process, get_processor_auth(new)) == VALID_CREDENTIAL
    (entry,) = await harness.list_audit_entries(new["api_key_id"], "signing_key.created")
    assert entry["changes"] == {"processor_id": [None, old["processor_id"]]}
    (entry,) = await harness.list_audit_entries(old["api_key_id"], "signing_key.deleted")
    assert entry["actor"]["id"] == admin.id

    # The last key can be deleted as well.
    await client.delete(f"{url}/keys/{new['api_key_id']}", auth=admin)
    assert await probe_credential(client, get_processor_auth(new)) == UNAUTHORIZED
    assert (await client.get(f"{url}/keys", auth=admin)).json()["data"] == []


async def test_terminal_key_can_be_rotated(client: httpx2.AsyncClient, harness: Harness) -> None:
    url, admin = (
        f"{PROCESSORS_URL}/{(await create_processor(harness))['processor_id']}",
        await harness.create_admin(),
    )
    added = (await client.post(f"{url}/terminals", json={"name": "Till"}, auth=admin)).json()
    terminal_id = added["terminal"]["id"]

    async def get_newest_key_id() -> Any:
        (terminal,) = (await client.get(f"{url}/terminals", auth=admin)).json()["data"]
        return terminal["api_key_id"]

    new = await _create_key(harness, url, terminal_id=terminal_id)
    assert await get_newest_key_id() == new["api_key_id"]
    await client.delete(f"{url}/keys/{new['api_key_id']}", auth=admin)
    assert await get_newest_key_id() == added["api_key_id"]
    await client.delete(f"{url}/keys/{added['api_key_id']}", auth=admin)
    assert await get_newest_key_id() is None


async def test_keys_are_listed_newest_first_in_pages_without_secrets(
    client: httpx2.AsyncClient, harness: Harness
) -> None:
    new = await create_processor(harness)
    url, admin = f"{PROCESSORS_URL}/{new['processor_id']}", await harness.create_admin()
    await create_processor(harness)
    added = (await client.post(f"{url}/terminals", json={"name": "Till"}, auth=admin)).json()
    newest = await _create_key(harness, url)
    response = await client.get(f"{url}/keys", params={"limit": 2}, auth=admin)
    first = response.json()
    rest = {"limit": 2, "cursor": first["next_cursor"]}
    second = (await client.get(f"{url}/keys", params=rest, auth=admin)).json()
    listed = [(key["api_key_id"], key["terminal_id"]) for key in first["data"] + second["data"]]
    assert listed == [
        (newest["api_key_id"], None),
        (added["api_key_id"], added["terminal"]["id"]),
        (new["api_key_id"], None),
    ]
    assert set(first["data"][0]) == {"api_key_id", "terminal_id", "created_at"}
    assert second["has_more"] is False
