"""Fixtures for approval tests."""

import pytest

from builders.approvals import Platform
from harness import Harness


@pytest.fixture
async def platform(harness: Harness) -> Platform:
    platform = Platform(harness, await harness.create_admin())
    await platform.create_records()
    return platform
