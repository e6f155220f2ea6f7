"""A processor's terminals and signing keys."""

from typing import Any

import httpx2
import pytest

from builders.participants import (
    PROCESSORS_URL,
    VALID_CREDENTIAL,
    create_processor,
    get_processor_auth,
    probe_credential,
)
from harness import Harness, parse_error
from tapgate_client import ids
from tapgate_client.clock import format_rfc3339

TERMINAL_BLOCKED = (403, "TERMINAL_BLOCKED")


async def _create_processor(harness: Harness) -> str:
    """Create a processor and return its terminals URL."""
    return f"{PROCESSORS_URL}/{(await create_processor(harness))['processor_id']}/terminals"


async def _add_terminal(
    harness: Harness, terminals_url: str, name: str = "Till 1"
) -> dict[str, Any]:
    response = await harness.post(
        terminals_url, json={"name": name}, auth=await harness.create_admin()
    )
    assert response.status_code == 201, response.text
    body: dict[str, Any] = response.json()
    return body


async def test_new_terminal_gets_its_own_key(harness: Harness) -> None:
    terminals_url = await _create_processor(harness)
    added = await _add_terminal(harness, terminals_url)
    assert list(added) == ["terminal", "api_key_id", "hmac_secret"]
    terminal = added["terminal"]
    assert terminal == {
        "id": terminal["id"],
        "processor_id": terminals_url.split("/")[4],
        "name": "Till 1",
        "status": "active",
        "api_key_id": added["api_key_id"],
        "last_seen_at": None,
        "created_at": terminal["created_at"],
    }
    assert terminal["id"].startswith("ter_")
    assert await probe_credential(harness.client, get_processor_auth(added)) == VALID_CREDENTIAL
    key = await harness.services.authenticator.hmac_keys.find(added["api_key_id"].encode())
    assert key is not None
    assert key.principal.terminal_id == ids.decode(ids.TERMINAL, terminal["id"])
    (entry,) = await harness.list_audit_entries(terminal["id"], "terminal.created")
    assert entry["changes"]["processor_id"] == [None, terminal["processor_id"]]
    assert added["hmac_secret"] not in str(entry)


async def test_terminals_are_listed_newest_first_in_pages(harness: Harness) -> None:
    terminals_url, admin = await _create_processor(harness), await harness.create_admin()
    await _add_terminal(harness, await _create_processor(harness), "another's")
    created = [
        (await _add_terminal(harness, terminals_url, name))["terminal"]
        for name in ("one", "two", "three")
    ]
    last_seen_at = harness.services.clock()
    await harness.database.execute(
        "UPDATE terminals SET last_seen_at = $2 WHERE id = $1",
        ids.decode(ids.TERMINAL, created[1]["id"]),
        last_seen_at,
    )
    created[1]["last_seen_at"] = format_rfc3339(last_seen_at)
    first = (await harness.get(terminals_url, params={"limit": 2}, auth=admin)).json()
    assert first["data"] == [created[2], created[1]]
    rest = {"limit": 2, "cursor": first["next_cursor"]}
    second = (await harness.get(terminals_url, params=rest, auth=admin)).json()
    assert second == {"data": [created[0]], "has_more": False, "next_cursor": None}


async def test_key_of_a_blocked_terminal_is_rejected_immediately_in_every_process(
    other_process_client: httpx2.AsyncClient, harness: Harness
) -> None:
    terminals_url, admin = await _create_processor(harness), await harness.create_admin()
    target = await _add_terminal(harness, terminals_url)
    other = await _add_terminal(harness, terminals_url)
    url = f"{terminals_url}/{target['terminal']['id']}"
    for verb, status, expected in (
        ("block", "blocked", TERMINAL_BLOCKED),
        ("unblock", "active", VALID_CREDENTIAL),
        ("block", "blocked", TERMINAL_BLOCKED),
    ):
        response = await harness.post(f"{url}/{verb}", json={"reason": "stolen"}, auth=admin)
        assert response.status_code == 200, response.text
        assert list(response.json()) == ["success", "message", "terminal"]
        assert response.json()["terminal"] == target["terminal"] | {"status": status}
        for process in (other_process_client, harness.client):
            assert await probe_credential(process, get_processor_auth(target)) == expected
            assert await probe_credential(process, get_processor_auth(other)) == VALID_CREDENTIAL
    first, second = await harness.list_audit_entries(target["terminal"]["id"], "terminal.blocked")
    assert first["changes"] == second["changes"] == {"status": ["active", "blocked"]}
    assert first["reason"] == "stolen"


async def test_invalid_terminal_transition_is_rejected(harness: Harness) -> None:
    terminals_url, admin = await _create_processor(harness), await harness.create_admin()
    url = f"{terminals_url}/{(await _add_terminal(harness, terminals_url))['terminal']['id']}"
    assert parse_error(await harness.post(f"{url}/unblock", auth=admin)) == (409, "NOT_BLOCKED")
    await harness.post(f"{url}/block", auth=admin)
    assert parse_error(await harness.post(f"{url}/block", auth=admin)) == (409, "ALREADY_BLOCKED")


