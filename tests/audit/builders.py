"""Words that the tests of the audit log share."""

import asyncio
from collections.abc import Awaitable, Callable

from tapgate.audit.chain import Sealer
from tapgate.edge.origin import Origin

WriteEntry = Callable[..., Awaitable[None]]

ORIGIN = Origin(
    actor={"type": "admin", "id": "adm_0000000000001", "name": "Aminata", "role": "system_admin"},
    actor_id="adm_0000000000001",
    ip="192.0.2.7",
    request_id="req-1",
)


async def assert_seals(sealer: Sealer, count: int) -> None:
    """It seals that many, once nothing else on the server is in the way: PostgreSQL's own
    autovacuum, also of another test's database, is a running transaction like any other."""
    sealed = 0
    async with asyncio.timeout(30):
        while sealed < count:
            sealed += await sealer.seal_pending()
            await asyncio.sleep(0.01)
    assert sealed == count
