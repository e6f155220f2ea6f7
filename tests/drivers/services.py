"""Either service in this process, without its database."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import httpx2

from builders.http_apps import run_edge_app
from builders.messenger import run_messenger_app


@asynccontextmanager
async def run_service(
    service: str, folder: Path, variables: Mapping[str, str]
) -> AsyncIterator[httpx2.AsyncClient]:
    if service == "gateway":
        async with run_edge_app(folder, **variables) as gateway:
            yield gateway.client
    else:
        nowhere = f"postgresql:///tapgate?host={folder}/nowhere"
        async with run_messenger_app(folder, nowhere, **variables) as messenger:
            yield messenger.client
