"""Backup and restore under load: acknowledged transactions are kept, retries replay."""

import asyncio
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from builders.ledger import LedgerDriver
from drivers.backups import fetch_rows, restore_backup, save_backup
from drivers.ledger_processes import build_plan, build_second_plan, run_processes, start_process
from tapgate.ledger.verification.verify import verify
from tapgate.runtime.store.database import Database

#: More commands than the processes can finish before the restore completes.
_COMMAND_COUNT = 20_000
_ENTRIES_SQL = "SELECT * FROM entries ORDER BY transaction_id, position"
_TRANSACTIONS_SQL = """SELECT id, type, amount, fee_amount, from_account, to_account,
                   from_balance, to_balance,
                   scope, request_id, created_at FROM transactions ORDER BY id"""


class RecordedResponses:
    """A process's responses with the time each was received."""

    def __init__(self) -> None:
        self.responses: list[tuple[float, dict[str, Any]]] = []

    async def record(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdout is not None
        async for line in process.stdout:
            self.responses.append((time.time(), msgspec.json.decode(line)))
        await process.wait()

    def list_before(self, *, before: datetime) -> dict[str, int]:
        return {
            response["request"]: response["transaction"]
            for moment, response in self.responses
            if response.get("transaction") and datetime.fromtimestamp(moment, UTC) < before
        }


async def test_backup_under_load_is_consistent_and_accepts_retries(
    ledger: LedgerDriver, database_url: str, empty_database_url: str, tmp_path: Path
) -> None:
    plan = await build_plan(ledger, database_url, command_count=_COMMAND_COUNT)
    recorded = RecordedResponses(), RecordedResponses()
    processes = [
        await start_process(process_plan) for process_plan in (plan, build_second_plan(plan))
    ]
    recorders = [
        asyncio.create_task(responses.record(process))
        for responses, process in zip(recorded, processes, strict=True)
    ]
    while min(len(responses.responses) for responses in recorded) < 250:
        await asyncio.sleep(0.01)
    manifest = await save_backup(database_url, tmp_path / "backup")
    await restore_backup(empty_database_url, tmp_path / "backup")
    exit_codes = {process.returncode for process in processes}
    assert exit_codes == {None}, "the load ended before the restore"
    for process in processes:
        process.kill()
    await asyncio.gather(*recorders)

    transactions = await fetch_rows(empty_database_url, _TRANSACTIONS_SQL)
    entries = await fetch_rows(empty_database_url, _ENTRIES_SQL)
    assert manifest.tables["transactions"] == len(transactions)
    assert manifest.tables["entries"] == len(entries)
    # The backup has all transactions acknowledged before it, and its rows equal the source rows.
    acknowledged = recorded[0].list_before(before=manifest.moment) | recorded[1].list_before(
        before=manifest.moment
    )
    assert len(acknowledged) > 300
    assert set(acknowledged.values()) <= {row[0] for row in transactions}
    ids = {row[0] for row in transactions}
    expected = [row for row in await fetch_rows(database_url, _TRANSACTIONS_SQL) if row[0] in ids]
    assert transactions == expected
    assert entries == [row for row in await fetch_rows(database_url, _ENTRIES_SQL) if row[0] in ids]
    await require_balanced_books(empty_database_url)

    # Clients retry against the restored database: stored requests replay, the rest execute.
    prefix = f"{plan.seed}-"  # shared keys are used by several requests
    stored = {row[9]: row[0] for row in transactions if str(row[9]).startswith(prefix)}
    last_number = max(int(name.removeprefix(prefix)) for name in stored)
    retry_plan = msgspec.structs.replace(
        plan, url=empty_database_url, slot=12, command_count=last_number + 200
    )
    retried = await run_processes(retry_plan)
    replayed = [response for response in retried if response["request"] in stored]
    assert replayed
    assert all(response["replayed"] for response in replayed)
    for response in replayed:
        assert response["transaction"] == stored[response["request"]]
    assert any(response["transaction"] and not response["replayed"] for response in retried)
    await require_balanced_books(empty_database_url)


async def require_balanced_books(url: str) -> None:
    database = await Database.connect(url)
    try:
        async with database.connection() as connection:
            verification = await verify(connection)
        assert [finding for finding in verification.findings if finding.broken] == []
        assert verification.is_valid
    finally:
        await database.close()
