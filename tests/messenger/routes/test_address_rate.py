"""The rate limit per address: for callers that do not prove who they are."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import httpx2
import pytest
from msgspec.json import encode as encoded

from messenger.routes.stage import (
    BRIDGE,
    CODE,
    HEALTH,
    MESSAGE,
    PRODUCTION,
    TEMPLATE,
    WEBHOOK,
    Stage,
    delivery,
    error,
    stage,
)
from tapgate.messenger.routes import ROUTES
from tapgate.messenger.routes.route import Route
from world import Bearer

BURST = 5
APP_SECRET, TOKEN = "the channel's secret", "kT4-the bridge's token-9w"
#: So slow that no token comes back while a test runs.
LIMITED = {
    "TAPGATE_RATE_LIMIT": "1",
    "TAPGATE_RATE_BURST": str(BURST),
    "TAPGATE_MESSENGER_APP_SECRET": APP_SECRET,
    "TAPGATE_MESSENGER_BRIDGE_TOKEN": TOKEN,
}


@pytest.fixture(autouse=True)
def stopped_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.monotonic_ns", lambda: 7_000_000_000)


@pytest.fixture
async def limited(tmp_path: Path, database_url: str) -> AsyncIterator[Stage]:
    async with stage(tmp_path, database_url, **LIMITED) as made:
        yield made


async def exhaust(messenger: Stage) -> None:
    for _ in range(BURST):
        assert (await messenger.client.get(HEALTH)).status_code == 200


def assert_limited(answer: httpx2.Response) -> None:
    assert answer.status_code == 429, answer.text
    assert answer.json() == error("Too many requests") | {"retryAfter": 1}
    assert answer.headers["retry-after"] == "1"


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: f"{route.method} {route.path}")
async def test_every_route_limits_callers_without_a_credential(
    limited: Stage, route: Route
) -> None:
    send = limited.client.request
    answers = [await send(route.method, route.path, content=b"{}") for _ in range(BURST + 1)]
    assert [answer.status_code == 429 for answer in answers] == [False] * BURST + [True]
    assert_limited(answers[-1])


@pytest.mark.parametrize("path", [BRIDGE, WEBHOOK, f"{WEBHOOK}/flows"])
async def test_anonymous_callers_are_limited_where_no_secret_is_set(
    tmp_path: Path, database_url: str, path: str
) -> None:
    open_to_all = {name: LIMITED[name] for name in ("TAPGATE_RATE_LIMIT", "TAPGATE_RATE_BURST")}
    async with stage(tmp_path, database_url, **open_to_all) as messenger:
        answers = [await messenger.client.post(path, content=b"{}") for _ in range(BURST + 1)]
    assert [answer.status_code == 429 for answer in answers] == [False] * BURST + [True]


async def test_parallel_guesses_do_not_outrun_the_limit(limited: Stage) -> None:
    guesses = (
        limited.client.post(BRIDGE, json=MESSAGE, auth=Bearer(f"guess {number}", ""))
        for number in range(50)
    )
    statuses = [answer.status_code for answer in await asyncio.gather(*guesses)]
    assert (statuses.count(401), statuses.count(429)) == (BURST, 50 - BURST)


async def test_signed_deliveries_are_never_refused_by_address(limited: Stage) -> None:
    """A 429 would make the provider redeliver for days."""
    await exhaust(limited)
    for number in range(3 * BURST):
        body = encoded(delivery(f"wamid.{number}"))
        assert (await limited.deliver(body, APP_SECRET)).status_code == 200
    assert_limited(await limited.deliver(body, "another secret"))


async def test_callers_with_a_credential_are_not_limited_by_address(limited: Stage) -> None:
    await exhaust(limited)
    for _ in range(3 * BURST):
        sent = await limited.client.post(TEMPLATE, json=CODE, auth=limited.service())
        said = await limited.client.post(BRIDGE, json=MESSAGE, auth=Bearer(TOKEN, ""))
        assert (sent.status_code, said.status_code) == (202, 200)


async def test_addresses_are_limited_apart_from_each_other(
    tmp_path: Path, database_url: str
) -> None:
    proxied = LIMITED | PRODUCTION | {"TAPGATE_TRUSTED_PROXIES": "127.0.0.1"}
    async with stage(tmp_path, database_url, **proxied) as messenger:
        for address in ("192.0.2.1", "192.0.2.2", "2001:db8::1"):
            headers = {"X-Forwarded-For": address}
            answers = [
                await messenger.client.get(HEALTH, headers=headers) for _ in range(BURST + 1)
            ]
            assert_limited(answers[-1])
            assert answers[-2].status_code == 200
        # The whole network of one household counts as one address.
        answer = await messenger.client.get(HEALTH, headers={"X-Forwarded-For": "2001:db8::2"})
        assert_limited(answer)
