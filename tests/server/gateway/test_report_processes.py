"""Report workers as processes: they are isolated from payments and restarted."""

import asyncio
import contextlib
import os
import signal
from datetime import UTC, datetime
from pathlib import Path

import httpx2
import psutil

from drivers.actors import Admin, require_success
from drivers.csv_files import read_rows
from drivers.processes import ADMIN, start_tapgate

EXPORT = "/api/v1/transactions/export"


def find_report_worker() -> psutil.Process | None:
    for process in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.Error):
            if "TAPGATE_REPORT_WORKER" in process.environ():
                return process
    return None


async def download_statement(admin: Admin) -> bytes:
    """Create a subscriber, issue a statement as PDF, and return the file."""
    app = await admin.create_app("subscribers:write")
    customer = await app.register_customer()
    day = datetime.now(UTC).date().isoformat()
    body = {"subscriber_id": customer.id, "from_date": day, "to_date": day, "format": "pdf"}
    issued = require_success(await admin.post("wallet/account-statement", **body))
    path = httpx2.URL(issued["statement_url"]).path
    return (await admin.client.get(path)).content


async def test_reports_run_in_a_process_that_can_stall_or_die(
    public_tmp_path: Path, database_url: str
) -> None:
    variables = {"TAPGATE_REPORT_WORKERS": "1"}
    async with (
        start_tapgate(
            public_tmp_path,
            database_url,
            workers=1,
            demo="off",
            variables=variables,
            fork_workers=False,
        ) as running,
        httpx2.AsyncClient(base_url=running.address, trust_env=False, timeout=60) as client,
    ):
        admin = await Admin.log_in(client, **ADMIN)
        client.auth = admin.auth
        columns, *_ = read_rows((await client.get(EXPORT)).content)
        assert columns[:2] == ["id", "created_at"]
        assert (await download_statement(admin)).startswith(b"%PDF-")
        worker = find_report_worker()
        assert worker is not None
        assert worker.nice() == min(os.nice(0) + 10, 19)

        worker.send_signal(signal.SIGSTOP)
        export = asyncio.create_task(client.get(EXPORT))
        assert (await client.get("/api/v1/transactions")).status_code == 200
        assert not export.done()
        worker.send_signal(signal.SIGCONT)
        assert (await export).status_code == 200

        # A report in progress fails, and the next waits for the new worker.
        worker.send_signal(signal.SIGSTOP)
        export = asyncio.create_task(client.get(EXPORT))
        assert (await client.get("/api/v1/transactions")).status_code == 200
        worker.kill()
        response = await export
        async with asyncio.timeout(60):
            while response.status_code != 200:
                assert (response.status_code, response.headers["Retry-After"]) == (503, "1")
                response = await client.get(EXPORT)
        restarted = find_report_worker()
        assert restarted is not None
        assert restarted.pid != worker.pid
