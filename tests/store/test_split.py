"""Division of the tables of an older installation into months."""

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from store.test_schema_upgrade import build_schema, get_migration_before
from tapgate.ledger.keys import find_by_idempotency_keys, find_by_partner_references
from tapgate.ledger.maintenance import ensure_partitions
from tapgate.ledger.verify import verify
from tapgate.store import StoreError, split
from tapgate.store.database import Database
from tapgate.store.migrate import migrate
from tapgate.store.partitions import list_partitions
from tapgate.store.split import copy_keys, divide
from tapgate_client.ids import first_id_at

_NOW = datetime(2026, 11, 16, 12, tzinfo=UTC)
_LATER = datetime(2026, 12, 2, tzinfo=UTC)
_ROWS = (
    "SELECT t::text FROM transactions t ORDER BY id",
    "SELECT e::text FROM entries e ORDER BY transaction_id, position",
)


class InterruptError(Exception):
    pass


async def _pause() -> None:
    pass


@pytest.fixture(autouse=True)
def _small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(split, "STEP_ROWS", 3)


async def _fill(database: Database) -> None:
    """Insert payments over four months, as an installation before partitioning has them."""
    await database.execute("INSERT INTO installation VALUES ('uncopied_keys', 'yes')")
    for number in range(20):
        moment = _NOW - timedelta(days=6 * number)
        await database.execute(
            """INSERT INTO transactions (id, type, status, channel, amount, fee_amount, currency,
                                         scope, request_id, partner_id, partner_reference,
                                         created_at)
               VALUES ($1, 'transfer_p2p', 'completed', 'api', 5, 0, 'SLE', 'key_1', $2, 7, $2,
                       $3)""",
            first_id_at(moment) + number,
            f"request {number}",
            moment,
        )
        await database.execute(
            "INSERT INTO entries VALUES ($1, 0, 1, 2, 5), ($1, 1, 2, 3, 1)",
            first_id_at(moment) + number,
        )
    await database.execute("DELETE FROM idempotency_keys; DELETE FROM partner_references")
    await ensure_partitions(database, _NOW)


async def _read(database: Database) -> list[list[str]]:
    return [[row[0] for row in await database.fetch(sql)] for sql in _ROWS]


async def _divide(database: Database, pause: Callable[[], Awaitable[None]] = _pause) -> None:
    async with database.dedicated_connection() as connection:
        async for _ in copy_keys(connection, pause):
            pass
        async for _ in divide(connection, _LATER, pause):
            pass


async def test_rows_and_keys_are_the_same_after_the_division(database: Database) -> None:
    await _fill(database)
    before = await _read(database)
    await _divide(database)
    assert await _read(database) == before
    async with database.connection() as connection:
        for table in ("transactions", "entries"):
            names = [part.name for part in await list_partitions(connection, table)]
            assert [name.removeprefix(f"{table}_") for name in names][:6] == [
                "initial", "2026_07", "2026_08", "2026_09", "2026_10", "2026_11"
            ]  # fmt: skip
            assert await connection.fetchval(f"SELECT count(*) FROM {table}_initial") == 0
    keys = [("key_1", f"request {number}") for number in range(20)]
    assert len(await find_by_idempotency_keys(database, keys)) == 20
    references = [(7, f"request {number}") for number in range(20)]
    assert len(await find_by_partner_references(database, references)) == 20
    assert not await database.fetch("SELECT FROM installation WHERE name = 'uncopied_keys'")
    leftovers = "SELECT relname FROM pg_class WHERE relname ~ '(_changes|_divided|_new)$'"
    assert await database.fetch(leftovers) == []
    await _divide(database)
    assert await _read(database) == before


async def test_division_that_is_interrupted_at_any_step_is_continued(database: Database) -> None:
    """Each run ends after two steps; payments change rows between the runs."""
    await _fill(database)
    changed_id = await database.fetchval("SELECT max(id) FROM transactions")
    oldest_id = await database.fetchval("SELECT min(id) FROM transactions")
    runs = steps = 0

    async def interrupt() -> None:
        nonlocal steps
        steps += 1
        if steps > 2:
            raise InterruptError

    while True:
        steps = 0
        before = await _read(database)
        try:
            await _divide(database, interrupt)
        except InterruptError:
            runs += 1
        else:
            break
        assert await _read(database) == before
        await database.execute(
            "UPDATE transactions SET refunded_amount = $2, status = 'partially_refunded'"
            " WHERE id = $1",
            changed_id,
            1 + runs % 4,
        )
        await database.execute("INSERT INTO entries VALUES ($1, $2, 1, 2, 3)", oldest_id, 2 + runs)
        assert runs < 100
    assert runs > 5
    assert await _read(database) == before


async def test_changes_during_the_division_are_kept(database: Database) -> None:
    await _fill(database)
    identifier = await database.fetchval("SELECT min(id) FROM transactions")
    steps = 0

    async def pay() -> None:
        nonlocal steps
        steps += 1
        await database.execute(
            "UPDATE transactions SET refunded_amount = $2 WHERE id = $1", identifier, steps % 5
        )
        await database.execute(
            "INSERT INTO entries VALUES ($1, $2, 1, 2, 3)", identifier, 1 + steps
        )

    await _divide(database, pay)
    assert steps > 20
    assert await database.fetchval(
        "SELECT refunded_amount FROM transactions WHERE id = $1", identifier
    ) == (steps % 5)
    assert await database.fetchval(
        "SELECT count(*) FROM entries WHERE transaction_id = $1", identifier
    ) == (2 + steps)


async def test_table_that_still_receives_rows_is_not_divided(database: Database) -> None:
    await _fill(database)
    async with database.dedicated_connection() as connection:
        async for _ in copy_keys(connection, _pause):
            pass
        with pytest.raises(StoreError, match="until 2026-12-01"):
            async for _ in divide(connection, _NOW, _pause):
                pass


async def test_installation_of_the_first_version_is_divided(
    empty_database_url: str, tmp_path: Any
) -> None:
    await build_schema(empty_database_url, get_migration_before("0042"), tmp_path)
    await migrate(empty_database_url)
    database = await Database.connect(empty_database_url)
    try:
        before = await _read(database)
        await ensure_partitions(database, _NOW)
        await _divide(database)
        assert await _read(database) == before
        assert await find_by_idempotency_keys(database, [("key_1", "p2p-1")]) == [1003]
        assert await find_by_partner_references(database, [(501, "remit-1")]) == [1010]
        async with database.connection() as connection:
            assert (await verify(connection)).is_valid
    finally:
        await database.close()
