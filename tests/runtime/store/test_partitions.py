"""Monthly partitions in the ledger's tables."""

import asyncio
import itertools
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import asyncpg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders.auth import FakeClock
from builders.retention import delete_expired
from tapgate.core.id_generator import first_id_at
from tapgate.core.settings import load_settings
from tapgate.ledger.maintenance import ensure_partitions
from tapgate.runtime.store.database import Database
from tapgate.runtime.store.id_ranges import MAX_ID, IdRange, fetch_newest, iter_ranges
from tapgate.runtime.store.partitions import (
    MONTHS_AHEAD,
    TABLES,
    Partition,
    create_months,
    get_month_start,
    list_partitions,
)

_NOW = datetime(2026, 11, 16, 12, tzinfo=UTC)


async def _list(database: Database, table: str = "transactions") -> list[Partition]:
    async with database.connection() as connection:
        return await list_partitions(connection, table)


async def _insert(database: Database, moment: datetime, request_id: str | None = None) -> int:
    identifier = first_id_at(moment)
    await database.execute(
        """INSERT INTO transactions (id, type, status, channel, amount, fee_amount, currency, scope,
                                     request_id, created_at)
           VALUES ($1, 'transfer_p2p', 'failed', 'api', 1, 0, 'SLE', 'key_1', $2, $3)""",
        identifier,
        request_id,
        moment,
    )
    await database.execute("INSERT INTO entries VALUES ($1, 0, 1, 2, 1)", identifier)
    return identifier


async def _find_partition(database: Database, identifier: int) -> str:
    name: str = await database.fetchval(
        "SELECT tableoid::regclass::text FROM transactions WHERE id = $1", identifier
    )
    return name


def test_months_start_at_utc_midnight_across_years() -> None:
    assert get_month_start(_NOW) == datetime(2026, 11, 1, tzinfo=UTC)
    assert get_month_start(_NOW, 2) == datetime(2027, 1, 1, tzinfo=UTC)
    assert get_month_start(_NOW, -11) == datetime(2025, 12, 1, tzinfo=UTC)


async def test_new_installation_has_partitions_of_this_and_the_next_months(
    database: Database,
) -> None:
    await ensure_partitions(database, _NOW)
    for table in TABLES:
        partitions = await _list(database, table.name)
        names = [partition.name.removeprefix(f"{table.name}_") for partition in partitions]
        assert names == ["initial", "2026_11", "2026_12", "2027_01", "2027_02", "overflow"]
        assert partitions[0].lower is partitions[-1].upper is None
        for before, after in itertools.pairwise(partitions):
            assert before.upper == after.lower
    assert await ensure_partitions(database, _NOW + timedelta(days=13)) == []


async def test_row_goes_to_the_partition_of_its_month(database: Database) -> None:
    await ensure_partitions(database, _NOW)
    end = get_month_start(_NOW, 1)
    for moment, name in (
        (_NOW - timedelta(days=400), "initial"),
        (end - timedelta(milliseconds=1), "2026_11"),
        (end, "2026_12"),
        (end + timedelta(days=4000), "overflow"),
    ):
        partition = await _find_partition(database, await _insert(database, moment))
        assert partition == f"transactions_{name}"


async def test_table_with_rows_becomes_the_first_partition_and_keeps_receiving_rows(
    database: Database,
) -> None:
    old = await _insert(database, _NOW - timedelta(days=300))
    await ensure_partitions(database, _NOW)
    found = [partition.name for partition in await _list(database)][:2]
    assert found == [ "transactions_initial", "transactions_2026_12" ]  # fmt: skip
    assert await _find_partition(database, old) == "transactions_initial"
    new = await _insert(database, _NOW + timedelta(days=1))
    assert await _find_partition(database, new) == "transactions_initial"
    later = await _insert(database, datetime(2026, 12, 1, tzinfo=UTC))
    assert await _find_partition(database, later) == "transactions_2026_12"


