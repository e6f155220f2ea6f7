"""What is old is removed, and nothing else."""

from datetime import timedelta

import pytest

from messenger.outbox.stage import Stage
from tapgate.messenger.outbox import retention
from tapgate.messenger.outbox.retention import Retention


async def _receive(stage: Stage, number: int, status: str) -> None:
    await stage.database.execute(
        """INSERT INTO messenger.received (id, message_id, address, sent_at, reserved_for,
                                           reserved_until, status, received_at)
           VALUES ($1, $2, 'a', 0, 0, $4, $3, $4)""",
        number,
        f"{number} {status}",
        status,
        stage.clock(),
    )


async def _left(stage: Stage) -> list[str]:
    rows = await stage.database.fetch("SELECT message_id FROM messenger.received ORDER BY id")
    return [row["message_id"] for row in rows]


async def test_old_ones_are_removed_in_batches(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retention, "BATCH", 2)
    for number, status in enumerate(("handled", "throttled", "failed", "waiting", "handled")):
        await _receive(stage, number, status)
    for _ in range(5):
        await stage.put("old")
    stage.clock.forward(seconds=1)
    new, _ = await stage.put("new")
    await _receive(stage, 9, "handled")
    keeper = Retention(stage.database, stage.clock)

    stage.clock.now += retention.KEPT_OUTBOX - timedelta(seconds=1)
    await keeper.remove_old()
    assert len(await stage.rows()) == 6
    stage.clock.forward(milliseconds=1)
    await keeper.remove_old()
    assert [row["id"] for row in await stage.rows()] == [new]

    stage.clock.now += retention.KEPT_RECEIVED - retention.KEPT_OUTBOX - timedelta(milliseconds=1)
    await keeper.remove_old()
    assert len(await _left(stage)) == 6
    stage.clock.forward(milliseconds=1)
    await keeper.remove_old()
    assert await _left(stage) == ["3 waiting", "9 handled"]
