"""Saved under load and restored while the load goes on: what was acknowledged by then is in it."""

import asyncio
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from ledger.books import Books
from ledger.test_processes import hammer, other, plan_for, start
from store.test_backup import load, rows, saved
from tapgate.ledger.verify import verify
from tapgate.store.database import Database

#: More than are done before it is restored, however long that takes.
_ORDERS = 20_000
_MOVED = "SELECT * FROM entries ORDER BY transaction_id, position"
_FACTS = """SELECT id, type, amount, fee_amount, from_account, to_account, from_balance, to_balance,
                   scope, request_id, created_at FROM transactions ORDER BY id"""


class Heard:
    """Each answer, and when it was heard."""

    def __init__(self) -> None:
        self.answers: list[tuple[float, dict[str, Any]]] = []

    async def listen(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdout is not None
        async for line in process.stdout:
            self.answers.append((time.time(), msgspec.json.decode(line)))
        await process.wait()

    def told(self, *, before: datetime) -> dict[str, int]:
        return {
            answer["request"]: answer["transaction"]
            for moment, answer in self.answers
            if answer.get("transaction") and datetime.fromtimestamp(moment, UTC) < before
        }


async def test_a_backup_under_load(
    books: Books, database_url: str, empty_url: str, tmp_path: Path
) -> None:
    plan = await plan_for(books, database_url, orders=_ORDERS)
    heard = Heard(), Heard()
    processes = [await start(its) for its in (plan, other(plan))]
    listening = [
        asyncio.create_task(one.listen(process))
        for one, process in zip(heard, processes, strict=True)
    ]
    while min(len(one.answers) for one in heard) < 250:
        await asyncio.sleep(0.01)
    manifest = await saved(database_url, tmp_path / "backup")
    await load(empty_url, tmp_path / "backup")
    assert {one.returncode for one in processes} == {None}, "the load was over before"
    for process in processes:
        process.kill()
    await asyncio.gather(*listening)

    facts, moved = await rows(empty_url, _FACTS), await rows(empty_url, _MOVED)
    assert manifest.tables["transactions"] == len(facts)
    assert manifest.tables["entries"] == len(moved)
    # What was acknowledged before is in it; what is in it is what happened, and not half of it.
    acknowledged = heard[0].told(before=manifest.moment) | heard[1].told(before=manifest.moment)
    assert len(acknowledged) > 300
    assert set(acknowledged.values()) <= {row[0] for row in facts}
    ids = {row[0] for row in facts}
    assert facts == [row for row in await rows(database_url, _FACTS) if row[0] in ids]
    assert moved == [row for row in await rows(database_url, _MOVED) if row[0] in ids]
    await must_hold(empty_url)

    # Who was acknowledged since asks again: what is there is told again, the rest is done.
    own = f"{plan.seed}-"  # other names stand for several requests
    there = {row[9]: row[0] for row in facts if str(row[9]).startswith(own)}
    done = max(int(name.removeprefix(own)) for name in there)
    more = msgspec.structs.replace(plan, url=empty_url, slot=12, orders=done + 200)
    again = await hammer(more)
    replayed = [answer for answer in again if answer["request"] in there]
    assert replayed
    assert all(answer["replayed"] for answer in replayed)
    for answer in replayed:
        assert answer["transaction"] == there[answer["request"]]
    assert any(answer["transaction"] and not answer["replayed"] for answer in again)
    await must_hold(empty_url)


async def must_hold(url: str) -> None:
    database = await Database.connect(url)
    try:
        async with database.connection() as connection:
            proof = await verify(connection)
        assert proof.is_valid, [finding for finding in proof.findings if finding.broken]
    finally:
        await database.close()
