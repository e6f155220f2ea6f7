from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from messenger.routes.builders import PRODUCTION_ENVIRON, MessengerApp, run_messenger_app


@pytest.fixture
async def messenger(tmp_path: Path, database_url: str) -> AsyncIterator[MessengerApp]:
    """Messenger with development settings."""
    async with run_messenger_app(tmp_path, database_url) as app:
        yield app


@pytest.fixture
async def production_messenger(tmp_path: Path, database_url: str) -> AsyncIterator[MessengerApp]:
    async with run_messenger_app(tmp_path, database_url, **PRODUCTION_ENVIRON) as app:
        yield app


@pytest.fixture
async def offline_messenger(tmp_path: Path) -> AsyncIterator[MessengerApp]:
    """Messenger without a database, also for requests rejected before any database access."""
    nowhere = f"postgresql:///tapgate?host={tmp_path}/nowhere"
    async with run_messenger_app(tmp_path, nowhere) as app:
        yield app
