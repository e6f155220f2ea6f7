"""CPU time that one stranger can use: request cost times the requests that limits let through.

The routes come from the declarations, so a new public endpoint is covered automatically. A site
without an entry in `SITE_PATHS` fails the test. CPU time is measured in all process threads,
because threads share the interpreter with the event loop.
"""

import itertools
import secrets
import time
from collections.abc import AsyncIterator, Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import argon2
import httpx2
import msgspec
import pytest

from builders.messenger import run_messenger_app
from builders.worst_case_requests import (
    Target,
    build_gateway_target,
    build_messenger_target,
    calibrate_cpu,
)
from drivers.in_process import InProcessRequest
from tapgate.auth.passwords import OWASP_PARAMETERS, Passwords
from tapgate.business.staff.operations import create_first_admin
from tapgate.core.settings import load_settings
from tapgate.http.api.app import App
from tapgate.http.api.services import Services
from tapgate.http.app import PROBE_RATE_LIMIT, RATE_LIMITED_PAUSE_SECONDS
from tapgate.http.http_messages import Application
from tapgate.http.rate_limits.address_costs import LOGIN_RATE_LIMIT
from tapgate.http.rate_limits.token_buckets import RateLimit
from tapgate.messenger.app import App as Messenger
from tapgate.server.gateway import create_app, list_endpoints
from tapgate.sites.guide.site import SEARCH_RATE_LIMIT

#: Share of one processor that one address may use.
MAX_SHARE = 0.2
#: The defaults, which apply to all node processes together.
DEFAULT_SETTINGS = load_settings({})
DEFAULT_RATE = RateLimit(DEFAULT_SETTINGS.rate_limit, DEFAULT_SETTINGS.rate_burst)
LOGIN = "POST /api/v1/admin/login"
KNOWN_EMAIL = "ada@example.com"
#: Lower limits of expensive routes. Other tests check that they apply.
RATES = {
    LOGIN: LOGIN_RATE_LIMIT,
    "GET /guide/search?q=the+and+for+with+that+not": SEARCH_RATE_LIMIT,
}
#: Paths by site. `*` is another word in each request, because a site may cache its responses.
SITE_PATHS = {
    "/console": [
        "/console",
        "/console/login",
        "/console/transactions",
        "/console/*",
        "/console/assets/*",
    ],
    "/": ["/"],
    "/favicon.ico": ["/favicon.ico"],
    "/guide": [
        "/guide",
        "/guide/signing",
        "/guide/api",
        "/guide/api/subscribers",
        "/guide/*",
        "/guide/api/*",
        *(path[4:] for path in RATES if "?" in path),
    ],
    "/t": ["/t", "/t/*"],
    "/verify": ["/verify", "/verify/*"],
    "/portal": ["/portal", "/portal/login", "/portal/transactions", "/portal/*"],
    "/docs": ["/docs", "/docs/*"],
}
CREDENTIALS = {
    "no credential": {},
    "unknown API key": {"Authorization": "Bearer svc_test_" + "0" * 45},
    "invalid token": {"Authorization": "Bearer eyJhbGciOiJIUzI1NiJ9.e30." + "x" * 43},
    "unknown signing key": {
        "X-API-Key-ID": "key_1",
        "X-Timestamp": "2026-01-01T00:00:00Z",
        "X-Signature": "0" * 64,
    },
    "unknown service": {
        "X-Service-Name": "x",
        "X-Service-Timestamp": "1800000000",
        "X-Service-Signature": "0" * 64,
    },
}
_WARM_UP_REQUESTS = 3
_REQUESTS = 10
_ATTEMPTS = 4
#: Attempts with a new calibration, because a shared machine's speed changes.
_CALIBRATIONS = 3
_CALIBRATION_SECONDS = 0.01


class PublicRequest(NamedTuple):
    name: str
    build: Callable[[], httpx2.Request]
    per_second: float


def build_request(target: Target, email: str | None = None, /, **headers: str) -> httpx2.Request:
    example: Any = target.example
    if isinstance(example, dict) and "email" in example:
        example = example | {"email": email or f"{secrets.token_hex(8)}@example.com"}
    content = None if example is None else msgspec.json.encode(example)
    return httpx2.Request(
        target.method, f"http://gateway{target.path}", content=content, headers=headers
    )


def build_page_request(path: str) -> httpx2.Request:
    url = f"http://gateway{path.replace('*', secrets.token_hex(4))}"
    return httpx2.Request("GET", url, headers={"Accept": "text/html"})


def iter_gateway_requests(app: App) -> Iterator[PublicRequest]:
    for endpoint in list_endpoints():
        if endpoint.access.public:
            rate = RATES.get(endpoint.name, DEFAULT_RATE)
            rate = PROBE_RATE_LIMIT if endpoint.unlimited else rate
            build = partial(build_request, build_gateway_target(endpoint))
            yield PublicRequest(endpoint.name, build, rate.per_second)
    login = next(each for each in list_endpoints() if each.name == LOGIN)
    build = partial(build_request, build_gateway_target(login), KNOWN_EMAIL)
    yield PublicRequest(f"{LOGIN} of a known admin", build, LOGIN_RATE_LIMIT.per_second)
    guarded = next(endpoint for endpoint in list_endpoints() if not endpoint.access.public)
    for name, headers in CREDENTIALS.items():
        build = partial(build_request, build_gateway_target(guarded), **headers)
        yield PublicRequest(name, build, DEFAULT_RATE.per_second)
    assert {site.prefix for site, _ in app.sites} == SITE_PATHS.keys()
    for path in (*itertools.chain.from_iterable(SITE_PATHS.values()), "/unknown"):
        name = f"GET {path}"
        yield PublicRequest(
            name, partial(build_page_request, path), RATES.get(name, DEFAULT_RATE).per_second
        )


