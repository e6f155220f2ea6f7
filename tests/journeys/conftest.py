"""Every journey has a gateway and a database of its own, and ends with its books proven."""

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import httpx2
import pytest

from gateway.running import gateway
from journeys.platform import Platform
from journeys.staff import Admin


async def _no_failure_of_ours(answer: httpx2.Response) -> None:
    assert answer.status_code < 500, await answer.aread()


@contextlib.asynccontextmanager
async def started(folder: Path, database_url: str) -> AsyncIterator[Platform]:
    async with (
        gateway(folder, database_url, workers=2) as address,
        httpx2.AsyncClient(
            base_url=address,
            trust_env=False,
            timeout=60,
            event_hooks={"response": [_no_failure_of_ours]},
        ) as client,
    ):
        yield Platform(client, folder, database_url)
    assert '"level":"error"' not in (folder / "log").read_text()


@pytest.fixture
async def running(folder: Path, database_url: str) -> AsyncIterator[Platform]:
    async with started(folder, database_url) as platform:
        yield platform


@pytest.fixture
async def platform(running: Platform) -> AsyncIterator[Platform]:
    """The only way to a gateway here, so that no journey goes unproven."""
    yield running
    await running.require_sound_books()


@pytest.fixture
async def ada(platform: Platform) -> Admin:
    return await platform.ada()
