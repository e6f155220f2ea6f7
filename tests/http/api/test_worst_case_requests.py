"""The worst-case request of every route needs little memory and does not stall the event loop.

Routes come from the declarations, so a new endpoint is covered automatically. Stalls are measured
as the event loop thread's CPU time, relative to a calibration in the same run.
"""

import tracemalloc
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import msgspec
import pytest

from builders.http_apps import LogCapture
from builders.messenger import run_messenger_app
from builders.worst_case_requests import (
    MEBIBYTE,
    AttackRequest,
    Target,
    build_body_attacks,
    build_framing_attacks,
    build_gateway_target,
    build_head_attacks,
    build_messenger_target,
    build_wide_body_attacks,
    calibrate_cpu,
    measure_cpu_seconds,
    measure_peak_memory,
)
from tapgate.auth.principals import Principal
from tapgate.http.api.access import Access
from tapgate.http.api.app import App
from tapgate.http.api.request_context import RequestContext
from tapgate.http.api.services import Services
from tapgate.http.api.system import build_system_endpoints
from tapgate.messenger.app import App as Messenger
from tapgate.messenger.routes import ENDPOINTS
from tapgate.messenger.routes.access import PUBLIC
from tapgate.server.gateway import ENDPOINT_GROUPS

#: Maximum event loop time for a request, in calibrations of about 10 ms each. Input is parsed in
#: slices, between which other connections are served.
_MAX_STALL_FACTOR = 4.0
_MAX_STALL_FACTOR_PER_MEBIBYTE = 12.0
#: Attempts with a new calibration, because a shared machine's speed changes.
_CALIBRATIONS = 3
_MAX_MEMORY_BYTES = 3 * MEBIBYTE
#: Bytes of memory per body byte. The gateway makes a few copies. The messenger decodes its
#: provider's requests without a schema and creates an object for each value.
_GATEWAY_MEMORY_FACTOR = 4
_MESSENGER_MEMORY_FACTOR = 40


class FixedAuthenticator:
    """Authenticates every request as the configured caller."""

    principal: Principal | None = None

    async def authenticate(
        self, method: str, path: str, query: bytes, headers: Any, body: bytes
    ) -> Principal | None:
        return self.principal

    @staticmethod
    def has_body_signature(headers: Any) -> bool:
        return False


def build_principal(access: Access) -> Principal | None:
    if access.public:
        return None
    if access.roles:
        role = "system_admin" if "A" in access.roles else next(iter(access.role_names))
        return Principal(kind="admin", id="adm_1", name="Ada", role=role)
    if access.scope:
        return Principal(kind="api_key", id="key_1", name="x", scopes=frozenset({access.scope}))
    kinds: Any = {"pos": "processor", "partner": "partner", None: "service"}
    return Principal(kind=kinds[access.hmac], id="key_2", name="x")


async def noop_handler(request: RequestContext, **_: Any) -> None:
    """Do nothing, replacing a handler that requires a credential.

    For these endpoints the tests measure the cost up to the handler.
    """


AttackCase = tuple[Target, AttackRequest, Any, int]
BuildAttacks = Callable[[Target], Iterator[AttackRequest]]
BuildCases = Callable[[BuildAttacks], Iterator[AttackCase]]


@pytest.fixture
async def build_cases(
    services: Services, tmp_path: Path, log_capture: LogCapture
) -> AsyncIterator[BuildCases]:
    caller: Any = FixedAuthenticator()
    services.authenticator.authenticate = caller.authenticate  # type: ignore[method-assign]
    services.authenticator.signatures = caller
    endpoints = [
        endpoint
        if endpoint.access.public
        else msgspec.structs.replace(endpoint, handler=noop_handler)
        for endpoint in chain.from_iterable(ENDPOINT_GROUPS)
    ]
    app = App(services, endpoints)
    await app.openapi_document.prepare()  # so that no request is charged for rendering it
    system_endpoints = list(build_system_endpoints(app))
    database_url = str(services.settings.database_url)
    async with run_messenger_app(tmp_path / "messenger", database_url) as messenger:
        routes = [msgspec.structs.replace(route, access=PUBLIC) for route in ENDPOINTS]
        messenger_app = Messenger(messenger.services, routes)

        def iter_cases(attacks: BuildAttacks) -> Iterator[AttackCase]:
            for endpoint in [*system_endpoints, *endpoints]:
                target = build_gateway_target(endpoint)
                for attack in attacks(target):
                    principal = build_principal(endpoint.access) if attack.with_credential else None
                    caller.principal = principal
                    log_capture.stream.truncate(0)
                    yield target, attack, app, _GATEWAY_MEMORY_FACTOR
            for route in routes:
                target = build_messenger_target(route)
                for attack in attacks(target):
                    yield target, attack, messenger_app, _MESSENGER_MEMORY_FACTOR

        yield iter_cases
        app.metrics.close()


