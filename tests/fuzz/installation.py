"""What is fuzzed: Tapgate in processes of its own, on a database of its own, as an operator has it.
The secrets are those of an installation that is gone afterwards."""

import contextlib
import tempfile
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import httpx2

from gateway.running import free_port
from journeys.lines import connected
from journeys.platform import Platform
from messenger.journeys.running import SECRET, VERIFY_TOKEN, Running, provider, up
from tapgate.settings import Settings, load_settings
from tapgate.store.embedded import EmbeddedPostgres

BRIDGE_TOKEN = "the token of the bridge"
APP_SECRET = SECRET
#: Nobody is to be turned away for asking often.
_GENEROUS = {
    "TAPGATE_RATE_LIMIT": "1000000",
    "TAPGATE_RATE_BURST": "1000000",
    "TAPGATE_MESSENGER_RATE": "1000000",
    "TAPGATE_MESSENGER_BRIDGE_TOKEN": BRIDGE_TOKEN,
}


@dataclass(frozen=True)
class Installation:
    running: Running
    platform: Platform
    #: To the messenger, as `platform.client` is to the gateway.
    messenger: httpx2.AsyncClient
    settings: Settings

    async def require_sound(self) -> None:
        """What must be true whatever was asked: the books balance, and nothing went wrong."""
        await self.platform.require_sound_books()
        failed = [line for line in self.running.logged().splitlines() if '"level":"error"' in line]
        assert not failed, failed[:5]


@contextlib.asynccontextmanager
async def installed() -> AsyncIterator[Installation]:
    with tempfile.TemporaryDirectory(prefix="tapgate-fuzz-") as place:
        server = EmbeddedPostgres(Path(place) / "store")
        try:
            async with on_database(Path(place), server.start()) as made:
                yield made
        finally:
            server.stop()


@contextlib.asynccontextmanager
async def on_database(folder: Path, database_url: str) -> AsyncIterator[Installation]:
    port = free_port()
    async with (
        provider(f"http://127.0.0.1:{port}/api/v1/webhooks/messaging") as (_, graph_url),
        up(
            folder,
            database_url,
            messenger_port=port,
            graph_url=graph_url,
            more=_GENEROUS | {"TAPGATE_DATA_DIR": str(folder / "gateway")},
        ) as running,
        connected(running.gateway) as client,
        connected(running.messenger) as messenger,
    ):
        settings = load_settings(
            {
                "TAPGATE_DATA_DIR": str(folder / "gateway"),
                "TAPGATE_MESSENGER_VERIFY_TOKEN": VERIFY_TOKEN,
            }
        )
        yield Installation(running, Platform(client, folder, database_url), messenger, settings)
