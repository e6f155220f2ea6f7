from typing import Any

import asyncpg
import pytest

from builders.auth import ACTOR, WriteEntry
from tapgate.core.id_generator import SLOT_COUNT, IdGenerator
from tapgate.events.audit import trail
from tapgate.runtime.store.transaction import Transaction
from tapgate_client import clock


@pytest.fixture
def write_entry() -> WriteEntry:
    """Return a function that adds an audit entry, with default values, in a given transaction."""
    new_id = IdGenerator(SLOT_COUNT - 1)

    async def write(tx: asyncpg.Connection, **fields: Any) -> None:
        values = {
            "event": "card.blocked",
            "resource_type": "card",
            "resource_id": "TAP-1",
            **fields,
        }
        await trail.record(Transaction(tx, clock.system_clock, new_id), ACTOR, **values)

    return write