def iter_messenger_requests(app: Messenger) -> Iterator[PublicRequest]:
    for route in app.endpoints:
        build = partial(
            build_request,
            build_messenger_target(route),
            **{"Authorization": "Bearer x", "X-Hub-Signature-256": f"sha256={'0' * 64}"},
        )
        rate = PROBE_RATE_LIMIT if route.unlimited else DEFAULT_RATE
        yield PublicRequest(f"messenger {route.name}", build, rate.per_second)


async def measure_seconds(
    app: Application, build: Callable[[], httpx2.Request], addresses: Iterator[str]
) -> float:
    """Return the CPU time per request. Each request has an address whose limits are unused."""
    best = float("inf")
    for attempt in range(_ATTEMPTS):
        count = _REQUESTS if attempt else _WARM_UP_REQUESTS
        requests = [InProcessRequest(build(), next(addresses)) for _ in range(count)]
        started = time.process_time()
        for request in requests:
            await app.respond(request)
        if attempt:
            best = min(best, (time.process_time() - started) / count)
    return best


@pytest.fixture
def addresses() -> Iterator[str]:
    return (f"10.{n >> 16 & 255}.{n >> 8 & 255}.{n & 255}" for n in itertools.count())


@pytest.fixture
async def app(services: Services, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[App]:
    # Other tests hash passwords with much cheaper parameters.
    monkeypatch.setattr(services.authenticator.logins, "passwords", Passwords(OWASP_PARAMETERS))
    app = create_app(services)
    await app.openapi_document.prepare()
    yield app
    app.metrics.close()


async def find_excessive_shares(
    app: Application, requests: Iterator[PublicRequest], addresses: Iterator[str]
) -> dict[str, str]:
    found = {}
    for name, build, per_second in requests:
        for _ in range(_CALIBRATIONS):
            slowdown = max(1.0, calibrate_cpu() / _CALIBRATION_SECONDS)
            seconds = await measure_seconds(app, build, addresses) / slowdown
            if seconds * per_second <= MAX_SHARE:
                break
        else:
            found[name] = f"{seconds * 1000:.2f} ms x {per_second}/s = {seconds * per_second:.0%}"
    return found


async def test_public_gateway_routes_stay_within_the_budget(
    services: Services, app: App, addresses: Iterator[str]
) -> None:
    stored = await Passwords(OWASP_PARAMETERS).hash("a long passphrase 42")
    async with services.transaction() as tx:
        await create_first_admin(tx, email=KNOWN_EMAIL, password_hash=stored)
    assert not await find_excessive_shares(app, iter_gateway_requests(app), addresses)


async def test_measured_logins_check_a_password(
    services: Services, app: App, addresses: Iterator[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """For unknown and known admins. Otherwise the budget would miss the most expensive step."""
    stored = await Passwords(OWASP_PARAMETERS).hash("a long passphrase 42")
    async with services.transaction() as tx:
        await create_first_admin(tx, email=KNOWN_EMAIL, password_hash=stored)
    verified: list[str] = []
    verify = argon2.PasswordHasher.verify

    def count(self: argon2.PasswordHasher, stored_hash: str, password: str) -> bool:
        verified.append(stored_hash)
        return verify(self, stored_hash, password)

    monkeypatch.setattr(argon2.PasswordHasher, "verify", count)
    logins = [each for each in iter_gateway_requests(app) if each.name.startswith(f"{LOGIN} of")]
    logins += [each for each in iter_gateway_requests(app) if each.name == LOGIN]
    assert len(logins) == 2
    costs = "m=19456,t=2,p=1"
    for _, build, per_second in logins:
        verified.clear()
        seconds = await measure_seconds(app, build, addresses)
        assert len(verified) == _WARM_UP_REQUESTS + (_ATTEMPTS - 1) * _REQUESTS
        assert all(costs in each for each in verified)
        assert (stored in verified) is (build is logins[0].build)
        # Two passes over 19 MiB: less would mean that the work of threads is not counted.
        assert seconds > 0.005
        assert per_second == LOGIN_RATE_LIMIT.per_second


async def test_public_messenger_routes_stay_within_the_budget(
    tmp_path: Path, database_url: str, addresses: Iterator[str]
) -> None:
    variables = {"TAPGATE_MESSENGER_BRIDGE_TOKEN": "x" * 40, "TAPGATE_MESSENGER_APP_SECRET": "y"}
    async with run_messenger_app(tmp_path / "messenger", database_url, **variables) as messenger:
        app = Messenger(messenger.services)
        requests = iter_messenger_requests(app)
        assert not await find_excessive_shares(app, requests, addresses)


async def test_rejections_of_all_connections_stay_within_the_budget(
    services: Services, app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a rejection, the connection is not read for a while."""
    per_second = DEFAULT_SETTINGS.max_connections_per_address / RATE_LIMITED_PAUSE_SECONDS
    take = services.throttle.node_buckets.take
    monkeypatch.setattr(
        services.throttle.node_buckets,
        "take",
        lambda key, rate=None: take(key, RateLimit(1 / 3600, 1)),
    )
    requests = (
        PublicRequest(name, build, per_second) for name, build, _ in iter_gateway_requests(app)
    )
    assert not await find_excessive_shares(app, requests, itertools.repeat("192.0.2.1"))
