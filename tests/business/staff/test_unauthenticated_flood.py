"""Callers without a valid credential cause a bounded amount of work."""

import asyncio
import time
from collections.abc import AsyncIterator
from pathlib import Path

import httpx2
import pytest

from drivers.in_process import AppTransport
from harness import Harness, HmacAuth
from tapgate.core.settings import Settings, load_settings
from tapgate.runtime.store.database import Database
from tapgate.server.gateway import create_app, open_gateway_services
from tapgate.server.gateway_installation import create_first_admin

BURST_LIMIT = 20
FLOOD_REQUESTS = 60


@pytest.fixture
def settings(tmp_path: Path, database_url: str) -> Settings:
    """Return settings with a small burst. `_freeze_rate_limits` keeps it from refilling."""
    return load_settings(
        {
            "TAPGATE_DATA_DIR": str(tmp_path),
            "TAPGATE_DATABASE_URL": database_url,
            "TAPGATE_RATE_LIMIT": "1",
            "TAPGATE_RATE_BURST": str(BURST_LIMIT),
        }
    )


@pytest.fixture(autouse=True)
def _freeze_rate_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Freeze the rate limiter's clock, so that buckets do not refill during a test."""
    now = time.monotonic_ns()
    monkeypatch.setattr(time, "monotonic_ns", lambda: now)