async def test_installation_that_was_off_for_a_year_gets_a_closed_partition(
    database: Database,
) -> None:
    await ensure_partitions(database, _NOW)
    late = _NOW + timedelta(days=365)
    row = await _insert(database, late)
    assert await _find_partition(database, row) == "transactions_overflow"
    await ensure_partitions(database, late)
    assert [partition.name for partition in await _list(database)][-6:] == [
        "transactions_2027_02", "transactions_until_2027_12", "transactions_2027_12",
        "transactions_2028_01", "transactions_2028_02", "transactions_overflow",
    ]  # fmt: skip
    assert await _find_partition(database, row) == "transactions_until_2027_12"
    assert await database.fetchval("SELECT count(*) FROM entries") == 1


async def test_interrupted_creation_is_completed_later(database: Database) -> None:
    async with database.connection() as reader:
        async with reader.transaction(), database.connection() as connection:
            await reader.fetch("SELECT FROM entries")
            with pytest.raises(asyncpg.LockNotAvailableError):
                await create_months(connection, _NOW)
        tables = "SELECT count(*) FROM pg_class WHERE relname LIKE 'entries_2%' AND relkind = 'r'"
        assert await reader.fetchval(tables) == MONTHS_AHEAD + 1
    assert len(await _list(database, "entries")) == 1
    await ensure_partitions(database, _NOW)
    assert len(await _list(database, "entries")) == MONTHS_AHEAD + 3


async def test_processes_do_not_create_the_same_months(
    database: Database, database_url: str
) -> None:
    others = [await Database.connect(database_url) for _ in range(2)]
    results = await asyncio.gather(*(ensure_partitions(each, _NOW) for each in (database, *others)))
    for other in others:
        await other.close()
    assert sorted(map(len, results)) == [0, 0, 2 * (MONTHS_AHEAD + 1)]


async def test_rows_of_every_partition_are_append_only(database: Database) -> None:
    await ensure_partitions(database, _NOW)
    await _insert(database, _NOW)
    for statement in (
        "UPDATE entries SET amount = 2",
        "DELETE FROM entries_2026_11",
        "TRUNCATE entries_2026_11",
        "TRUNCATE entries",
        "DELETE FROM transactions",
        "UPDATE transactions_2026_11 SET amount = 2",
        "TRUNCATE transactions_2026_12",
    ):
        with pytest.raises(asyncpg.RestrictViolationError):
            await database.execute(statement)


async def test_partitions_have_the_indexes_of_the_table(database: Database) -> None:
    await ensure_partitions(database, _NOW)
    counts = await database.fetch(
        """SELECT indrelid::regclass::text AS name, count(*) FROM pg_index
           WHERE indrelid::regclass::text ~ '^transactions(_2026|_over|$)' GROUP BY 1"""
    )
    assert len(counts) == 4
    assert len({row["count"] for row in counts}) == 1


async def test_idempotency_key_is_unique_across_months_until_it_is_removed(
    database: Database,
) -> None:
    await ensure_partitions(database, _NOW)
    later = _NOW + timedelta(days=31)
    await _insert(database, _NOW, "one")
    with pytest.raises(asyncpg.UniqueViolationError):
        await _insert(database, later, "one")
    settings = load_settings({"TAPGATE_IDEMPOTENCY_KEY_DAYS": "30"})
    for now, deleted in ((later - timedelta(days=1), 0), (later, 1)):
        clock = FakeClock(now)
        count = await delete_expired(database, clock, "idempotency_keys", settings=settings)
        assert count == deleted
    await _insert(database, later, "one")


