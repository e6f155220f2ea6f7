"""Report workers: the same responses as in the gateway worker, streamed and canceled on request."""

import asyncio
import base64
import contextlib
import dataclasses
import io
import socket
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from PIL import Image

from drivers.csv_files import read_rows
from harness import Harness, parse_error
from tapgate.auth.principals import Principal
from tapgate.http.api import report_calls, report_server
from tapgate.http.api.report_calls import ReportClient
from tapgate.http.api.report_server import ReportServer
from tapgate.http.api.request_context import RequestContext
from tapgate.http.api.services import Services
from tapgate.runtime.handover import LISTEN_BACKLOG
from tapgate.server.gateway import ENDPOINT_GROUPS, create_app

V1 = "/api/v1"


@contextlib.asynccontextmanager
async def run_report_worker(services: Services) -> AsyncIterator[None]:
    """Run a report worker in this process and let the gateway use it."""
    with (
        tempfile.TemporaryDirectory(prefix="tapgate-test-") as folder,
        socket.socket(socket.AF_UNIX) as listener,
    ):
        path = str(Path(folder, "reports.sock"))
        listener.bind(path)
        listener.listen(LISTEN_BACKLOG)
        worker_services = dataclasses.replace(services)
        server = ReportServer(create_app(worker_services), worker_services)
        stop = asyncio.Event()
        serving = asyncio.create_task(server.serve(listener, stop))
        services.report_client = ReportClient(path)
        try:
            yield
        finally:
            services.report_client = None
            stop.set()
            await serving


def get_stable_headers(response: httpx2.Response) -> dict[str, str]:
    # Streams are not compressed, so they do not vary.
    changing = ("x-request-id", "x-ratelimit-remaining", "x-ratelimit-reset", "vary")
    return {name: text for name, text in response.headers.items() if name not in changing}


async def send_reports(harness: Harness, auth: Any, subscriber: str) -> list[httpx2.Response]:
    day = harness.services.clock().date().isoformat()
    period = {"from_date": day, "to_date": day}
    statement = {"subscriber_id": subscriber, **period}
    gets = [
        "/transactions/export",
        "/transactions/export?limit=1",
        "/transactions/export?limit=0",
        f"/ledger/journal?day={day}",
        f"/ledger/journal?day={day}&format=csv&limit=1",
        f"/ledger/journal?day={day}&format=beancount",
        f"/ledger/trial-balance?as_of={day}",
        "/ledger/accounts",
        "/audit/verify?full=maybe",
    ]
    posts = [
        {**statement, "format": "json"},
        {**statement, "subscriber_id": "sub_0000000000000", "format": "csv"},
        {**statement, "format": "png"},
    ]
    return [
        *[await harness.client.get(V1 + path, auth=auth) for path in gets],
        *[
            await harness.client.post(f"{V1}/wallet/account-statement", json=body, auth=auth)
            for body in posts
        ],
        await harness.client.head(f"{V1}/transactions/export", auth=auth),
        await harness.client.get(f"{V1}/statements/unknown-token"),
    ]


