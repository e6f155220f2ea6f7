"""Isolation of owners: every operation with foreign IDs, for every owner role and owner's API key.

The texts of the other world are canaries. None of them may appear in a response, and a foreign ID
must answer exactly like an unknown one.
"""

import itertools
import json
from collections.abc import Iterator
from typing import Any, NamedTuple

import httpx2
import msgspec
import pytest

from builders.owner_world import OwnerCaller, OwnerWorld
from cases import run_cases
from server.gateway.fixtures import AccessFixtures, get_status_and_code
from tapgate.http.api.examples import build_example, get_path_example
from tapgate.http.api.owner_access import (
    OWNER_ROLES_BY_LETTER,
    Binding,
    OwnerAccess,
    get_owner_access,
)
from tapgate.http.endpoint import Endpoint
from tapgate.server.gateway import list_endpoints
from tapgate_client import ids

PREFIXES = [
    value
    for name, value in vars(ids).items()
    if name.isupper() and isinstance(value, str) and value.endswith("_")
]
EXAMPLE_NUMBER, UNKNOWN_NUMBER = 1 << 58, 1 << 30
ENDPOINTS = [item for item in list_endpoints() if not item.access.public]
#: What may differ between two responses: the request ID of an error, and new IDs and times.
VOLATILE = ("request_id", "statement_id", "generated_at", "id", "created_at")


class Worlds(NamedTuple):
    own: OwnerWorld
    foreign: OwnerWorld


class CrawlRequest(NamedTuple):
    """Request with foreign or unknown IDs."""

    method: str
    path: str
    body: Any = None


@pytest.fixture(scope="session")
async def worlds(access_fixtures: AccessFixtures) -> Worlds:
    harness = access_fixtures.harness
    await harness.disable_compliance_rules()
    result = Worlds(OwnerWorld(harness, "Ownmark"), OwnerWorld(harness, "Zqcanary"))
    for world in result:
        await world.create()
    return result


def is_allowed(caller: OwnerCaller, endpoint: Endpoint) -> bool:
    access = get_owner_access(endpoint)
    role = OWNER_ROLES_BY_LETTER[caller.role]
    if caller.is_key:
        return role in access.key_role_names and bool(access.scopes or endpoint.access.scope)
    return role in access.role_names


def list_requests(
    endpoint: Endpoint, caller: OwnerCaller, worlds: Worlds
) -> Iterator[tuple[CrawlRequest, CrawlRequest]]:
    """Yield requests with foreign IDs, each with the same request for unknown IDs."""
    prefixes = [
        prefix
        for prefix in PREFIXES
        if ids.encode(prefix, EXAMPLE_NUMBER) in json.dumps(build_request(endpoint))
        # An agent serves every customer, so no customer is foreign to its key.
        and not (endpoint.path in CASH_PATHS and prefix == ids.SUBSCRIBER)
    ]
    choices = [worlds.foreign.ids.get(prefix, []) for prefix in prefixes]
    for count in range(max([1, *map(len, choices)])):
        foreign = {
            prefix: items[count % len(items)]
            for prefix, items in zip(prefixes, choices, strict=True)
            if items
        }
        unknown = {prefix: ids.encode(prefix, UNKNOWN_NUMBER) for prefix in foreign}
        serial, other = worlds.foreign.serials[0], "TAP-UNKNOWN"
        if endpoint.path in CASH_PATHS:
            serial = other
        yield build_request(endpoint, foreign, serial), build_request(endpoint, unknown, other)
        own = {OWN_PREFIXES[caller.role]: caller.owner_id}
        if foreign.keys() & own.keys() and len(foreign) > 1:
            # A foreign owner's object below the caller's record.
            yield (
                build_request(endpoint, foreign | own, serial),
                build_request(endpoint, unknown | own, other),
            )


CASH_PATHS = ("/api/v1/agents/cashin", "/api/v1/agents/cashout")
OWN_PREFIXES = {"M": ids.PROCESSOR, "K": ids.PROCESSOR, "P": ids.PARTNER, "G": ids.AGENT}


def build_request(
    endpoint: Endpoint, replaced: dict[str, str] | None = None, serial: str = "TAP-000001"
) -> CrawlRequest:
    """Return the example request with other IDs."""
    path = endpoint.path
    for name in endpoint.path_parameters:
        path = path.replace(f"{{{name}}}", str(get_path_example(endpoint, name)))
    body = None if endpoint.body_struct is None else build_example(endpoint.body_struct)
    text = json.dumps([path, msgspec.to_builtins(body)])
    for prefix, public_id in (replaced or {}).items():
        text = text.replace(ids.encode(prefix, EXAMPLE_NUMBER), public_id)
    path, body = json.loads(text.replace("TAP-000001", serial))
    return CrawlRequest(endpoint.method, path, body)


