"""Rate limit per IP address for unauthenticated callers."""

from collections.abc import AsyncIterator
from pathlib import Path

import httpx2
import pytest
from msgspec.json import encode

from builders.messenger import (
    BRIDGE_PATH,
    CODE_BODY,
    HEALTH_PATH,
    MESSAGE_BODY,
    TEMPLATE_PATH,
    WEBHOOK_PATH,
    MessengerApp,
    build_delivery,
    build_error,
    run_messenger_app,
)
from harness import PRODUCTION_ENVIRON, BearerAuth
from tapgate.http.endpoint import Endpoint
from tapgate.messenger.routes import ENDPOINTS

BURST = 5
APP_SECRET, TOKEN = "the channel's secret", "kT4-the bridge's token-9w"
#: The bucket is never refilled during a test, because `stopped_clock` freezes the clock.
RATE_LIMIT_ENVIRON = {
    "TAPGATE_RATE_LIMIT": "1",
    "TAPGATE_RATE_BURST": str(BURST),
    "TAPGATE_MESSENGER_APP_SECRET": APP_SECRET,
    "TAPGATE_MESSENGER_BRIDGE_TOKEN": TOKEN,
}


@pytest.fixture(autouse=True)
def stopped_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.monotonic_ns", lambda: 7_000_000_000)


@pytest.fixture
async def limited_messenger(tmp_path: Path, database_url: str) -> AsyncIterator[MessengerApp]:
    async with run_messenger_app(tmp_path, database_url, **RATE_LIMIT_ENVIRON) as app:
        yield app


async def exhaust_burst(messenger: MessengerApp) -> None:
    for _ in range(BURST):
        assert (await messenger.client.post(BRIDGE_PATH)).status_code == 401


def assert_limited(response: httpx2.Response) -> None:
    assert response.status_code == 429, response.text
    assert response.json() == build_error("Too many requests") | {"retryAfter": 1}
    assert response.headers["retry-after"] == "1"


@pytest.mark.parametrize(
    "route",
    [route for route in ENDPOINTS if not route.unlimited],
    ids=lambda route: f"{route.method} {route.path}",
)
async def test_every_route_limits_callers_without_a_credential(
    limited_messenger: MessengerApp, route: Endpoint
) -> None:
    send = limited_messenger.client.request
    responses = [await send(route.method, route.path, content=b"{}") for _ in range(BURST + 1)]
    assert [response.status_code == 429 for response in responses] == [False] * BURST + [True]
    assert_limited(responses[-1])


async def test_health_checks_are_never_limited(limited_messenger: MessengerApp) -> None:
    await exhaust_burst(limited_messenger)
    for path in (HEALTH_PATH, "/live", "/ready"):
        response = await limited_messenger.client.get(path)
        assert response.status_code == 200


@pytest.mark.parametrize("path", [BRIDGE_PATH, WEBHOOK_PATH, f"{WEBHOOK_PATH}/flows"])
async def test_callers_of_routes_without_a_configured_secret_are_limited(
    tmp_path: Path, database_url: str, path: str
) -> None:
    environ = {
        name: RATE_LIMIT_ENVIRON[name] for name in ("TAPGATE_RATE_LIMIT", "TAPGATE_RATE_BURST")
    }
    async with run_messenger_app(tmp_path, database_url, **environ) as messenger:
        responses = [await messenger.client.post(path, content=b"{}") for _ in range(BURST + 1)]
    assert [response.status_code == 429 for response in responses] == [False] * BURST + [True]


async def test_signed_deliveries_are_never_limited_by_address(
    limited_messenger: MessengerApp,
) -> None:
    """A 429 would make the provider redeliver for days."""
    await exhaust_burst(limited_messenger)
    for number in range(3 * BURST):
        body = encode(build_delivery(f"wamid.{number}"))
        assert (await limited_messenger.deliver(body, APP_SECRET)).status_code == 200
    assert_limited(await limited_messenger.deliver(body, "another secret"))


async def test_authenticated_callers_are_not_limited_by_address(
    limited_messenger: MessengerApp,
) -> None:
    await exhaust_burst(limited_messenger)
    for _ in range(3 * BURST):
        sent = await limited_messenger.client.post(
            TEMPLATE_PATH, json=CODE_BODY, auth=limited_messenger.get_service_auth()
        )
        output = await limited_messenger.client.post(
            BRIDGE_PATH, json=MESSAGE_BODY, auth=BearerAuth(TOKEN, "")
        )
        assert (sent.status_code, output.status_code) == (202, 200)


async def test_addresses_are_limited_independently(tmp_path: Path, database_url: str) -> None:
    proxied = RATE_LIMIT_ENVIRON | PRODUCTION_ENVIRON | {"TAPGATE_TRUSTED_PROXIES": "127.0.0.1"}
    async with run_messenger_app(tmp_path, database_url, **proxied) as messenger:
        for address in ("192.0.2.1", "192.0.2.2", "2001:db8::1"):
            headers = {"X-Forwarded-For": address}
            responses = [
                await messenger.client.post(BRIDGE_PATH, headers=headers) for _ in range(BURST + 1)
            ]
            assert_limited(responses[-1])
            assert responses[-2].status_code == 401
        # All addresses in an IPv6 /64 network count as one.
        response = await messenger.client.post(
            BRIDGE_PATH, headers={"X-Forwarded-For": "2001:db8::2"}
        )
        assert_limited(response)
