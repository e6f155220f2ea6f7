"""Helpers shared by the tests of the audit log."""

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
    """Seal pending entries and assert that `count` of them get sealed.

    This may take several attempts: autovacuum, even in another test's database, is a running
    transaction that sealing has to wait for.
    """
    sealed = 0
    async with asyncio.timeout(30):
        while sealed < count:
            sealed += await sealer.seal_pending()
            await asyncio.sleep(0.01)
    assert sealed == count
