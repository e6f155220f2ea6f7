from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from builders.messenger import MessengerApp, run_messenger_app
from harness import PRODUCTION_ENVIRON


@pytest.fixture
async def messenger(tmp_path: Path, database_url: str) -> AsyncIterator[MessengerApp]:
    """Yield a messenger with development settings."""
    async with run_messenger_app(tmp_path, database_url) as app:
        yield app


@pytest.fixture
async def production_messenger(tmp_path: Path, database_url: str) -> AsyncIterator[MessengerApp]:
    async with run_messenger_app(tmp_path, database_url, **PRODUCTION_ENVIRON) as app:
        yield app


@pytest.fixture
async def offline_messenger(tmp_path: Path) -> AsyncIterator[MessengerApp]:
    """Yield a messenger whose database is unreachable, also for tests that need no database."""
    nowhere = f"postgresql:///tapgate?host={tmp_path}/nowhere"
    async with run_messenger_app(tmp_path, nowhere) as app:
        yield app
