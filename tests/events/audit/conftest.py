from typing import Any

import asyncpg
import pytest

from builders.auth import ACTOR, WriteEntry
from tapgate.events.audit import trail
from tapgate.runtime.store.transaction import Transaction
from tapgate_client import clock, ids


@pytest.fixture
def write_entry() -> WriteEntry:
    """Return a function that adds an audit entry, with default values, in a given transaction."""
    new_id = ids.IdGenerator(ids.SLOT_COUNT - 1)

    async def write(tx: asyncpg.Connection, **fields: Any) -> None:
        values = {
            "event": "card.blocked",
            "resource_type": "card",
            "resource_id": "TAP-1",
            **fields,
        }
        await trail.record(Transaction(tx, clock.system_clock, new_id), ACTOR, **values)

    return write