def list_filters(endpoint: Endpoint, worlds: Worlds) -> Iterator[tuple[CrawlRequest, CrawlRequest]]:
    """Yield list requests with each filter set to a foreign, and to an unknown, value."""
    if endpoint.query_type is None or endpoint.method != "GET":
        return
    plain = build_request(endpoint)
    for field in msgspec.structs.fields(endpoint.query_type):
        if field.encode_name in ("limit", "order", "from", "to"):
            continue
        for prefix, items in worlds.foreign.ids.items():
            unknown = ids.encode(prefix, UNKNOWN_NUMBER)
            for item in items[:1]:
                yield (
                    plain._replace(path=f"{plain.path}?{field.encode_name}={item}"),
                    plain._replace(path=f"{plain.path}?{field.encode_name}={unknown}"),
                )
        for item in (worlds.foreign.mark, worlds.foreign.serials[0], *worlds.foreign.phones[:1]):
            query = str(httpx2.QueryParams({field.encode_name: item}))
            other = str(httpx2.QueryParams({field.encode_name: "Unknown-9"}))
            if not item.startswith("+"):
                yield (
                    plain._replace(path=f"{plain.path}?{query}"),
                    plain._replace(path=f"{plain.path}?{other}"),
                )


async def send(worlds: Worlds, request: CrawlRequest, auth: Any) -> httpx2.Response:
    content = b"" if request.body is None else json.dumps(request.body).encode()
    client = worlds.own.harness.client
    return await client.request(request.method, request.path, content=content, auth=auth)


def normalize(response: httpx2.Response) -> Any:
    if not response.headers.get("content-type", "").startswith("application/json"):
        return response.text
    body = response.json()
    return {name: value for name, value in body.items() if name not in VOLATILE}


def require_no_canary(response: httpx2.Response, request: CrawlRequest, worlds: Worlds) -> None:
    """Fail if the response has a text of the other world that the request did not have."""
    sent = f"{request.path} {json.dumps(request.body)}"
    text = response.text + str(response.headers)
    found = [item for item in worlds.foreign.canaries if item in text and item not in sent]
    found += [item for item in worlds.own.personal_canaries if item in text]
    assert not found, (request, found, response.status_code)


def test_every_endpoint_declares_how_its_objects_belong_to_an_owner() -> None:
    undeclared = [
        item.name for item in list_endpoints() if not isinstance(item.owners, OwnerAccess)
    ]
    assert undeclared == []
    for endpoint in list_endpoints():
        binding = get_owner_access(endpoint).binding
        if binding is Binding.NEVER:
            assert not get_owner_access(endpoint).roles
        elif endpoint.method == "GET" and endpoint.response_type is not None:
            has_id = bool(endpoint.path_parameters)
            assert has_id or binding not in (Binding.ROW, Binding.PATH), endpoint.name


async def test_no_operation_discloses_foreign_data(worlds: Worlds) -> None:
    counts = {"requests": 0}
    await run_cases(
        (endpoint.name, crawl(endpoint, worlds, counts))
        for endpoint in ENDPOINTS
        if get_owner_access(endpoint).binding is not Binding.USER
    )
    callers, canaries = len(worlds.own.callers), len(worlds.foreign.canaries)
    print(f"{len(ENDPOINTS)} operations x {callers} callers x {canaries} canaries: {counts}")
    assert counts["requests"] > len(ENDPOINTS) * callers


async def crawl(endpoint: Endpoint, worlds: Worlds, counts: dict[str, int]) -> None:
    for caller in worlds.own.callers:
        allowed = is_allowed(caller, endpoint)
        pairs = itertools.chain(
            list_requests(endpoint, caller, worlds), list_filters(endpoint, worlds)
        )
        for foreign, unknown in pairs if allowed else itertools.islice(pairs, 1):
            response = await send(worlds, foreign, caller.auth)
            counts["requests"] += 1
            require_no_canary(response, foreign, worlds)
            assert response.status_code != 401 or endpoint.access.hmac, (caller.name, foreign)
            assert response.status_code < 500, (caller.name, foreign, response.text)
            status, code = get_status_and_code(response)
            if not allowed:
                assert status in (401, 403), (caller.name, response.text)
                continue
            assert code != "FORBIDDEN", (caller.name, response.text)
            expected = await send(worlds, unknown, caller.auth)
            same = (response.status_code, normalize(response)) == (
                expected.status_code,
                normalize(expected),
            )
            assert same, (caller.name, foreign, response.text, expected.text)


async def test_own_requests_disclose_only_own_data(worlds: Worlds) -> None:
    """The same operations with the caller's own IDs find something, and no canary."""
    found = 0
    for endpoint in ENDPOINTS:
        access = get_owner_access(endpoint)
        if endpoint.method != "GET" or access.binding in (Binding.NEVER, Binding.USER):
            continue
        for caller in worlds.own.callers:
            if not is_allowed(caller, endpoint):
                continue
            for own in build_own_requests(endpoint, caller, worlds.own):
                response = await send(worlds, own, caller.auth)
                require_no_canary(response, CrawlRequest("GET", ""), worlds)
                found += response.status_code == 200
    assert found > len(worlds.own.callers) * 5


def build_own_requests(
    endpoint: Endpoint, caller: OwnerCaller, world: OwnerWorld
) -> Iterator[CrawlRequest]:
    used = [
        prefix
        for prefix in PREFIXES
        if ids.encode(prefix, EXAMPLE_NUMBER) in build_request(endpoint).path
    ]
    for combination in itertools.product(*(world.ids.get(prefix, [""]) for prefix in used)):
        yield build_request(endpoint, dict(zip(used, combination, strict=True)))
