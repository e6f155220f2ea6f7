"""The worst request of every route costs little memory and does not stall the event loop.

Routes come from the declarations, so that a new endpoint is covered without being named here.
Stalls are CPU time of the event loop's thread, relative to work that is measured in the same run.
"""

import dataclasses
import tracemalloc
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import msgspec
import pytest

from edge import meter
from edge.log_lines import Lines
from edge.worst_requests import (
    MEBIBYTE,
    Attack,
    Target,
    body_attacks,
    framing_attacks,
    head_attacks,
    wide_body_attacks,
)
from messenger.routes.stage import stage as messenger_stage
from tapgate.credentials.principals import Principal
from tapgate.edge.app import App
from tapgate.edge.endpoint import Access, Endpoint
from tapgate.edge.examples import build_example, get_path_example
from tapgate.edge.http_protocol import HttpProtocol
from tapgate.edge.request_context import RequestContext
from tapgate.edge.services import Services
from tapgate.edge.system import build_system_endpoints
from tapgate.gateway import ENDPOINT_GROUPS
from tapgate.messenger.app import App as Messenger
from tapgate.messenger.http_protocol import MessengerHttpProtocol as MessengerWire
from tapgate.messenger.routes import ROUTES
from tapgate.messenger.routes.access import PUBLIC

#: For how many calibrations, of about 10 ms each, a request may use the event loop. The parsing of
#: what arrives is cut into slices, between which other connections have their turn.
_STALL = 4.0
_STALL_PER_MEBIBYTE = 12.0
_MEMORY = 3 * MEBIBYTE
#: Bytes for each byte that a body may have: a copy or two of it. The messenger reads what its
#: provider sends without knowing its fields, and makes an object of each value.
_GATEWAY_FACTOR = 4
_MESSENGER_FACTOR = 40


class Caller:
    """Authenticates every request that has no credential of its own as the caller that is set."""

    principal: Principal | None = None

    async def authenticate(
        self, method: str, path: str, query: bytes, headers: Any, body: bytes
    ) -> Principal | None:
        return self.principal

    @staticmethod
    def signs_body(headers: Any) -> bool:
        return False


def caller_of(access: Access) -> Principal | None:
    if access.public:
        return None
    if access.roles:
        role = "system_admin" if "A" in access.roles else next(iter(access.role_names))
        return Principal(kind="admin", id="adm_1", name="Ada", role=role)
    if access.scope:
        return Principal(kind="api_key", id="key_1", name="x", scopes=frozenset({access.scope}))
    kinds: Any = {"pos": "processor", "partner": "partner", None: "service"}
    return Principal(kind=kinds[access.hmac], id="key_2", name="x")


async def does_nothing(call: RequestContext, **_: Any) -> None:
    """Instead of a handler that needs a credential: this is about requests that have none."""


def gateway_target(endpoint: Endpoint) -> Target:
    path = endpoint.path
    for name in endpoint.path_parameters:
        path = path.replace(f"{{{name}}}", get_path_example(endpoint.path, name))
    kind = endpoint.body_struct
    fields = () if endpoint.query_type is None else msgspec.structs.fields(endpoint.query_type)
    return Target(
        name=endpoint.name,
        method=endpoint.method,
        path=path,
        body_limit=endpoint.body_limit,
        is_public=endpoint.access.public,
        example=None if kind in (None, bytes) else build_example(kind),
        parameters=tuple(one.encode_name for one in fields),
    )


def messenger_target(route: Any) -> Target:
    return Target(
        name=f"messenger {route.method} {route.path}",
        method=route.method,
        path=route.path,
        body_limit=route.body_limit,
        is_public=True,
        example=getattr(route.body, "EXAMPLE", None),
        parameters=tuple(one.name for one in route.parameters if one.location == "query"),
    )


Case = tuple[Target, Attack, Any, Any, int]
Attacks = Callable[[Target], Iterator[Attack]]
Cases = Callable[[Attacks], Iterator[Case]]


@pytest.fixture
async def cases(services: Services, tmp_path: Path, lines: Lines) -> AsyncIterator[Cases]:
    caller: Any = Caller()
    services.authenticator.authenticate = caller.authenticate  # type: ignore[method-assign]
    services.authenticator.has_body_signature = caller.signs_body  # type: ignore[method-assign]
    declared = [
        one if one.access.public else msgspec.structs.replace(one, handler=does_nothing)
        for one in chain.from_iterable(ENDPOINT_GROUPS)
    ]
    app = App(services, declared)
    _ = app.openapi_document  # rendered once
    system = list(build_system_endpoints(app))
    database_url = str(services.settings.database_url)
    async with messenger_stage(tmp_path / "messenger", database_url) as messenger:
        routes = [dataclasses.replace(one, access=PUBLIC) for one in ROUTES]
        other = Messenger(messenger.services, routes)

        def every_case(attacks: Attacks) -> Iterator[Case]:
            for endpoint in [*system, *declared]:
                target = gateway_target(endpoint)
                for attack in attacks(target):
                    known = caller_of(endpoint.access) if attack.with_credential else None
                    caller.principal = known
                    lines.stream.truncate(0)
                    yield target, attack, HttpProtocol, app, _GATEWAY_FACTOR
            for route in routes:
                target = messenger_target(route)
                for attack in attacks(target):
                    yield target, attack, MessengerWire, other, _MESSENGER_FACTOR

        yield every_case
        app.metrics.close()


Measure = Callable[[Case], Coroutine[Any, Any, float]]


def alike_once(cases: Iterator[Case]) -> Iterator[Case]:
    """Leave out routes that differ from an earlier one in nothing that matters before a body is
    complete: its service, its limit and whether it needs a credential."""
    seen: dict[Any, str] = {}
    for case in cases:
        target, attack, protocol, _, _ = case
        key = protocol, attack.name, target.body_limit, target.is_public, target.method
        if seen.setdefault(key, target.name) == target.name:
            yield case


async def worst(cases: Iterator[Case], measure: Measure) -> dict[str, str]:
    """Return the routes for which some request costs more than it may, with the worst of each."""
    found: dict[str, tuple[float, str]] = {}
    for case in cases:
        target, attack, *_ = case
        cost = await measure(case)
        if cost > max(1.0, found.get(target.name, (0.0, ""))[0]):
            found[target.name] = cost, attack.name
    return {name: f"{what}: {cost:.1f} times its limit" for name, (cost, what) in found.items()}


async def test_no_request_stalls_the_event_loop(cases: Cases) -> None:
    unit = meter.calibration()

    async def stall(case: Case) -> float:
        target, attack, protocol, app, _ = case
        size = min(sum(map(len, attack.reads)), target.body_limit) / MEBIBYTE
        limit = unit * (_STALL + _STALL_PER_MEBIBYTE * size)
        return await meter.cpu_seconds(protocol, app, attack.reads, limit) / limit

    for attacks in (body_attacks, head_attacks):
        assert await worst(cases(attacks), stall) == {}
    assert await worst(alike_once(cases(framing_attacks)), stall) == {}


async def test_no_request_takes_up_much_memory(cases: Cases) -> None:
    async def memory(case: Case) -> float:
        target, attack, protocol, app, factor = case
        size = min(sum(map(len, attack.reads)), target.body_limit)
        limit = _MEMORY + (factor * size if attack.with_credential else 0)
        return await meter.peak_memory(protocol, app, attack.reads) / limit

    tracemalloc.start()
    try:
        assert await worst(cases(wide_body_attacks), memory) == {}
        assert await worst(alike_once(cases(framing_attacks)), memory) == {}
    finally:
        tracemalloc.stop()