MeasureCost = Callable[[AttackCase], Coroutine[Any, Any, float]]


def get_framing_kind(target: Target) -> tuple[object, ...]:
    """Return what processing an incomplete body depends on, except the service."""
    return target.method, target.body_limit, target.is_public


def get_parsing_kind(target: Target) -> tuple[object, ...]:
    """Return what processing a generic request depends on, except the service.

    The handlers of public routes run, so each of these routes is a kind of its own.
    """
    accepted = target.example is None, bool(target.parameters)
    return *get_framing_kind(target), accepted, target.is_public and target.name


def skip_equivalent_routes(
    cases: Iterator[AttackCase], get_kind: Callable[[Target], tuple[object, ...]]
) -> Iterator[AttackCase]:
    """Send each generic request to only one route of each kind."""
    seen: dict[Any, str] = {}
    for case in cases:
        target, attack, app, _ = case
        key = app, attack.name, get_kind(target)
        if not attack.is_generic or seen.setdefault(key, target.name) == target.name:
            yield case


async def find_excessive_costs(cases: Iterator[AttackCase], measure: MeasureCost) -> dict[str, str]:
    """Return the routes that exceed their limit, each with its most expensive request."""
    found: dict[str, tuple[float, str]] = {}
    for case in cases:
        target, attack, *_ = case
        cost = await measure(case)
        if cost > max(1.0, found.get(target.name, (0.0, ""))[0]):
            found[target.name] = cost, attack.name
    return {
        name: f"{attack_name}: {cost:.1f} times its limit"
        for name, (cost, attack_name) in found.items()
    }


async def test_no_request_stalls_the_event_loop(build_cases: BuildCases) -> None:
    unit = calibrate_cpu()

    async def measure_stall(case: AttackCase) -> float:
        nonlocal unit
        target, attack, app, _ = case
        size = min(sum(map(len, attack.chunks)), target.body_limit) / MEBIBYTE
        cost = float("inf")
        for _ in range(_CALIBRATIONS):
            limit = unit * (_MAX_STALL_FACTOR + _MAX_STALL_FACTOR_PER_MEBIBYTE * size)
            cost = await measure_cpu_seconds(app, attack.chunks, limit) / limit
            if cost <= 1.0:
                break
            unit = calibrate_cpu()
        return cost

    for attacks, get_kind in (
        (build_body_attacks, get_parsing_kind),
        (build_head_attacks, get_parsing_kind),
        (build_framing_attacks, get_framing_kind),
    ):
        cases = skip_equivalent_routes(build_cases(attacks), get_kind)
        assert await find_excessive_costs(cases, measure_stall) == {}


async def test_no_request_exceeds_its_memory_limit(build_cases: BuildCases) -> None:
    async def measure_memory(case: AttackCase) -> float:
        target, attack, app, factor = case
        size = min(sum(map(len, attack.chunks)), target.body_limit)
        limit = _MAX_MEMORY_BYTES + (factor * size if attack.with_credential else 0)
        return await measure_peak_memory(app, attack.chunks) / limit

    tracemalloc.start()
    try:
        for attacks, get_kind in (
            (build_wide_body_attacks, get_parsing_kind),
            (build_framing_attacks, get_framing_kind),
        ):
            cases = skip_equivalent_routes(build_cases(attacks), get_kind)
            assert await find_excessive_costs(cases, measure_memory) == {}
    finally:
        tracemalloc.stop()
