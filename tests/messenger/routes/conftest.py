from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from messenger.routes.stage import PRODUCTION, Stage, stage


@pytest.fixture
async def messenger(tmp_path: Path, database_url: str) -> AsyncIterator[Stage]:
    """As in development."""
    async with stage(tmp_path, database_url) as made:
        yield made


@pytest.fixture
async def in_production(tmp_path: Path, database_url: str) -> AsyncIterator[Stage]:
    async with stage(tmp_path, database_url, **PRODUCTION) as made:
        yield made


@pytest.fixture
async def without_database(tmp_path: Path) -> AsyncIterator[Stage]:
    """Also for what must be refused before anything is looked up."""
    nowhere = f"postgresql:///tapgate?host={tmp_path}/nowhere"
    async with stage(tmp_path, nowhere) as made:
        yield made