@pytest.fixture
def executed_sql(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Record the SQL of every `fetchrow` call in this process."""
    statements: list[str] = []
    fetchrow = Database.fetchrow

    async def record_and_fetch(self: Database, sql: str, *arguments: object) -> object:
        statements.append(sql)
        return await fetchrow(self, sql, *arguments)

    monkeypatch.setattr(Database, "fetchrow", record_and_fetch)
    return statements


def build_unknown_key_headers() -> dict[str, str]:
    return {"Authorization": "Bearer svc_test_0123456789012345678901234567890123456789012"}


@pytest.mark.parametrize("kind", ["api key", "signature", "ended session", "console session"])
async def test_unknown_credentials_reach_the_database_only_within_the_rate_limit(
    harness: Harness, executed_sql: list[str], kind: str
) -> None:
    path, headers, caller = "/api/v1/subscribers", {}, None
    if kind == "api key":
        headers = build_unknown_key_headers()
    elif kind == "signature":
        caller = HmacAuth("key_0123456789abc", "secret")
    else:
        caller = await harness.create_admin("S")
        ended = await harness.post("/api/v1/admin/logout", auth=caller)
        assert ended.status_code == 204
        if kind == "console session":
            path, headers = "/console", {"Cookie": f"tapgate_session={caller.credential}"}
            caller = None
    executed_sql.clear()
    responses = [
        await harness.get(path, headers=headers, auth=caller) for _ in range(FLOOD_REQUESTS)
    ]
    rejected = [response for response in responses if response.status_code == 429]
    assert len(rejected) == FLOOD_REQUESTS - BURST_LIMIT
    assert all(int(response.headers["retry-after"]) > 0 for response in rejected)
    lookups = [sql for sql in executed_sql if "FROM branding" not in sql]
    assert len(lookups) == BURST_LIMIT
    assert len(executed_sql) - len(lookups) <= 1  # the sign-in page's branding is cached


async def test_concurrent_guesses_do_not_exceed_the_rate_limit(
    client: httpx2.AsyncClient, executed_sql: list[str]
) -> None:
    guesses = [
        client.get("/api/v1/subscribers", headers=build_unknown_key_headers())
        for _ in range(FLOOD_REQUESTS)
    ]
    responses = await asyncio.gather(*guesses)
    expected = [401] * BURST_LIMIT + [429] * (FLOOD_REQUESTS - BURST_LIMIT)
    assert sorted(response.status_code for response in responses) == expected
    assert len(executed_sql) == BURST_LIMIT


async def test_valid_callers_from_the_same_address_are_served_during_a_flood(
    harness: Harness,
) -> None:
    key, admin = await harness.create_api_key("subscribers:read"), await harness.create_admin("S")
    for caller in (key, admin):
        assert (await harness.get("/api/v1/subscribers", auth=caller)).status_code == 200
    for _ in range(FLOOD_REQUESTS):
        await harness.get("/api/v1/subscribers", headers=build_unknown_key_headers())
    for caller in (key, admin):
        assert (await harness.get("/api/v1/subscribers", auth=caller)).status_code == 200
    # Also after another session ends, which clears the session cache.
    another = await harness.create_admin("C")
    assert (await harness.post("/api/v1/admin/logout", auth=another)).status_code in (204, 429)
    assert (await harness.get("/api/v1/subscribers", auth=admin)).status_code == 200


async def test_valid_credentials_do_not_consume_the_rate_limit_of_the_address(
    harness: Harness,
) -> None:
    for _ in range(BURST_LIMIT + 5):
        key = await harness.create_api_key("subscribers:read")
        assert (await harness.get("/api/v1/subscribers", auth=key)).status_code == 200


@pytest.fixture
async def attacker_and_admin_clients(
    settings: Settings, database_url: str
) -> AsyncIterator[tuple[httpx2.AsyncClient, httpx2.AsyncClient]]:
    """Yield clients for an attacker and an admin with different IP addresses and default limits."""
    ordinary = load_settings(
        {"TAPGATE_DATA_DIR": str(settings.data_dir), "TAPGATE_DATABASE_URL": database_url}
    )
    async with open_gateway_services(ordinary, database_url) as services:
        app = create_app(services)
        async with (
            httpx2.AsyncClient(
                transport=AppTransport(app, "192.0.2.1"), base_url="http://gateway"
            ) as attacker,
            httpx2.AsyncClient(
                transport=AppTransport(app, "192.0.2.2"), base_url="http://gateway"
            ) as admin,
        ):
            yield attacker, admin


async def test_login_flood_from_one_address_does_not_block_other_addresses(
    harness: Harness, attacker_and_admin_clients: tuple[httpx2.AsyncClient, httpx2.AsyncClient]
) -> None:
    attacker, admin = attacker_and_admin_clients
    credentials = {"email": "ada@example.com", "password": "correct horse battery"}
    await create_first_admin(harness.services, **credentials)
    flood = [
        asyncio.create_task(
            attacker.post(
                "/api/v1/admin/login",
                json={"email": f"{number}@example.com", "password": "wrong password"},
            )
        )
        for number in range(90)
    ]
    await asyncio.wait(flood, return_when=asyncio.FIRST_COMPLETED)
    logins = [await admin.post("/api/v1/admin/login", json=credentials) for _ in range(9)]
    assert [response.status_code for response in logins] == [200] * 9
    responses = [await task for task in flood]
    assert {response.status_code for response in responses} <= {401, 429, 503}
    found = [response for response in responses if response.status_code != 401]
    assert all("retry-after" in response.headers for response in found)
    assert sum(response.status_code == 401 for response in responses) <= 31


async def test_failed_logins_are_limited_per_address_across_emails(
    attacker_and_admin_clients: tuple[httpx2.AsyncClient, httpx2.AsyncClient],
) -> None:
    attacker, other = attacker_and_admin_clients

    async def attempt_logins(url: str, client: httpx2.AsyncClient, count: int) -> list[int]:
        status_codes = []
        for number in range(count):
            fields = {"email": f"{url[-5:]}{number}@example.com", "password": "wrong password"}
            body = {"data": fields} if "console" in url else {"json": fields}
            status_codes.append((await client.post(url, **body)).status_code)
        return status_codes

    first = await attempt_logins("/api/v1/admin/login", attacker, 40)
    assert first[:30] == [401] * 30
    assert first[-1] == 429
    # The console's sign-in form shares the limit.
    assert 429 in await attempt_logins("/console/sign-in", attacker, 3)
    assert await attempt_logins("/console/sign-in", other, 1) == [401]
