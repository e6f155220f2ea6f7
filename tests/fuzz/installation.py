"""The system under test: Tapgate in separate processes with its own database.

The secrets belong to an installation that is deleted afterwards.
"""

import contextlib
import tempfile
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import httpx2

from drivers.deployments import Deployment
from drivers.processes import (
    GRAPH_APP_SECRET,
    VERIFY_TOKEN,
    RunningServices,
    free_port,
    open_client,
    run_provider,
    run_services,
)
from tapgate.core.settings import Settings, load_settings
from tapgate.runtime.store.embedded import EmbeddedPostgres

BRIDGE_TOKEN = "the token of the bridge"
APP_SECRET = GRAPH_APP_SECRET
#: Rate limits that are never reached, and the bridge token.
_SETTINGS = {
    "TAPGATE_RATE_LIMIT": "1000000",
    "TAPGATE_RATE_BURST": "1000000",
    "TAPGATE_MESSENGER_RATE": "1000000",
    "TAPGATE_MESSENGER_BRIDGE_TOKEN": BRIDGE_TOKEN,
}


@dataclass(frozen=True)
class Installation:
    running: RunningServices
    deployment: Deployment
    #: Client for the messenger. `deployment.client` is the client for the gateway.
    messenger: httpx2.AsyncClient
    settings: Settings

    async def require_no_failures(self) -> None:
        """Assert that the books balance and no error was logged."""
        await self.deployment.require_balanced_books()
        failed = [
            line for line in self.running.read_log().splitlines() if '"level":"error"' in line
        ]
        assert not failed, failed[:5]


@contextlib.asynccontextmanager
async def create_installation() -> AsyncIterator[Installation]:
    with tempfile.TemporaryDirectory(prefix="tapgate-fuzz-") as folder:
        server = EmbeddedPostgres(Path(folder) / "store")
        try:
            async with run_installation(Path(folder), server.start()) as installation:
                yield installation
        finally:
            server.stop()


@contextlib.asynccontextmanager
async def run_installation(folder: Path, database_url: str) -> AsyncIterator[Installation]:
    port = free_port()
    async with (
        run_provider(f"http://127.0.0.1:{port}/api/v1/webhooks/messaging") as (_, graph_url),
        run_services(
            folder,
            database_url,
            messenger_port=port,
            graph_url=graph_url,
            more=_SETTINGS | {"TAPGATE_DATA_DIR": str(folder / "gateway")},
        ) as running,
        open_client(running.gateway) as client,
        open_client(running.messenger) as messenger,
    ):
        settings = load_settings(
            {
                "TAPGATE_DATA_DIR": str(folder / "gateway"),
                "TAPGATE_MESSENGER_VERIFY_TOKEN": VERIFY_TOKEN,
            }
        )
        yield Installation(running, Deployment(client, folder, database_url), messenger, settings)
