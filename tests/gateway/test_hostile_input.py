"""Whatever is sent to whichever endpoint: never a 500, never an echo."""

import re

import httpx2
import msgspec
import pytest

from agents.stage import new_agent
from tapgate import ids
from tapgate.edge.endpoint import Endpoint
from tapgate.gateway import ENDPOINT_GROUPS
from world import World

CANARY = "cAnArY-7319"
WITH_BODY = [e for noun in ENDPOINT_GROUPS for e in noun if e.body_type is not None]
WITH_PATH = [e for noun in ENDPOINT_GROUPS for e in noun if e.path_parameters]
LISTS = [e for noun in ENDPOINT_GROUPS for e in noun if e.query_type is not None]


def named(endpoint: Endpoint) -> str:
    return f"{endpoint.method} {endpoint.path}"


async def caller(world: World, endpoint: Endpoint) -> httpx2.Auth | None:
    access = endpoint.access
    if access.roles:
        return await world.admin(access.roles[0])
    if access.scope is not None:
        return await world.api_key(access.scope)
    if access.hmac is not None:
        return await (world.processor() if access.hmac == "pos" else world.partner())
    return world.service() if access.service else None


async def path_of(world: World, endpoint: Endpoint) -> str:
    """To something that exists where that matters, so that the body is looked at."""
    if "processors/{id}" in endpoint.path:
        new = {"name": "Shop", "phone_number": world.phone(), "email": "shop@example.com"}
        answer = await world.client.post("/api/v1/processors", json=new, auth=await world.admin())
        return re.sub(
            r"\{[a-z_]+\}", "1", endpoint.path.replace("{id}", answer.json()["processor_id"])
        )
    if "agents/{id}" in endpoint.path:
        return endpoint.path.replace("{id}", (await new_agent(world))["id"])
    if "compliance/rules/{id}" in endpoint.path:
        rule_id = await world.services.database.fetchval("SELECT min(id) FROM compliance_rules")
        return endpoint.path.replace("{id}", ids.encode(ids.RULE, rule_id))
    if "compliance/alerts/{id}" in endpoint.path:
        alert = {"alert_type": "TEST", "details": {}}
        url = "/api/v1/compliance/alerts"
        answer = await world.client.post(url, json=alert, auth=world.service())
        return endpoint.path.replace("{id}", answer.json()["alert_id"])
    if "subscribers/{id}" not in endpoint.path:
        return re.sub(r"\{[a-z_]+\}", "1", endpoint.path.replace("{type}", "transfer_p2p"))
    return endpoint.path.replace("{id}", (await world.subscriber())["id"])


HOSTILE_VALUES = [
    None,
    True,
    -1,
    0.5,
    1e308,
    10**40,
    "",
    " ",
    "\0",
    CANARY,
    CANARY * 1000,
    "\u202e" + CANARY,
    "'; DROP TABLE subscribers; --",
    "%00",
    "１２３４",
    "NaN",
    "1e5",
    [],
    [CANARY],
    {},
    {CANARY: CANARY},
    [[[[[]]]]],
]

HOSTILE_BODIES = [
    b"",
    b"null",
    b"[]",
    b'"text"',
    b"{",
    b"\xff\xfe",
    b'{"pin": "\xff"}',
    b'{"reason": "\xed\xa0\x80"}',
    b'{"reason": "\\ud800"}',
    b'{"reason": "\\u0000"}',
    b"[" * 100_000,
    b'{"a":' * 100_000,
    b'{"amount": ' + b"9" * 100_000 + b"}",
    b'{"pin": 1e999999}',
    b'{"pin": "1234", "pin": 5}',
]


def fields_of(endpoint: Endpoint) -> list[str]:
    kind = endpoint.body_struct
    return [] if kind is None else [field.encode_name for field in msgspec.structs.fields(kind)]


@pytest.mark.parametrize("endpoint", WITH_BODY, ids=named)
async def test_bodies(client: httpx2.AsyncClient, world: World, endpoint: Endpoint) -> None:
    path, auth = await path_of(world, endpoint), await caller(world, endpoint)
    filled = [dict.fromkeys(fields_of(endpoint), value) for value in HOSTILE_VALUES]
    for body in (*HOSTILE_BODIES, *map(msgspec.json.encode, filled)):
        answer = await client.request(endpoint.method, path, content=body, auth=auth)
        assert answer.status_code < 500, (body[:80], answer.text)
        if answer.status_code >= 400:
            assert CANARY not in answer.text, (body[:80], answer.text)
            assert {"error", "code"} <= set(answer.json())
        else:  # what was done may have ended a session
            auth = await caller(world, endpoint)


@pytest.mark.parametrize("endpoint", WITH_PATH, ids=named)
async def test_paths(client: httpx2.AsyncClient, world: World, endpoint: Endpoint) -> None:
    auth = await caller(world, endpoint)
    for part in ("%00", "%ff", "..", "%2e%2e%2f", "sub_", "9" * 5000, CANARY, "sub_zzzzzzzzzzzzz"):
        path = "/".join(
            part if piece.startswith("{") else piece for piece in endpoint.path.split("/")
        )
        answer = await client.request(endpoint.method, path, content=b"{}", auth=auth)
        # Where the sender signs the body, it is a stranger's. A client resolves `..` by itself,
        # perhaps to another path that is there.
        allowed = {400, 404, 409, 422, 405}
        allowed |= {401} if endpoint.access.public else set()
        allowed |= {200} if part == ".." else set()
        assert answer.status_code in allowed, (part, answer.text)
        assert CANARY not in answer.text


@pytest.mark.parametrize("endpoint", LISTS, ids=named)
async def test_queries(client: httpx2.AsyncClient, world: World, endpoint: Endpoint) -> None:
    assert endpoint.query_type is not None
    names = [field.encode_name for field in msgspec.structs.fields(endpoint.query_type)]
    hostile = ("%00", "%ff", "%ed%a0%80", "", "-1", "9" * 400, CANARY, "%27;--", "a" * 5000)
    path, auth = await path_of(world, endpoint), await caller(world, endpoint)
    for name in names:
        for value in hostile:
            answer = await client.get(f"{path}?{name}={value}", auth=auth)
            assert answer.status_code in (200, 422), (name, value[:20], answer.text)
            assert CANARY not in answer.text or answer.status_code == 200
