"""The system under test: Tapgate in separate processes with its own database.

It starts twice: a first time on the day before, for a closed day with transactions and the partner
that represents another book, which the settings of the second start name.

The secrets belong to an installation that is deleted afterwards.
"""

import contextlib
import json
import tempfile
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from pathlib import Path

import httpx2

from builders.passkeys import ORIGIN
from drivers.actors import Partner
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
from drivers.webhooks import EmptyBook
from tapgate.core.settings import Settings, load_settings
from tapgate.runtime.store.embedded import EmbeddedPostgres
from tapgate_client import ids
from tapgate_client.clock import system_clock
from tapgate_sandbox.clock import FILE_NAME, write_offset

BRIDGE_TOKEN = "the token of the bridge"
APP_SECRET = GRAPH_APP_SECRET
_DAY = timedelta(days=1)
#: Rate limits that are never reached, the bridge token, payouts to new bank accounts, and passkeys.
_SETTINGS = {
    "TAPGATE_RATE_LIMIT": "1000000",
    "TAPGATE_RATE_BURST": "1000000",
    "TAPGATE_MESSENGER_RATE": "1000000",
    "TAPGATE_MESSENGER_BRIDGE_TOKEN": BRIDGE_TOKEN,
    "TAPGATE_BANK_ACCOUNT_COOLDOWN": "0",
    "TAPGATE_PUBLIC_URL": ORIGIN,
}


@dataclass(frozen=True)
class Installation:
    running: RunningServices
    deployment: Deployment
    #: The day before, which has transactions.
    first_day: str
    #: The partner that represents another book, with its key.
    other_book: Partner
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
    own_settings = _SETTINGS | {"TAPGATE_DATA_DIR": str(folder / "gateway")}
    async with run_provider(f"http://127.0.0.1:{port}/api/v1/webhooks/messaging") as (_, graph_url):
        start = partial(
            run_services, folder, database_url, messenger_port=port, graph_url=graph_url
        )
        clock_file = folder / "gateway" / FILE_NAME
        clock_file.parent.mkdir(parents=True, exist_ok=True)
        write_offset(clock_file, -_DAY.total_seconds())
        first_day = str((system_clock() - _DAY).date())
        async with start(more=own_settings) as running, open_client(running.gateway) as client:
            other_book = await _create_other_book(Deployment(client, folder, database_url))
        clock_file.unlink()
        empty_book = EmptyBook()
        async with (
            empty_book.listen(),
            start(more=own_settings | _build_book_settings(other_book, empty_book)) as running,
            open_client(running.gateway) as client,
            open_client(running.messenger) as messenger,
        ):
            deployment = Deployment(client, folder, database_url)
            settings = load_settings(
                {
                    "TAPGATE_DATA_DIR": str(folder / "gateway"),
                    "TAPGATE_MESSENGER_VERIFY_TOKEN": VERIFY_TOKEN,
                }
            )
            yield Installation(running, deployment, first_day, other_book, messenger, settings)


async def _create_other_book(deployment: Deployment) -> Partner:
    ada = await deployment.log_in_admin()
    partner = await ada.create_partner("Other book")
    await ada.fund_partner(partner, "900000")
    return partner


def _build_book_settings(partner: Partner, book: EmptyBook) -> dict[str, str]:
    peer = {
        "url": book.url,
        "partner": partner.id,
        "own_partner": partner.id,
        "key": ids.encode(ids.KEY, 1),
    }
    return {
        "TAPGATE_BOOK": "north",
        "TAPGATE_BOOK_PEERS": json.dumps({"south": peer}),
        "TAPGATE_BOOK_SECRETS": json.dumps({"south": "the secret of the other book"}),
    }