async def test_one_statement_adds_keys_and_references_of_its_transactions(
    database: Database,
) -> None:
    await ensure_partitions(database, _NOW)
    first, keyed, referenced, failed, bare = (first_id_at(_NOW) + number for number in range(5))
    await database.execute(
        """INSERT INTO transactions (id, type, status, channel, amount, fee_amount, currency, scope,
                                     request_id, partner_id, partner_reference, created_at)
           SELECT id, 'partner_fund', status, 'partner', 1, 0, 'SLE', 'key_1', request_id, 7,
                  reference, $6
           FROM (VALUES ($1::bigint, 'completed', 'one', 'first'), ($2, 'completed', 'two', NULL),
                        ($3, 'completed', NULL, 'second'), ($4, 'failed', 'three', 'third'),
                        ($5, 'completed', NULL, NULL)) AS new (id, status, request_id, reference)
        """,
        first,
        keyed,
        referenced,
        failed,
        bare,
        _NOW,
    )
    keys = await database.fetch("SELECT * FROM idempotency_keys ORDER BY transaction_id")
    assert [tuple(row) for row in keys] == [
        ("key_1", "one", first),
        ("key_1", "two", keyed),
        ("key_1", "three", failed),
    ]
    references = await database.fetch("SELECT * FROM partner_references ORDER BY transaction_id")
    assert [tuple(row) for row in references] == [(7, "first", first), (7, "second", referenced)]


_SETTING_PATTERN = re.compile(
    r"^\| `(?P<table>[\w.*]+)` \| (?P<fillfactor>\d+) \| (?P<vacuum>[^|]+) \|", re.MULTILINE
)


async def test_storage_parameters_are_as_documented(database: Database) -> None:
    await ensure_partitions(database, _NOW)
    page = (Path(__file__).parents[3] / "docs" / "years.md").read_text()
    documented = list(_SETTING_PATTERN.finditer(page))
    assert len(documented) > 20
    for match in documented:
        names = [match["table"]]
        if match["table"].endswith("_*"):
            names = [match["table"].replace("*", part) for part in ("2026_11", "overflow")]
        for name in names:
            options = await database.fetchval(
                "SELECT coalesce(reloptions, '{}') FROM pg_class WHERE oid = $1::text::regclass",
                name,
            )
            found = dict(option.split("=") for option in options)
            assert found.pop("fillfactor", "100") == match["fillfactor"], name
            vacuum = match["vacuum"].replace(",", "")
            if new_rows := re.search(r"(\d+) new rows", vacuum):
                assert found["autovacuum_vacuum_insert_threshold"] == new_rows[1], name
            if changes := re.search(r"(\d+) (changed|removed)", vacuum):
                assert found["autovacuum_vacuum_threshold"] == changes[1], name
            if percent := re.search(r"(\d+) %", vacuum):
                assert float(found["autovacuum_vacuum_scale_factor"]) == int(percent[1]) / 100, name
            assert ("autovacuum_freeze_min_age" in found) == ("freezes" in vacuum), name
            assert bool(found) == (vacuum.strip() != "default"), name


#: IDs of six years, close to each other and to bounds, and far apart.
_IDS = st.builds(
    lambda days, offset: max(0, first_id_at(_NOW - timedelta(days=days)) + offset),
    st.integers(-60, 2_200) | st.sampled_from([0, 31, 31 * 5, 31 * 21]),
    st.integers(-2, 2),
)


@given(st.sets(_IDS, max_size=30), st.integers(1, 8), _IDS, _IDS | st.just(0), _IDS | st.none())
async def test_newest_rows_match_the_query_without_ranges(
    stored: set[int], limit: int, newest: int, first: int, before: int | None
) -> None:
    end = MAX_ID if before is None else before

    async def fetch(id_range: IdRange, count: int) -> list[int]:
        found = (number for number in stored if id_range.first <= number < id_range.end)
        return sorted(found, reverse=True)[:count]

    rows = await fetch_newest(fetch, limit, newest=newest, first=first, end=end)
    assert rows == await fetch(IdRange(first, end), limit)
    ranges = list(iter_ranges(first, end, newest))
    assert len(ranges) <= 4
    assert (ranges[0].end, ranges[-1].first) == (end, first)
    assert all(newer.first == older.end for newer, older in itertools.pairwise(ranges))
