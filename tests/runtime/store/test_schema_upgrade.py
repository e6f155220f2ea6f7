"""Upgrade from the last 1.x release, with rows in all tables, and refusal of older databases.

`upgrade/` has sample rows for the tables that each migration adds, in the schema at that point.
"""

import asyncio
import re
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import asyncpg
import httpx2
import pytest

from drivers.backups import VAULT, dump_schema, fetch_rows, restore_backup, save_backup
from drivers.in_process import AppTransport
from drivers.schema_upgrades import (
    _RESET_CODE,
    MIGRATION_NAMES,
    apply_all,
    build_settings,
    connect,
    copy_migrations_up_to,
    dump_rows,
    get_migration_before,
    get_sample_rows_file,
    insert_sample_rows,
    list_columns,
    verify_ledger,
)
from harness import PIN, Harness
from tapgate import VERSION
from tapgate.ledger.idempotency.idempotency_keys import (
    find_by_idempotency_keys,
    find_by_partner_references,
)
from tapgate.ledger.maintenance import ensure_partitions
from tapgate.ledger.rules.loaded_rules import insert_defaults
from tapgate.runtime.store import StoreError
from tapgate.runtime.store.migrate import check_schema, migrate
from tapgate.runtime.store.migration_plan import LAST_1X_MIGRATION, MIGRATIONS_DIR
from tapgate.server.gateway import create_app, open_gateway_services
from tapgate.server.gateway_installation import require_same_installation
from tapgate_client import ids

#: The tables that migrations insert rows into.
_TABLES_GAINING_ROWS = frozenset(
    {"public.compliance_rules", "public.gl_codes", "public.installation"}
)

#: Program that migrates a database.
_MIGRATE_SCRIPT = """
import asyncio, sys
from tapgate.runtime.store.migrate import migrate
asyncio.run(migrate(sys.argv[1]))
"""


@pytest.fixture
async def first_schema_url(empty_database_url: str, tmp_path: Path) -> str:
    """Return a URL for a database with only the first migration and rows in all its tables."""
    await apply_all(empty_database_url, copy_migrations_up_to(MIGRATION_NAMES[0], tmp_path))
    await insert_sample_rows(empty_database_url, MIGRATION_NAMES[0])
    return empty_database_url


async def require_rows_kept(
    connection: asyncpg.Connection, columns: dict[str, str], before: dict[str, list[str]]
) -> dict[str, list[str]]:
    """Require that rows were neither lost nor changed, and added only where migrations do so.

    Return the rows of these columns.
    """
    kept = await dump_rows(connection, columns)
    for table, rows in kept.items():
        if table in _TABLES_GAINING_ROWS:
            assert set(before[table]) <= set(rows)
        else:
            assert rows == before[table]
    return kept


async def test_each_migration_keeps_the_rows_of_all_tables(
    empty_database_url: str, database_url: str, tmp_path: Path
) -> None:
    """Each table gets rows as soon as it exists; all later migrations must keep these rows."""
    columns: dict[str, str] = {}
    before: dict[str, list[str]] = {}
    url = empty_database_url
    async with connect(url) as connection:
        for name in MIGRATION_NAMES:
            assert await apply_all(url, copy_migrations_up_to(name, tmp_path)) == [name]
            before = await require_rows_kept(connection, columns, before)
            has_new_rows = await insert_sample_rows(url, name)
            previous_columns, columns = columns, await list_columns(connection)
            if has_new_rows or columns != previous_columns:
                before = await dump_rows(connection, columns)
            assert all(before.values()), "every table needs sample rows"
    await require_working_schema(empty_database_url, database_url, tmp_path)


#: Added column without a default value.
_NULLABLE_COLUMN = re.compile(
    r"\bADD (?:COLUMN )?(?!CONSTRAINT|PRIMARY|FOREIGN)(?![^,;]*NOT NULL)\w"
)


def test_every_migration_that_adds_nullable_columns_has_sample_values() -> None:
    """Otherwise they are null in all rows, and no later migration is tested with a value."""
    adding = [name for name in MIGRATION_NAMES if _NULLABLE_COLUMN.search(read(name))]
    assert "0099_key_people_and_id_tokens.sql" in adding
    assert [name for name in adding if not get_sample_rows_file(name).exists()] == []


def read(name: str) -> str:
    return (MIGRATIONS_DIR / name).read_text()


@pytest.mark.parametrize("work", [migrate, check_schema])
async def test_database_older_than_the_last_1x_release_is_refused(
    work: Callable[[str], Awaitable[object]], empty_database_url: str, tmp_path: Path
) -> None:
    """A database without a secret key was never used: its creation was interrupted."""
    database_url, last = empty_database_url, get_migration_before(LAST_1X_MIGRATION)
    await apply_all(database_url, copy_migrations_up_to(last, tmp_path))
    await fetch_rows(database_url, "INSERT INTO installation VALUES ('secret_fingerprint', 'ab')")
    with pytest.raises(StoreError) as raised:
        await work(database_url)
    expected = (
        "the database is older than the last 1.x release of Tapgate, from which"
        f" {VERSION} upgrades (docs/upgrading.md). Start the last 1.x release once, then start this"
        " release again"
    )
    assert str(raised.value) == expected
    applied = f"SELECT FROM schema_migrations WHERE name = '{LAST_1X_MIGRATION}'"
    assert await fetch_rows(database_url, applied) == []
    await fetch_rows(database_url, "DELETE FROM installation")
    assert LAST_1X_MIGRATION in await migrate(database_url)


