from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any

import asyncpg
import pytest

from tapgate import clock, ids
from tapgate.audit import trail
from tapgate.edge.call import Origin

Write = Callable[..., Awaitable[None]]

ORIGIN = Origin(
    actor={"type": "admin", "id": "adm_0000000000001", "name": "Aminata", "role": "system_admin"},
    actor_id="adm_0000000000001",
    ip="192.0.2.7",
    request_id="req-1",
)


@pytest.fixture
def write() -> Write:
    """Adds an entry in a database transaction; whatever is not said does not matter."""
    services: Any = SimpleNamespace(new_id=ids.IdSource(0), clock=clock.system_clock)

    async def write(tx: asyncpg.Connection, **facts: Any) -> None:
        named = {"event": "card.blocked", "resource_type": "card", "resource_id": "TAP-1", **facts}
        await trail.record(tx, services, ORIGIN, **named)

    return write
