"""Hostile values for every endpoint with a body."""

import re

import httpx2
import msgspec

from builders.participants import create_agent
from harness import Harness
from tapgate.http.endpoint import Endpoint
from tapgate.server.gateway import ENDPOINT_GROUPS
from tapgate_client import ids

CANARY = "cAnArY-7319"
ENDPOINTS_WITH_BODY = [
    endpoint for group in ENDPOINT_GROUPS for endpoint in group if endpoint.body_type is not None
]


def endpoint_name(endpoint: Endpoint) -> str:
    return f"{endpoint.method} {endpoint.path}"


async def create_caller(harness: Harness, endpoint: Endpoint) -> httpx2.Auth | None:
    access = endpoint.access
    if access.roles:
        return await harness.create_admin(access.roles[0])
    if access.scope is not None:
        return await harness.create_api_key(access.scope)
    if access.hmac is not None:
        return await (
            harness.create_processor() if access.hmac == "pos" else harness.create_partner()
        )
    if access.owners:
        owner = await harness.get_processor_id(await harness.create_processor())
        return await harness.create_owner_user("M", owner)
    return harness.get_service_auth() if access.service else None


async def build_path(harness: Harness, endpoint: Endpoint) -> str:
    """Return a path to an existing object where one is required for the body to be decoded."""
    if "processors/{id}" in endpoint.path:
        new = {
            "name": "Shop",
            "phone_number": harness.new_phone_number(),
            "email": "shop@example.com",
        }
        response = await harness.post(
            "/api/v1/processors", json=new, auth=await harness.create_admin()
        )
        return re.sub(
            r"\{[a-z_]+\}", "1", endpoint.path.replace("{id}", response.json()["processor_id"])
        )
    if "agents/{id}" in endpoint.path:
        return endpoint.path.replace("{id}", (await create_agent(harness))["id"])
    if "compliance/rules/{id}" in endpoint.path:
        rule_id = await harness.database.fetchval("SELECT min(id) FROM compliance_rules")
        return endpoint.path.replace("{id}", ids.encode(ids.RULE, rule_id))
    new_record = {
        "compliance/alerts": {"alert_type": "TEST", "details": {}},
        "support/requests": {"phone_number": harness.new_phone_number(), "text": "Hello"},
    }
    for path, body in new_record.items():
        if f"{path}/{{id}}" in endpoint.path:
            response = await harness.post(
                f"/api/v1/{path}", json=body, auth=harness.get_service_auth()
            )
            record = response.json()
            return endpoint.path.replace("{id}", record.get("alert_id") or record["id"])
    if "subscribers/{id}" not in endpoint.path:
        return re.sub(r"\{[a-z_]+\}", "1", endpoint.path.replace("{type}", "transfer_p2p"))
    return endpoint.path.replace("{id}", (await harness.create_subscriber())["id"])


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


def list_fields(endpoint: Endpoint) -> list[str]:
    kind = endpoint.body_struct
    return [] if kind is None else [field.encode_name for field in msgspec.structs.fields(kind)]
