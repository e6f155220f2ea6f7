"""A handler with the parameter `tx` runs in one database transaction, which the route ends."""

from collections.abc import AsyncIterator

import httpx2
import pytest

from drivers.in_process import AppTransport
from harness import Harness
from tapgate.core.records import AgentId
from tapgate.http.api.access import Access
from tapgate.http.api.app import App
from tapgate.http.api.request_context import RequestContext
from tapgate.http.endpoint import Endpoints
from tapgate.runtime.store.database import RaiseAfterCommit
from tapgate.runtime.store.transaction import Transaction
from tapgate_client.errors import ApiError, Code
from tapgate_client.schemas.common import SuccessResponse

endpoints = Endpoints("Test", "/test", access=Access(public=True))


async def store_row(tx: Transaction) -> None:
    await tx.execute("INSERT INTO installation (name, value) VALUES ('test row', 'stored')")


def count_connections(request: RequestContext) -> int:
    return request.services.database.pool.get_state().in_use


@endpoints.post("/store")
async def store(request: RequestContext, tx: Transaction) -> SuccessResponse:
    """Store a row."""
    await store_row(tx)
    return SuccessResponse(message="stored")


@endpoints.post("/fail")
async def fail(request: RequestContext, tx: Transaction) -> SuccessResponse:
    """Store a row, then fail."""
    await store_row(tx)
    raise ApiError(Code.NOT_FOUND)


@endpoints.post("/reject")
async def reject(request: RequestContext, tx: Transaction) -> SuccessResponse:
    """Store why the request is rejected."""
    await store_row(tx)
    raise RaiseAfterCommit(ApiError(Code.INVALID_PIN))


async def count_before(request: RequestContext) -> int:
    return count_connections(request)


@endpoints.post("/prepare", prepare=count_before)
async def do_slow_work_first(
    request: RequestContext, tx: Transaction, prepared: int
) -> SuccessResponse:
    """Return the connections in use before and during the transaction."""
    return SuccessResponse(message=f"{prepared}, {count_connections(request)}")


@endpoints.post("/agents/{id}")
async def take_id(request: RequestContext, tx: Transaction, id: AgentId) -> SuccessResponse:
    """Return the connections in use."""
    return SuccessResponse(message=f"{count_connections(request)}")


@pytest.fixture
async def api(harness: Harness) -> AsyncIterator[httpx2.AsyncClient]:
    transport = AppTransport(App(harness.services, endpoints))
    async with httpx2.AsyncClient(transport=transport, base_url="http://gateway") as client:
        yield client


async def is_stored(harness: Harness) -> bool:
    row = await harness.database.fetchval("SELECT value FROM installation WHERE name = 'test row'")
    return row is not None


async def test_changes_are_committed_before_the_response(
    harness: Harness, api: httpx2.AsyncClient
) -> None:
    assert (await api.post("/test/store")).status_code == 200
    assert await is_stored(harness)


async def test_error_rolls_back(harness: Harness, api: httpx2.AsyncClient) -> None:
    assert (await api.post("/test/fail")).status_code == 404
    assert not await is_stored(harness)


async def test_rejection_that_must_be_stored_is_committed(
    harness: Harness, api: httpx2.AsyncClient
) -> None:
    assert (await api.post("/test/reject")).json()["code"] == "INVALID_PIN"
    assert await is_stored(harness)


async def test_slow_work_uses_no_connection(api: httpx2.AsyncClient) -> None:
    assert (await api.post("/test/prepare")).json()["message"] == "0, 1"


async def test_invalid_id_is_rejected_without_a_transaction(
    harness: Harness, api: httpx2.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(type(harness.services), "transaction")
    assert (await api.post("/test/agents/agt_0")).json()["code"] == "AGENT_NOT_FOUND"