async def test_reports_are_the_same_as_in_the_gateway_worker(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    harness.client.headers["accept-encoding"] = "identity"
    admin = await harness.create_admin()
    subscriber = await harness.create_subscriber()
    for amount in ("1", "2", "3"):
        await harness.deposit(subscriber["id"], amount)
    expected = await send_reports(harness, admin, subscriber["id"])
    for chunk_bytes in (report_calls.CHUNK_BYTES, 100):  # whole bodies, and streams
        monkeypatch.setattr(report_calls, "CHUNK_BYTES", chunk_bytes)
        monkeypatch.setattr(report_server, "CHUNK_BYTES", chunk_bytes)
        async with run_report_worker(harness.services):
            responses = await send_reports(harness, admin, subscriber["id"])
        for response, other in zip(responses, expected, strict=True):
            assert response.status_code == other.status_code, response.request.url
            assert get_stable_headers(response) == get_stable_headers(other)
            if "account-statement" in str(other.request.url) and other.status_code == 200:
                assert response.json()["entries"] == other.json()["entries"]
            elif response.headers["content-type"] == "application/json":
                assert response.json() == other.json()
            else:
                assert response.content == other.content
    statuses = {response.status_code for response in expected}
    assert statuses == {200, 404, 422}


async def test_statement_file_is_rendered_and_downloaded_by_a_report_worker(
    harness: Harness,
) -> None:
    admin = await harness.create_admin()
    subscriber = await harness.create_subscriber(balance="5")
    day = harness.services.clock().date().isoformat()
    body = {"subscriber_id": subscriber["id"], "from_date": day, "to_date": day, "format": "pdf"}
    async with run_report_worker(harness.services):
        issued = await harness.client.post(f"{V1}/wallet/account-statement", json=body, auth=admin)
        path = "/api" + issued.json()["statement_url"].partition("/api")[2]
        file = await harness.client.get(path)
    assert file.content.startswith(b"%PDF-")
    assert file.headers["content-type"] == "application/pdf"
    entries = await harness.list_audit_entries(subscriber["id"], "subscriber.statement_issued")
    assert [entry["actor"]["id"] for entry in entries] == [admin.id]


async def test_image_is_processed_by_a_report_worker(harness: Harness) -> None:
    admin = await harness.create_admin()
    subscriber = await harness.create_subscriber()
    content = io.BytesIO()
    Image.effect_noise((500, 400), 40).save(content, "PNG")  # larger than a chunk
    image = base64.b64encode(content.getvalue()).decode()
    path = f"{V1}/subscribers/{subscriber['id']}/kyc-documents"
    async with run_report_worker(harness.services):
        responses = [
            await harness.client.post(
                path,
                json={"document_type": "id_front", "image": f"data:image/png;base64,{text}"},
                auth=admin,
            )
            for text in (image, "AAAA")
        ]
    assert [response.status_code for response in responses] == [201, 422]
    assert responses[0].json()["kyc_status"] == "PENDING"
    seen = await harness.client.get(f"{path}/{responses[0].json()['document_id']}", auth=admin)
    assert Image.open(io.BytesIO(seen.content)).size == (500, 400)


async def test_verification_and_files_reach_console_pages(harness: Harness) -> None:
    admin = await harness.create_admin()
    await harness.create_subscriber(balance="5")
    app = create_app(harness.services)

    async def dispatch(method: str, path: str) -> Any:
        return await app.dispatch(
            RequestContext(
                services=harness.services,
                method=method,
                path=V1 + path,
                query=b"",
                headers={},
                ip="127.0.0.1",
                request_id="test",
                caller=Principal(
                    kind="admin", id=admin.id, name="Ada", role="system_admin", admin_id=1
                ),
            )
        )

    async with run_report_worker(harness.services):
        proof = await dispatch("POST", "/ledger/verify")
        assert proof["holds"] is True
        assert (await dispatch("GET", "/audit/verify"))["valid"] is True
        export = await dispatch("GET", "/transactions/export")
    columns, *rows = read_rows(export.body)
    assert columns[:2] == ["id", "created_at"]
    assert len(rows) == 1
    assert "filename=" in export.headers["Content-Disposition"]


async def test_reports_are_unavailable_while_no_report_worker_runs(harness: Harness) -> None:
    admin = await harness.create_admin()
    harness.services.report_client = ReportClient("/nonexistent/reports.sock")
    response = await harness.client.get(f"{V1}/transactions/export", auth=admin)
    assert parse_error(response) == (503, "SERVICE_UNAVAILABLE")
    assert response.headers["Retry-After"] == "1"
    other = await harness.client.get(f"{V1}/transactions", auth=admin)
    assert other.status_code == 200


async def count_waiting(services: Services) -> int:
    """Count the sessions that wait for a lock."""
    count: int = await services.database.fetchval(
        """SELECT count(*) FROM pg_stat_activity
           WHERE datname = current_database() AND wait_event_type = 'Lock'"""
    )
    return count


async def wait_for_count(services: Services, expected: int) -> None:
    async with asyncio.timeout(30):
        while await count_waiting(services) != expected:
            await asyncio.sleep(0.02)


async def test_canceled_report_ends_its_query_on_the_server(harness: Harness) -> None:
    admin, services = await harness.create_admin(), harness.services
    await harness.create_subscriber(balance="5")
    async with run_report_worker(services):
        async with services.queue_database.transaction() as tx:
            await tx.execute("LOCK TABLE transactions IN ACCESS EXCLUSIVE MODE")
            for _ in range(5):  # more than a caller may run at the same time
                request = harness.client.get(f"{V1}/transactions/export", auth=admin)
                task = asyncio.create_task(request)
                await wait_for_count(services, 1)
                task.cancel()
                await wait_for_count(services, 0)
        response = await harness.client.get(f"{V1}/transactions/export", auth=admin)
        assert response.status_code == 200


async def test_report_worker_rejects_other_endpoints(harness: Harness) -> None:
    admin = await harness.create_admin()
    request = RequestContext(
        services=harness.services,
        method="GET",
        path=f"{V1}/transactions",
        query=b"",
        headers={},
        ip="127.0.0.1",
        request_id="test",
        caller=Principal(kind="admin", id=admin.id, name="Ada", role="system_admin"),
    )
    async with run_report_worker(harness.services):
        client = harness.services.report_client
        assert client is not None
        with pytest.raises(Exception, match="INTERNAL_ERROR"):
            await client.call(request, request.caller)


def test_reports_do_not_move_money() -> None:
    reports = [endpoint for group in ENDPOINT_GROUPS for endpoint in group if endpoint.report]
    assert len(reports) == 17
    assert not any(endpoint.moves_money for endpoint in reports)
