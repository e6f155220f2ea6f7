"""What is old is removed, and nothing else."""

from datetime import timedelta

import pytest

from messenger.outbox.stage import Outbox
from tapgate.messenger.outbox import retention
from tapgate.messenger.outbox.retention import Retention


async def _receive(outbox: Outbox, number: int, status: str) -> None:
    await outbox.database.execute(
        """INSERT INTO messenger.received (id, message_id, address, sent_at, reserved_for,
                                           reserved_until, status, received_at)
           VALUES ($1, $2, 'a', 0, 0, $4, $3, $4)""",
        number,
        f"{number} {status}",
        status,
        outbox.clock(),
    )


async def _left(outbox: Outbox) -> list[str]:
    rows = await outbox.database.fetch("SELECT message_id FROM messenger.received ORDER BY id")
    return [row["message_id"] for row in rows]


async def test_old_ones_are_removed_in_batches(
    outbox: Outbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retention, "BATCH", 2)
    for number, status in enumerate(("handled", "throttled", "failed", "waiting", "handled")):
        await _receive(outbox, number, status)
    for _ in range(5):
        await outbox.put("old")
    outbox.clock.forward(seconds=1)
    new, _ = await outbox.put("new")
    await _receive(outbox, 9, "handled")
    keeper = Retention(outbox.database, outbox.clock)

    outbox.clock.now += retention.KEPT_OUTBOX - timedelta(seconds=1)
    await keeper.remove_old()
    assert len(await outbox.rows()) == 6
    outbox.clock.forward(milliseconds=1)
    await keeper.remove_old()
    assert [row["id"] for row in await outbox.rows()] == [new]

    outbox.clock.now += retention.KEPT_RECEIVED - retention.KEPT_OUTBOX - timedelta(milliseconds=1)
    await keeper.remove_old()
    assert len(await _left(outbox)) == 6
    outbox.clock.forward(milliseconds=1)
    await keeper.remove_old()
    assert await _left(outbox) == ["3 waiting", "9 handled"]