@pytest.mark.parametrize(("body", "status"), [({}, 400), ({"name": 1}, 400), ({"name": ""}, 422)])
async def test_terminal_requires_a_name(
    harness: Harness, body: dict[str, object], status: int
) -> None:
    response = await harness.post(
        await _create_processor(harness), json=body, auth=await harness.create_admin()
    )
    assert response.status_code == status


UNAUTHORIZED = (401, "UNAUTHORIZED")


async def _create_key(harness: Harness, url: str, **body: Any) -> dict[str, Any]:
    response = await harness.post(
        f"{url}/keys", json=body or None, auth=await harness.create_admin()
    )
    assert response.status_code == 201, response.text
    assert list(response.json()) == ["api_key_id", "hmac_secret"]
    key: dict[str, Any] = response.json()
    return key


async def test_deleted_key_is_rejected_immediately_in_every_process(
    other_process_client: httpx2.AsyncClient, harness: Harness
) -> None:
    old = await create_processor(harness)
    url, admin = f"{PROCESSORS_URL}/{old['processor_id']}", await harness.create_admin()
    new = await _create_key(harness, url)
    assert new["hmac_secret"] != old["hmac_secret"]
    for process in (harness.client, other_process_client):
        assert await probe_credential(process, get_processor_auth(new)) == VALID_CREDENTIAL
        assert await probe_credential(process, get_processor_auth(old)) == VALID_CREDENTIAL
    response = await harness.delete(f"{url}/keys/{old['api_key_id']}", auth=admin)
    assert (response.status_code, response.content) == (204, b"")
    for process in (other_process_client, harness.client):
        assert await probe_credential(process, get_processor_auth(old)) == UNAUTHORIZED
        assert await probe_credential(process, get_processor_auth(new)) == VALID_CREDENTIAL
    (entry,) = await harness.list_audit_entries(new["api_key_id"], "signing_key.created")
    assert entry["changes"] == {"processor_id": [None, old["processor_id"]]}
    (entry,) = await harness.list_audit_entries(old["api_key_id"], "signing_key.deleted")
    assert entry["actor"]["id"] == admin.id

    # The last key can be deleted as well.
    await harness.delete(f"{url}/keys/{new['api_key_id']}", auth=admin)
    assert await probe_credential(harness.client, get_processor_auth(new)) == UNAUTHORIZED
    assert (await harness.get(f"{url}/keys", auth=admin)).json()["data"] == []


async def test_terminal_key_can_be_rotated(harness: Harness) -> None:
    url = f"{PROCESSORS_URL}/{(await create_processor(harness))['processor_id']}"
    admin = await harness.create_admin()
    added = (await harness.post(f"{url}/terminals", json={"name": "Till"}, auth=admin)).json()
    terminal_id = added["terminal"]["id"]

    async def get_newest_key_id() -> Any:
        (terminal,) = (await harness.get(f"{url}/terminals", auth=admin)).json()["data"]
        return terminal["api_key_id"]

    new = await _create_key(harness, url, terminal_id=terminal_id)
    assert await get_newest_key_id() == new["api_key_id"]
    await harness.delete(f"{url}/keys/{new['api_key_id']}", auth=admin)
    assert await get_newest_key_id() == added["api_key_id"]
    await harness.delete(f"{url}/keys/{added['api_key_id']}", auth=admin)
    assert await get_newest_key_id() is None


async def test_keys_are_listed_newest_first_in_pages_without_secrets(harness: Harness) -> None:
    new = await create_processor(harness)
    url, admin = f"{PROCESSORS_URL}/{new['processor_id']}", await harness.create_admin()
    await create_processor(harness)
    added = (await harness.post(f"{url}/terminals", json={"name": "Till"}, auth=admin)).json()
    newest = await _create_key(harness, url)
    response = await harness.get(f"{url}/keys", params={"limit": 2}, auth=admin)
    first = response.json()
    rest = {"limit": 2, "cursor": first["next_cursor"]}
    second = (await harness.get(f"{url}/keys", params=rest, auth=admin)).json()
    keys = first["data"] + second["data"]
    listed = [(key["api_key_id"], key["terminal_id"], key["terminal_name"]) for key in keys]
    assert listed == [
        (newest["api_key_id"], None, None),
        (added["api_key_id"], added["terminal"]["id"], "Till"),
        (new["api_key_id"], None, None),
    ]
    assert set(keys[0]) == {
        "api_key_id", "terminal_id", "terminal_name", "created_at", "created_by",
        "created_by_name", "last_used_at",
    }  # fmt: skip
    assert second["has_more"] is False


async def test_last_use_of_a_key_is_recorded(harness: Harness) -> None:
    new, admin = await create_processor(harness), await harness.create_admin()
    url = f"{PROCESSORS_URL}/{new['processor_id']}/keys"

    async def get_last_use() -> str | None:
        await harness.services.authenticator.hmac_keys.last_used.flush()
        (key,) = (await harness.get(url, auth=admin)).json()["data"]
        last_use: str | None = key["last_used_at"]
        return last_use

    before = format_rfc3339(harness.services.clock())
    forged = get_processor_auth({**new, "hmac_secret": "x" * 43})
    assert await probe_credential(harness.client, forged) != VALID_CREDENTIAL
    assert await get_last_use() is None
    assert await probe_credential(harness.client, get_processor_auth(new)) == VALID_CREDENTIAL
    assert before <= (await get_last_use() or "") <= format_rfc3339(harness.services.clock())
