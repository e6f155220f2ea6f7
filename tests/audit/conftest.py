from types import SimpleNamespace
from typing import Any

import asyncpg
import pytest

from audit.builders import ORIGIN, WriteEntry
from tapgate import clock, ids
from tapgate.audit import trail


@pytest.fixture
def write_entry() -> WriteEntry:
    """Return a function that adds an audit entry, with default values, in a given transaction."""
    services: Any = SimpleNamespace(
        new_id=ids.IdGenerator(ids.SLOT_COUNT - 1), clock=clock.system_clock
    )

    async def write(tx: asyncpg.Connection, **fields: Any) -> None:
        values = {
            "event": "card.blocked",
            "resource_type": "card",
            "resource_id": "TAP-1",
            **fields,
        }
        await trail.record(tx, services, ORIGIN, **values)

    return write
