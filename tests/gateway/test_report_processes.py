"""Report workers as processes: they are isolated from payments and restarted."""

import asyncio
import contextlib
import signal
from pathlib import Path

import httpx2
import psutil

from drivers.actors import require_success
from drivers.processes import ADMIN, start_tapgate

EXPORT = "/api/v1/transactions/export"


def find_report_worker() -> psutil.Process | None:
    for process in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.Error):
            if "TAPGATE_REPORT_WORKER" in process.environ():
                return process
    return None


async def test_reports_run_in_a_process_that_can_stall_or_die(
    public_tmp_path: Path, database_url: str
) -> None:
    variables = {"TAPGATE_REPORT_WORKERS": "1"}
    async with (
        start_tapgate(
            public_tmp_path, database_url, workers=1, demo="off", variables=variables
        ) as running,
        httpx2.AsyncClient(base_url=running.address, trust_env=False, timeout=60) as client,
    ):
        token = require_success(await client.post("/api/v1/admin/login", json=ADMIN))["token"]
        client.headers["Authorization"] = f"Bearer {token}"
        assert (await client.get(EXPORT)).text.startswith("id,created_at")
        worker = find_report_worker()
        assert worker is not None
        assert worker.nice() == 10

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
        assert (await export).status_code in (200, 503)
        async with asyncio.timeout(60):
            while (await client.get(EXPORT)).status_code != 200:
                await asyncio.sleep(0.05)
        restarted = find_report_worker()
        assert restarted is not None
        assert restarted.pid != worker.pid
