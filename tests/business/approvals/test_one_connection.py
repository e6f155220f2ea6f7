"""A handler with a database transaction needs no second connection.

If it did, requests that fill the pool would wait for each other until they time out.
"""

import dataclasses
from collections.abc import AsyncIterator

import httpx2
import pytest

from builders.approvals import GuardedRecords, approve, build_rule, require_held, set_rules
from drivers.in_process import AppTransport
from harness import Harness
from tapgate.http.api.services import Services
from tapgate.runtime.store.database import Database
from tapgate.server.gateway import create_app
from tapgate_client.schemas.approvals import GUARDABLE_OPERATIONS


@pytest.fixture
async def platform(services: Services, database_url: str) -> AsyncIterator[GuardedRecords]:
    """Yield records in a gateway whose requests share one connection."""
    database = await Database.connect(database_url, size=1)
    transport = AppTransport(create_app(dataclasses.replace(services, database=database)))
    async with httpx2.AsyncClient(transport=transport, base_url="http://gateway") as client:
        harness = Harness(services, client)
        platform = GuardedRecords(harness, await harness.create_admin())
        await platform.create_records()
        yield platform
    await database.close()


async def test_requests_need_one_connection(platform: GuardedRecords) -> None:
    for _, method, path, body in await platform.list_requests():
        response = await platform.send(method, path, body)
        assert response.status_code < 300, (method, path, response.text)


async def test_approved_requests_need_one_connection(platform: GuardedRecords) -> None:
    harness = platform.harness
    await set_rules(harness, *(build_rule(operation) for operation in GUARDABLE_OPERATIONS))
    requests, approver = await platform.list_requests(), await harness.create_admin("F")
    for _, method, path, body in requests:
        approval = require_held(await platform.send(method, path, body))
        executed = await approve(harness, approval, approver)
        assert executed["status"] == "executed", (method, path, executed)
