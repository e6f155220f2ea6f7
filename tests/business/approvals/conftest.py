"""Fixtures for approval tests."""

import pytest

from builders.approvals import GuardedRecords
from harness import Harness


@pytest.fixture
async def platform(harness: Harness) -> GuardedRecords:
    platform = GuardedRecords(harness, await harness.create_admin())
    await platform.create_records()
    return platform
