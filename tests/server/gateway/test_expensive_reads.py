"""Expensive reads have their own slots and cannot starve other requests."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest

from builders.batches import create_draft
from harness import BearerAuth, Harness
from tapgate.business.payments.wallets.statements import queries
from tapgate.http.api.services import Services, create_heavy_read_limit
from tapgate.runtime.fair_limit import FairLimit
from tapgate.server.gateway import ENDPOINT_GROUPS

STATEMENT_URL = "/api/v1/wallet/account-statement"


class BlockingReads:
    """Blocks database reads for statements until the test resumes them."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.running = self.max_running = 0
        self.resume = asyncio.Event()
        self._read = queries.load_activity
        monkeypatch.setattr(queries, "load_activity", self.read)

    async def read(self, *arguments: Any) -> queries.WalletActivity:
        self.running += 1
        self.max_running = max(self.max_running, self.running)
        await self.resume.wait()
        self.running -= 1
        return await self._read(*arguments)

    async def wait_for_running(self, count: int) -> None:
        async with asyncio.timeout(30):
            while self.running < count:
                await asyncio.sleep(0.01)


@pytest.fixture
async def blocking_reads(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[BlockingReads]:
    reads = BlockingReads(monkeypatch)
    yield reads
    reads.resume.set()


async def test_caller_is_limited_to_two_heavy_read_slots_and_eight_queued_reads(
    harness: Harness, blocking_reads: BlockingReads
) -> None:
    subscriber = await harness.create_subscriber()
    body = {"subscriber_id": subscriber["id"], "from_date": "2026-01-01", "to_date": "2026-01-31"}

    def request_statement(caller: BearerAuth) -> asyncio.Task[httpx2.Response]:
        return asyncio.create_task(harness.post(STATEMENT_URL, json=body, auth=caller))

    greedy, other = await harness.create_api_key("payments:read"), await harness.create_admin("F")
    flood = [request_statement(greedy) for _ in range(30)]
    await blocking_reads.wait_for_running(2)
    other_task = request_statement(other)
    await blocking_reads.wait_for_running(3)
    # Of the greedy caller's reads, two run, eight are queued, and twenty are rejected immediately.
    async with asyncio.timeout(30):
        while sum(task.done() for task in flood) < 20:
            await asyncio.sleep(0.01)
    listed = await asyncio.gather(
        *(harness.get("/api/v1/subscribers", auth=other) for _ in range(20))
    )
    assert {response.status_code for response in listed} == {200}
    blocking_reads.resume.set()
    assert (await other_task).status_code == 200
    responses = [await task for task in flood]
    rejected = [response for response in responses if response.status_code != 200]
    assert len(rejected) >= 20
    assert {response.status_code for response in rejected} <= {503}
    assert {response.headers["retry-after"] for response in rejected} <= {"1"}
    assert blocking_reads.max_running == 3


async def test_heavy_reads_of_many_callers_never_exceed_the_slots(
    harness: Harness, blocking_reads: BlockingReads
) -> None:
    harness.services.heavy_read_limit = FairLimit(
        "busy", slots=4, slots_per_group=2, queue=32, queue_per_group=8, timeout=0.05
    )
    subscriber = await harness.create_subscriber()
    body = {"subscriber_id": subscriber["id"], "from_date": "2026-01-01", "to_date": "2026-01-31"}
    callers = [await harness.create_api_key("payments:read") for _ in range(10)]
    tasks = [
        asyncio.create_task(harness.post(STATEMENT_URL, json=body, auth=caller))
        for caller in callers
    ]
    await blocking_reads.wait_for_running(4)
    # The remaining requests time out in the queue.
    async with asyncio.timeout(30):
        while sum(task.done() for task in tasks) < 6:
            await asyncio.sleep(0.01)
    blocking_reads.resume.set()
    statuses = sorted([(await task).status_code for task in tasks])
    assert (statuses, blocking_reads.max_running) == ([200] * 4 + [503] * 6, 4)


def test_expensive_endpoints_are_declared_heavy() -> None:
    declared = {
        endpoint.name: endpoint.heavy
        for group in ENDPOINT_GROUPS
        for endpoint in group
        if endpoint.heavy
    }
    assert declared == {
        "GET /api/v1/subscribers": "search",
        "GET /api/v1/subscribers/{id}/timeline": True,
        "GET /api/v1/cards": "search",
        "GET /api/v1/cards/{serial}/taps": True,
        "GET /api/v1/agents": "search",
        "GET /api/v1/processors": "search",
        "GET /api/v1/admin/partners": "search",
        "POST /api/v1/wallet/account-statement": True,
        "POST /api/v1/statements": True,
        "GET /api/v1/statements/{token}": True,
        "GET /api/v1/transactions": "expensive_order",
        "GET /api/v1/processors/{id}/transactions": "expensive_order",
        "GET /api/v1/admin/webhook-endpoints/{id}/deliveries": "status",
        "GET /api/v1/transactions/export": True,
        "GET /api/v1/transactions/totals": True,
        "GET /api/v1/processors/{id}/summary": True,
        "GET /api/v1/agents/liquidity": True,
        "GET /api/v1/agents/totals": "search",
        "GET /api/v1/processors/totals": "search",
        "GET /api/v1/admin/partners/totals": "search",
        "GET /api/v1/admin/request-logs": True,
        "GET /api/v1/audit/logs": True,
        "GET /api/v1/ledger/accounts": True,
        "GET /api/v1/ledger/trial-balance": True,
        "GET /api/v1/ledger/trial-balance/file": True,
        "GET /api/v1/ledger/journal": True,
        "GET /api/v1/reports/income-statement": True,
        "GET /api/v1/reports/reconciliation": True,
        "GET /api/v1/reports/safeguarding": True,
        "GET /api/v1/books/position": True,
        "GET /api/v1/books/report": True,
        "GET /api/v1/batches/{id}/lines": "expensive_format",
        "GET /api/v1/search": True,
    }
    searches = [
        endpoint.name
        for group in ENDPOINT_GROUPS
        for endpoint in group
        if endpoint.query_type and "search" in endpoint.query_type.__struct_fields__
    ]
    assert set(searches) == {name for name, heavy in declared.items() if heavy == "search"}


def occupy_all_slots(services: Services) -> None:
    services.heavy_read_limit = FairLimit(
        "busy", slots=0, slots_per_group=1, queue=0, queue_per_group=0, timeout=1
    )


async def test_page_of_batch_lines_needs_no_heavy_read_slot_but_the_file_does(
    harness: Harness, services: Services
) -> None:
    batch_id = await create_draft(harness, [("+23276000001", "1", "A")])
    finance = await harness.create_admin("F")
    occupy_all_slots(services)
    url = f"/api/v1/batches/{batch_id}/lines"
    for query in ({}, {"format": "json"}):
        assert (await harness.get(url, params=query, auth=finance)).status_code == 200
    assert (await harness.get(url, params={"format": "csv"}, auth=finance)).status_code == 503


async def test_list_without_search_needs_no_heavy_read_slot(
    harness: Harness, services: Services
) -> None:
    occupy_all_slots(services)
    support = await harness.create_admin("S")
    url = "/api/v1/subscribers"
    assert (await harness.get(url, auth=support)).status_code == 200
    response = await harness.get(url, params={"search": "kamara"}, auth=support)
    assert (response.status_code, response.json()["code"]) == (503, "SERVICE_UNAVAILABLE")
    services.heavy_read_limit = create_heavy_read_limit()
    assert (await harness.get(url, params={"search": "kamara"}, auth=support)).status_code == 200
