"""Gateway and messenger in separate processes, with a fake provider over HTTP."""

import asyncio
import contextlib
import os
import signal
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from types import MappingProxyType

import psutil

from gateway.processes import ADMIN, TAPGATE_EXECUTABLE, free_port
from messenger.journeys.services_driver import build_flow_key
from tapgate.sandbox.fake_provider import server
from tapgate.sandbox.fake_provider.provider import Provider

ACCESS_TOKEN, PHONE_NUMBER_ID, GRAPH_APP_SECRET = (
    "EAAG-canary-access-7c1e",
    "106540352242922",
    "canary-app-secret-e41b",
)
VERIFY_TOKEN, BRIDGE_TOKEN = "canary-verify-token-90af", "canary-bridge-token-3d27"


class RunningServices:
    def __init__(
        self, process: asyncio.subprocess.Process, gateway: str, messenger: str, log: Path
    ) -> None:
        self._supervisor = psutil.Process(process.pid)
        self.gateway = gateway
        self.messenger = messenger
        self._log = log

    def list_processes(self, service: str) -> list[psutil.Process]:
        found = []
        for child in self._supervisor.children():
            with contextlib.suppress(psutil.Error):  # the process may have exited
                # The gateway's module is `tapgate.gateway` or `tapgate.sandbox.gateway`.
                if any(
                    part.startswith("tapgate.") and part.endswith(f".{service}")
                    for part in child.cmdline()
                ):
                    found.append(child)
        return found

    def send_signal(self, service: str, number: signal.Signals) -> None:
        for child in self.list_processes(service):
            child.send_signal(number)

    def read_log(self) -> str:
        return self._log.read_text()


@contextlib.asynccontextmanager
async def run_provider(callback: str) -> AsyncIterator[tuple[Provider, str]]:
    provider = Provider(
        access_token=ACCESS_TOKEN,
        phone_number_id=PHONE_NUMBER_ID,
        callback=callback,
        app_secret=GRAPH_APP_SECRET,
    )
    async with server.serve(provider) as url:
        yield provider, url


@contextlib.asynccontextmanager
async def run_services(
    folder: Path,
    database_url: str,
    *,
    messenger_port: int,
    graph_url: str,
    workers: int = 1,
    more: Mapping[str, str] = MappingProxyType({}),
) -> AsyncIterator[RunningServices]:
    """Run the services with the settings in `more`, and require a clean stop on SIGTERM."""
    port = free_port()
    environ = {name: value for name, value in os.environ.items() if "TAPGATE" not in name}
    with (folder / "log").open("ab") as log:
        process = await asyncio.create_subprocess_exec(
            TAPGATE_EXECUTABLE,
            "up",
            env=environ
            | {
                "TAPGATE_DATA_DIR": str(folder / "data"),
                "TAPGATE_DATABASE_URL": database_url,
                "TAPGATE_PORT": str(port),
                "TAPGATE_MESSENGER_PORT": str(messenger_port),
                "TAPGATE_MESSENGER_WORKERS": str(workers),
                "TAPGATE_MESSENGER_GRAPH_URL": graph_url,
                "TAPGATE_MESSENGER_ACCESS_TOKEN": ACCESS_TOKEN,
                "TAPGATE_MESSENGER_PHONE_NUMBER_ID": PHONE_NUMBER_ID,
                "TAPGATE_MESSENGER_APP_SECRET": GRAPH_APP_SECRET,
                "TAPGATE_MESSENGER_VERIFY_TOKEN": VERIFY_TOKEN,
                "TAPGATE_MESSENGER_BRIDGE_TOKEN": BRIDGE_TOKEN,
                "TAPGATE_MESSENGER_FLOW_PRIVATE_KEY": build_flow_key()[0],
                "TAPGATE_MESSENGER_RATE": "1000",
                "TAPGATE_ADMIN_EMAIL": ADMIN["email"],
                "TAPGATE_ADMIN_PASSWORD": ADMIN["password"],
                "TAPGATE_DEMO": "off",
                **more,
            },
            stdout=asyncio.subprocess.PIPE,
            stderr=log,
        )
    try:
        assert process.stdout is not None
        while not (line := await process.stdout.readline()).startswith(b"Press Ctrl-C"):
            assert line, (folder / "log").read_text()
        yield RunningServices(
            process,
            f"http://127.0.0.1:{port}",
            f"http://127.0.0.1:{messenger_port}",
            folder / "log",
        )
    finally:
        process.terminate()
        assert await process.wait() == 0