async def test_database_with_uncopied_keys_is_refused(
    database_url: str, empty_database_url: str, tmp_path: Path
) -> None:
    await fetch_rows(
        database_url,
        f"""INSERT INTO installation VALUES
                ('secret_fingerprint', '{VAULT.key_id}'), ('uncopied_keys', 'yes')""",
    )
    with pytest.raises(StoreError, match=r"Run `tapgate partition` of the last 1\.x release"):
        await migrate(database_url)
    await save_backup(database_url, tmp_path / "backup")
    with pytest.raises(StoreError, match="nothing was restored: idempotency keys of old"):
        await restore_backup(empty_database_url, tmp_path / "backup")
    await fetch_rows(database_url, "DELETE FROM installation WHERE name = 'uncopied_keys'")
    assert await migrate(database_url) == []


async def require_working_schema(url: str, new_url: str, folder: Path) -> None:
    """Require a new installation's schema, a valid ledger and working operations."""
    assert (await verify_ledger(url)).is_valid
    assert dump_schema(url) == dump_schema(new_url)
    await use_migrated_installation(url, folder)
    assert (await verify_ledger(url)).is_valid


async def use_migrated_installation(url: str, folder: Path) -> None:
    """Pay from a migrated balance, and reset the PIN with a code sent before the upgrade."""
    async with open_gateway_services(build_settings(url, folder), url) as services:
        database = services.database
        assert await ensure_partitions(database, services.clock())
        keys, references = [("key_1", "p2p-1"), ("key_1", "unknown")], [(501, "remit-1")]
        assert await find_by_idempotency_keys(database, keys) == [1003]
        assert await find_by_partner_references(database, references) == [1010]
        await require_same_installation(services)
        async with services.transaction() as tx:
            await insert_defaults(tx, "SLE", services.new_id)
        transport = AppTransport(create_app(services))
        async with httpx2.AsyncClient(transport=transport, base_url="http://gateway") as client:
            harness = Harness(services, client)
            paid = await client.post(
                "/api/v1/wallet/transfer-p2p",
                json={
                    "request_id": "after",
                    "sender_id": ids.encode(ids.SUBSCRIBER, 201),
                    "recipient_card_serial": "CARD-2",
                    "amount": "350.00",
                    "pin": PIN,
                },
                auth=await harness.create_api_key("payments:write"),
            )
            if await services.database.fetchval("SELECT EXISTS (SELECT FROM one_time_codes)"):
                reset = await client.post(
                    f"/api/v1/subscribers/{ids.encode(ids.SUBSCRIBER, 201)}/reset-pin/confirm",
                    json={"otp": _RESET_CODE, "new_pin": "8264"},
                    auth=harness.get_service_auth(),
                )
                assert reset.status_code == 200, reset.text
    assert paid.status_code == 200, paid.text
    assert paid.json()["sender_new_balance"] == "0.00 SLE"  # the remaining balance is held


async def test_no_index_is_a_duplicate(database_url: str) -> None:
    duplicates = """
        SELECT indrelid::regclass::text, array_agg(indexrelid::regclass::text)
        FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid
        WHERE relnamespace::regnamespace::text IN ('public', 'messenger')
        GROUP BY indrelid, indkey::text, indclass::text, indoption::text, relam,
                 pg_get_expr(indexprs, indrelid), pg_get_expr(indpred, indrelid)
        HAVING count(*) > 1"""
    assert await fetch_rows(database_url, duplicates) == []


async def test_upgrade_killed_midway_can_be_completed(
    first_schema_url: str, database_url: str
) -> None:
    async with connect(first_schema_url) as connection:
        columns = await list_columns(connection)
        before = await dump_rows(connection, columns)
    waiting = """SELECT FROM pg_locks JOIN pg_database d ON d.oid = database
                 WHERE datname = current_database() AND NOT granted AND mode = 'ShareLock'"""
    holder = await asyncpg.connect(first_schema_url)
    async with holder.transaction():
        # Blocks index creation on the table.
        await holder.execute("LOCK TABLE transactions IN ROW EXCLUSIVE MODE")
        migrator = await asyncio.create_subprocess_exec(
            sys.executable, "-c", _MIGRATE_SCRIPT, first_schema_url
        )
        while not await fetch_rows(first_schema_url, waiting):
            assert migrator.returncode is None
            await asyncio.sleep(0.01)
        migrator.kill()
        await migrator.wait()
        applied = [
            row[0]
            for row in await fetch_rows(first_schema_url, "SELECT name FROM schema_migrations")
        ]
        assert 1 < len(applied) < len(MIGRATION_NAMES)
        again = asyncio.create_task(apply_all(first_schema_url))
    await holder.close()
    assert await again == [name for name in MIGRATION_NAMES if name not in applied]
    async with connect(first_schema_url) as connection:
        await require_rows_kept(connection, columns, before)
    assert dump_schema(first_schema_url) == dump_schema(database_url)
