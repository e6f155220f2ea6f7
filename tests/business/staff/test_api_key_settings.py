"""API key settings: rate limit, allowed IP addresses, expiry, updates and rotation."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from ipaddress import ip_network
from typing import Any

import httpx2
import pytest

from builders.api_keys import KEYS_URL, NEW_KEY, get_key_status
from builders.auth import Headers, ListAuditEntries
from cases import each
from drivers.in_process import AppTransport
from tapgate.http.api.services import Services
from tapgate.server.gateway import create_app

CARDS_URL = "/api/v1/cards"
ClientAtAddress = Callable[[str], httpx2.AsyncClient]


def build_headers(key: str) -> Headers:
    return {"Authorization": f"Bearer {key}"}


async def create_key(client: httpx2.AsyncClient, ada: Headers, **fields: Any) -> dict[str, Any]:
    new = {"name": "Shop", "scopes": ["cards:read"], **fields}
    response = await client.post(KEYS_URL, json=new, headers=ada)
    assert response.status_code == 201, response.text
    return dict(response.json())


async def update_key(
    client: httpx2.AsyncClient, ada: Headers, key: dict[str, Any], **fields: Any
) -> dict[str, Any]:
    response = await client.put(f"{KEYS_URL}/{key['id']}", json=fields, headers=ada)
    assert response.status_code == 200, response.text
    return dict(response.json())


@pytest.fixture
async def client_at(services: Services) -> AsyncIterator[ClientAtAddress]:
    """Yield a function that returns a client with the given IP address."""
    app = create_app(services)
    async with AsyncExitStack() as stack:

        def create_client(address: str) -> httpx2.AsyncClient:
            transport = AppTransport(app, address)
            client = httpx2.AsyncClient(transport=transport, base_url="http://gateway")
            stack.push_async_callback(client.aclose)
            return client

        yield create_client


async def test_new_key_uses_the_platform_defaults(client: httpx2.AsyncClient, ada: Headers) -> None:
    key = await create_key(client, ada)
    for field in ("rate_limit", "burst", "allowed_ips", "expires_at", "last_used_at"):
        assert key[field] is None
    response = await client.get(CARDS_URL, headers=build_headers(key["key"]))
    assert response.headers["x-ratelimit-limit"] == "100000"


async def test_settings_are_changed_and_audited(
    client: httpx2.AsyncClient, ada: Headers, list_audit_entries: ListAuditEntries
) -> None:
    key = await create_key(client, ada)
    fields = {
        "name": "Kiosk",
        "scopes": ["balance:read", "cards:read", "balance:read"],
        "rate_limit": 5,
        "burst": 7,
        "allowed_ips": ["203.0.113.0/24", "2001:DB8::/32", "198.51.100.7", "198.51.100.7/32"],
        "expires_at": "2999-01-31T12:00:00Z",
    }
    record = await update_key(client, ada, key, **fields)
    assert record == {
        "id": key["id"],
        "prefix": key["prefix"],
        "created_at": key["created_at"],
        "last_used_at": None,
        "name": "Kiosk",
        "scopes": ["balance:read", "cards:read"],
        "rate_limit": 5,
        "burst": 7,
        "allowed_ips": ["203.0.113.0/24", "2001:db8::/32", "198.51.100.7/32"],
        "expires_at": "2999-01-31T12:00:00.000Z",
        "created_by": key["created_by"],
        "created_by_name": "Administrator",
        "rotated_by": None,
        "rotated_by_name": None,
        "rotated_at": None,
        "owner_id": None,
    }
    assert (await client.get(KEYS_URL, headers=ada)).json()["data"] == [record]
    (entry,) = await list_audit_entries("api_key.updated")
    assert entry["resource_id"] == key["id"]
    assert set(entry["changes"]) == set(fields)
    assert entry["changes"]["rate_limit"] == [None, 5]

    assert await update_key(client, ada, key, name="Kiosk", rate_limit=None) == record
    count = len(await list_audit_entries("api_key.updated"))
    assert count == 1  # the second update changed nothing

    reset = {"rate_limit": "", "burst": "", "allowed_ips": [], "expires_at": ""}
    record = await update_key(client, ada, key, **reset)
    assert [record[field] for field in reset] == [None] * 4
    assert record["name"] == "Kiosk"


@each(
    "field, value, reported_field",
    [
        ("name", "", "name"),
        ("scopes", [], "scopes"),
        ("scopes", ["everything"], "scopes[0]"),
        ("rate_limit", 0, "rate_limit"),
        ("rate_limit", 1_000_001, "rate_limit"),
        ("burst", -1, "burst"),
        ("allowed_ips", ["203.0.113.7/24"], "allowed_ips[0]"),
        ("allowed_ips", ["203.0.113.0/24", "anywhere"], "allowed_ips[1]"),
        ("allowed_ips", ["203.0.113.0/33"], "allowed_ips[0]"),
        ("allowed_ips", ["fe80::%eth0/64"], "allowed_ips[0]"),
        ("allowed_ips", ["fe80::1%eth0"], "allowed_ips[0]"),
        ("allowed_ips", ["::ffff:203.0.113.0/120"], "allowed_ips[0]"),
        ("allowed_ips", [""], "allowed_ips[0]"),
        ("allowed_ips", [f"10.0.0.{n}" for n in range(101)], "allowed_ips"),
        ("expires_at", "2020-01-31T12:00:00Z", "expires_at"),
        ("expires_at", "tomorrow", "expires_at"),
    ],
)
async def test_invalid_setting_is_rejected_with_its_field_name(
    client: httpx2.AsyncClient, ada: Headers, field: str, value: object, reported_field: str
) -> None:
    key = await create_key(client, ada)
    for response in (
        await client.post(KEYS_URL, json=NEW_KEY | {field: value}, headers=ada),
        await client.put(f"{KEYS_URL}/{key['id']}", json={field: value}, headers=ada),
    ):
        assert (response.status_code, response.json()["code"]) == (422, "VALIDATION_FAILED")
        assert list(response.json()["details"]["fields"]) == [reported_field]


async def test_expired_key_can_be_edited_with_its_expiry_unchanged(
    services: Services, client: httpx2.AsyncClient, ada: Headers
) -> None:
    key = await create_key(client, ada, expires_at="2999-01-31T12:00:00.123456Z")
    await services.database.execute(
        "UPDATE api_keys SET expires_at = expires_at - interval '979 years'"
    )
    expired = (await update_key(client, ada, key, name="Kiosk"))["expires_at"]
    assert expired.startswith("2020-")
    record = await update_key(client, ada, key, name="Stall", expires_at=expired)
    assert (record["name"], record["expires_at"]) == ("Stall", expired)
    other = {"expires_at": "2020-02-01T12:00:00Z"}
    response = await client.put(f"{KEYS_URL}/{key['id']}", json=other, headers=ada)
    assert (response.status_code, list(response.json()["details"]["fields"])) == (422, list(other))


@pytest.mark.parametrize("field", ["rate_limit", "burst"])
async def test_number_given_as_a_string_is_rejected(
    client: httpx2.AsyncClient, ada: Headers, field: str
) -> None:
    key = await create_key(client, ada)
    response = await client.put(f"{KEYS_URL}/{key['id']}", json={field: "5"}, headers=ada)
    assert (response.status_code, list(response.json()["details"]["fields"])) == (422, [field])


async def test_changed_scopes_apply_in_every_process(
    client: httpx2.AsyncClient, other_process_client: httpx2.AsyncClient, ada: Headers
) -> None:
    key = await create_key(client, ada)
    headers = build_headers(key["key"])
    assert (await other_process_client.get(CARDS_URL, headers=headers)).status_code == 200
    await update_key(client, ada, key, scopes=["balance:read"])
    for process in (other_process_client, client):
        assert (await process.get(CARDS_URL, headers=headers)).status_code == 403


async def test_concurrent_updates_of_different_fields_are_all_kept(
    client: httpx2.AsyncClient, other_process_client: httpx2.AsyncClient, ada: Headers
) -> None:
    key = await create_key(client, ada)
    await asyncio.gather(
        update_key(client, ada, key, name="Kiosk"),
        update_key(other_process_client, ada, key, rate_limit=9),
        update_key(client, ada, key, burst=8),
        update_key(other_process_client, ada, key, allowed_ips=["203.0.113.0/24"]),
    )
    (record,) = (await client.get(KEYS_URL, headers=ada)).json()["data"]
    assert (record["name"], record["rate_limit"], record["burst"]) == ("Kiosk", 9, 8)
    assert record["allowed_ips"] == ["203.0.113.0/24"]


async def test_key_is_rejected_from_addresses_that_are_not_allowed(
    client: httpx2.AsyncClient,
    client_at: ClientAtAddress,
    ada: Headers,
    list_audit_entries: ListAuditEntries,
) -> None:
    key = await create_key(client, ada, allowed_ips=["203.0.113.0/24", "2001:db8::/32"])
    headers = build_headers(key["key"])
    for address in ("203.0.113.7", "::ffff:203.0.113.7", "2001:db8::7"):
        assert (await client_at(address).get(CARDS_URL, headers=headers)).status_code == 200
    rejected = await client_at("198.51.100.7").get(CARDS_URL, headers=headers)
    assert (rejected.status_code, rejected.json()["code"]) == (403, "FORBIDDEN")
    (entry,) = await list_audit_entries("access.denied")
    assert (entry["actor"]["id"], entry["ip"]) == (key["id"], "198.51.100.7")
    await update_key(client, ada, key, allowed_ips=[])
    assert (await client_at("198.51.100.7").get(CARDS_URL, headers=headers)).status_code == 200


async def test_client_address_is_taken_from_trusted_proxies_only(
    services: Services, client: httpx2.AsyncClient, ada: Headers
) -> None:
    key = await create_key(client, ada, allowed_ips=["203.0.113.0/24"])
    services.settings = services.settings.replace(trusted_proxies=(ip_network("10.0.0.0/8"),))
    app = create_app(services)

    async def get_status(peer: str, forwarded: str) -> int:
        transport = AppTransport(app, peer)
        async with httpx2.AsyncClient(transport=transport, base_url="http://gateway") as proxied:
            headers = build_headers(key["key"]) | {"X-Forwarded-For": forwarded}
            return (await proxied.get(CARDS_URL, headers=headers)).status_code

    assert await get_status("10.0.0.1", "203.0.113.7") == 200
    assert await get_status("10.0.0.1", "203.0.113.7, 198.51.100.7") == 403
    assert await get_status("198.51.100.7", "203.0.113.7") == 403  # not a trusted proxy


async def test_rejected_addresses_do_not_consume_the_rate_limit_of_the_key(
    client: httpx2.AsyncClient, client_at: ClientAtAddress, ada: Headers
) -> None:
    key = await create_key(client, ada, rate_limit=1, burst=1, allowed_ips=["203.0.113.0/24"])
    for _ in range(3):
        rejected = await client_at("198.51.100.7").get(CARDS_URL, headers=build_headers(key["key"]))
        assert rejected.status_code == 403
    response = await client_at("203.0.113.7").get(CARDS_URL, headers=build_headers(key["key"]))
    assert response.status_code == 200


async def test_rate_limit_of_a_key_is_shared_by_all_processes(
    client: httpx2.AsyncClient,
    other_process_client: httpx2.AsyncClient,
    ada: Headers,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    key = await create_key(client, ada, rate_limit=1, burst=3)
    unlimited_key = await create_key(client, ada)
    headers = build_headers(key["key"])
    monkeypatch.setattr(
        time, "monotonic_ns", lambda: 7_000_000_000
    )  # the token bucket never refills
    responses = [
        await process.get(CARDS_URL, headers=headers)
        for process in (client, other_process_client) * 2
    ]
    assert [response.status_code for response in responses] == [200, 200, 200, 429]
    assert {response.headers["x-ratelimit-limit"] for response in responses} == {"1"}
    remaining = [response.headers["x-ratelimit-remaining"] for response in responses]
    assert remaining == ["2", "1", "0", "0"]
    assert responses[-1].json()["code"] == "RATE_LIMITED"
    assert responses[-1].headers["retry-after"] == "1"
    unlimited = await client.get(CARDS_URL, headers=build_headers(unlimited_key["key"]))
    assert unlimited.headers["x-ratelimit-limit"] == "100000"
    await update_key(client, ada, key, rate_limit=50, burst="")
    for process in (other_process_client, client):
        response = await process.get(CARDS_URL, headers=headers)
        assert (response.status_code, response.headers["x-ratelimit-limit"]) == (200, "50")


async def test_last_use_is_recorded_only_for_accepted_requests(
    client: httpx2.AsyncClient, client_at: ClientAtAddress, services: Services, ada: Headers
) -> None:
    key = await create_key(client, ada, allowed_ips=["203.0.113.0/24"])

    async def get_last_used() -> str | None:
        await services.authenticator.api_keys.last_used.flush()
        (record,) = (await client.get(KEYS_URL, headers=ada)).json()["data"]
        return str(record["last_used_at"]) if record["last_used_at"] else None

    await client_at("198.51.100.7").get(CARDS_URL, headers=build_headers(key["key"]))
    assert await get_last_used() is None
    await client_at("203.0.113.7").get(CARDS_URL, headers=build_headers(key["key"]))
    used = await get_last_used()
    assert used is not None
    assert used >= key["created_at"]


async def test_concurrent_rotations_leave_one_current_key(
    client: httpx2.AsyncClient,
    other_process_client: httpx2.AsyncClient,
    ada: Headers,
    list_audit_entries: ListAuditEntries,
) -> None:
    key = await create_key(client, ada)
    responses = await asyncio.gather(
        *(
            process.post(
                f"{KEYS_URL}/{key['id']}/rotate", json={"grace_seconds": grace}, headers=ada
            )
            for grace in (0, 600)
            for process in (client, other_process_client) * 2
        )
    )
    assert {response.status_code for response in responses} == {200}
    assert {response.json()["id"] for response in responses} == {key["id"]}
    secrets = [response.json()["key"] for response in responses]
    assert len(set(secrets)) == len(secrets) == 8
    for process in (client, other_process_client):
        assert await get_key_status(process, key["key"]) == 401
        accepted = [secret for secret in secrets if await get_key_status(process, secret) == 403]
        assert 1 <= len(accepted) <= 2
    (record,) = (await client.get(KEYS_URL, headers=ada)).json()["data"]
    assert [secret.startswith(record["prefix"]) for secret in accepted].count(True) == 1
    assert len(await list_audit_entries("api_key.rotated")) == 8


async def test_rotation_shows_the_new_key_once_and_keeps_the_settings(
    client: httpx2.AsyncClient, ada: Headers, list_audit_entries: ListAuditEntries
) -> None:
    key = await create_key(client, ada, rate_limit=5, allowed_ips=["203.0.113.0/24"])
    response = await client.post(f"{KEYS_URL}/{key['id']}/rotate", headers=ada)
    assert response.status_code == 200, response.text
    rotated = response.json()
    assert rotated["key"].startswith(rotated["prefix"])
    assert rotated["key"] != key["key"]
    same = ("id", "name", "scopes", "rate_limit", "allowed_ips", "created_at")
    assert [rotated[field] for field in same] == [key[field] for field in same]
    listed = (await client.get(KEYS_URL, headers=ada)).json()["data"]
    assert rotated["key"] not in str(listed)
    (entry,) = await list_audit_entries("api_key.rotated")
    assert entry["changes"] == {
        "prefix": [key["prefix"], rotated["prefix"]],
        "grace_seconds": [None, 0],
    }
    assert rotated["key"] not in str(entry)


@pytest.mark.parametrize("grace", [-1, 86_401])
async def test_grace_period_out_of_range_is_rejected(
    client: httpx2.AsyncClient, ada: Headers, grace: int
) -> None:
    key = await create_key(client, ada)
    response = await client.post(
        f"{KEYS_URL}/{key['id']}/rotate", json={"grace_seconds": grace}, headers=ada
    )
    assert (response.status_code, response.json()["code"]) == (422, "VALIDATION_FAILED")
    assert list(response.json()["details"]["fields"]) == ["grace_seconds"]
    assert await get_key_status(client, key["key"]) == 403
