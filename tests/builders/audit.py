"""Helpers shared by the tests of the audit log."""

import asyncio
from collections.abc import Awaitable, Callable

from tapgate.audit.chain import Sealer
from tapgate.auth.actors import Actor

WriteEntry = Callable[..., Awaitable[None]]

ACTOR = Actor(
    record={"type": "admin", "id": "adm_0000000000001", "name": "Aminata", "role": "system_admin"},
    ip="192.0.2.7",
    request_id="req-1",
)


async def assert_seals(sealer: Sealer, count: int) -> None:
    """Seal pending entries for up to 30 seconds and assert that exactly `count` are sealed.

    Several attempts may be needed: sealing waits for all running transactions of the server,
    such as autovacuum in another test's database.
    """
    sealed = 0
    async with asyncio.timeout(30):
        while sealed < count:
            sealed += await sealer.seal_pending()
            await asyncio.sleep(0.01)
    assert sealed == count
