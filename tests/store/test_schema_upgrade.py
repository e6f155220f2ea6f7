"""Upgrades from every earlier schema, with rows in all tables, to the current schema.

`upgrade/` has sample rows for the tables that each migration adds, in the schema at that point.
"""

import asyncio
import contextlib
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import asyncpg
import httpx2
import pytest

from drivers.in_process import AppTransport
from harness import PIN, Harness
from store.test_backup import dump_schema, fetch_rows
from tapgate.audit import chain
from tapgate.gateway import create_app
from tapgate.gateway_installation import require_same_installation
from tapgate.gateway_services import open_services
from tapgate.ledger.keys import find_by_idempotency_keys, find_by_partner_references
from tapgate.ledger.maintenance import ensure_partitions
from tapgate.ledger.rules import insert_defaults
from tapgate.ledger.verify import Proof, verify
from tapgate.pins.storage import set_pin
from tapgate.pins.verifier import PinVerifier
from tapgate.settings import Settings, load_settings
from tapgate.store.database import Database
from tapgate.store.migrate import migrate
from tapgate.store.migration_plan import MIGRATIONS_DIR, load_migrations
from tapgate.vault import Vault
from tapgate_client import ids

_MIGRATION_NAMES = [migration.name for migration in load_migrations()]
_SAMPLE_ROWS_DIR = Path(__file__).parent / "upgrade"
_SECRET_KEY = "a secret key of thirty-two characters"
_RESET_CODE = "402917"
#: The tables that migrations insert rows into.
_TABLES_GAINING_ROWS = frozenset(
    {"public.compliance_rules", "public.gl_codes", "public.installation"}
)
_HOLDERS_CLAIM = "every wallet, float, settlement and clearing account has a holder"

#: Program that migrates a database.
_MIGRATE_SCRIPT = """
import asyncio, sys
from tapgate.store.migrate import migrate
asyncio.run(migrate(sys.argv[1]))
"""


async def apply_all(url: str, folder: Path = MIGRATIONS_DIR) -> list[str]:
    """Apply pending migrations, also contract migrations. The sample rows include old nodes."""
    return await migrate(url, folder, contract=True, force=True)


@pytest.fixture
async def first_schema_url(empty_database_url: str, tmp_path: Path) -> str:
    """Return the URL of a database with only the first migration and rows in all its tables."""
    await apply_all(empty_database_url, copy_migrations_up_to(_MIGRATION_NAMES[0], tmp_path))
    await insert_sample_rows(empty_database_url, _MIGRATION_NAMES[0])
    return empty_database_url


def copy_migrations_up_to(name: str, folder: Path) -> Path:
    """Return a folder with the migrations up to and including `name`."""
    copy = folder / f"up_to_{name}"
    copy.mkdir()
    for migration_name in _MIGRATION_NAMES[: _MIGRATION_NAMES.index(name) + 1]:
        (copy / migration_name).symlink_to(MIGRATIONS_DIR / migration_name)
    return copy


async def build_schema(url: str, last: str, folder: Path) -> None:
    """Apply the migrations up to `last`. Each table gets rows as soon as it exists."""
    for name in _MIGRATION_NAMES[: _MIGRATION_NAMES.index(last) + 1]:
        if name == last or _get_sample_rows_file(name).exists():
            await apply_all(url, copy_migrations_up_to(name, folder))
            await insert_sample_rows(url, name)


def get_migration_before(number: str) -> str:
    """Return the name of the last migration before a number."""
    return max(name for name in _MIGRATION_NAMES if name < number)


def _get_sample_rows_file(name: str) -> Path:
    return _SAMPLE_ROWS_DIR / f"{name[:4]}.sql"


async def insert_sample_rows(url: str, name: str) -> bool:
    """Insert sample rows into the tables that this migration added, if there are any."""
    number, vault = name[:4], Vault(_SECRET_KEY)
    file = _get_sample_rows_file(name)
    if not file.exists():
        return False
    database = await Database.connect(url)
    try:
        async with database.transaction() as tx:
            await tx.execute(file.read_text())
            if number == "0001":
                await tx.execute(
                    "INSERT INTO installation VALUES ('secret_fingerprint', $1)", vault.key_id
                )
                for holder in (201, 202, 301):
                    await set_pin(tx, holder, PinVerifier(vault).hash(PIN))
            if number == "0003":
                code_request = ("reset_pin", 201, "subscriber")
                code_hash = vault.keyed_hash(
                    "one_time_code", repr((*code_request, "+23276000201", _RESET_CODE)).encode()
                )
                await tx.execute(
                    """INSERT INTO one_time_codes VALUES
                           ($1, $2, $3, $4, 0, now() + interval '1 hour')""",
                    *code_request,
                    code_hash,
                )
        if number == "0004":
            assert await chain.Sealer(database).seal_pending() == 2
    finally:
        await database.close()
    return True


@contextlib.asynccontextmanager
async def connect(url: str) -> AsyncIterator[asyncpg.Connection]:
    """Connect for reading while migrations change the tables."""
    connection = await asyncpg.connect(url, statement_cache_size=0)
    try:
        yield connection
    finally:
        await connection.close()


async def list_columns(connection: asyncpg.Connection) -> dict[str, str]:
    """Return the comma-separated column names of each table."""
    rows = await connection.fetch(
        """SELECT format('%I.%I', nspname, relname),
                  string_agg(quote_ident(attname), ', ' ORDER BY attnum)
           FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid
           JOIN pg_namespace ON pg_namespace.oid = relnamespace
           WHERE nspname IN ('public', 'messenger') AND relname <> 'schema_migrations'
             AND relkind IN ('r', 'p') AND attnum > 0 AND NOT attisdropped GROUP BY 1"""
    )
    return {str(table): str(names) for table, names in rows}


async def dump_rows(
    connection: asyncpg.Connection, columns: dict[str, str]
) -> dict[str, list[str]]:
    """Return the rows of each table as text, sorted, with only the given columns."""
    return {
        table: sorted(
            str(tuple(row)) for row in await connection.fetch(f"SELECT {names} FROM {table}")
        )
        for table, names in columns.items()
    }


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


async def verify_ledger(url: str) -> Proof:
    database = await Database.connect(url)
    try:
        async with database.connection() as connection:
            proof = await verify(connection)
        if await database.fetchval("SELECT EXISTS (SELECT FROM audit_entries)"):
            audit = await chain.verify(database)
            assert (audit.valid, audit.entries >= 2) == (True, True)
        return proof
    finally:
        await database.close()


async def test_each_migration_keeps_the_rows_of_all_tables(
    empty_database_url: str, database_url: str, tmp_path: Path
) -> None:
    """Each table gets rows as soon as it exists; all later migrations must keep these rows."""
    columns: dict[str, str] = {}
    before: dict[str, list[str]] = {}
    url = empty_database_url
    async with connect(url) as connection:
        for name in _MIGRATION_NAMES:
            assert await apply_all(url, copy_migrations_up_to(name, tmp_path)) == [name]
            before = await require_rows_kept(connection, columns, before)
            has_new_rows = await insert_sample_rows(url, name)
            previous_columns, columns = columns, await list_columns(connection)
            if has_new_rows or columns != previous_columns:
                before = await dump_rows(connection, columns)
            assert all(before.values()), "every table needs sample rows"
    await require_working_schema(empty_database_url, database_url, tmp_path)


@pytest.mark.parametrize(
    "name", [_MIGRATION_NAMES[0], _MIGRATION_NAMES[len(_MIGRATION_NAMES) // 2]]
)
async def test_upgrade_over_many_migrations_keeps_rows_and_matches_a_new_schema(
    name: str, empty_database_url: str, database_url: str, tmp_path: Path
) -> None:
    position = _MIGRATION_NAMES.index(name) + 1
    await build_schema(empty_database_url, name, tmp_path)
    async with connect(empty_database_url) as connection:
        columns = await list_columns(connection)
        before = await dump_rows(connection, columns)
        assert await apply_all(empty_database_url) == _MIGRATION_NAMES[position:]
        await require_rows_kept(connection, columns, before)
    if position == 1:
        # The first schema has no tables for account holders yet.
        proof = await verify_ledger(empty_database_url)
        assert [item.claim for item in proof.findings if item.broken] == [_HOLDERS_CLAIM]
        await insert_sample_rows(empty_database_url, _MIGRATION_NAMES[1])
    if "public.commission_rules" not in before:
        rates = await get_commission_rates(empty_database_url)
        assert rates == [(1, 1100), (2, 1500), (3, 2000)]
    await require_working_schema(empty_database_url, database_url, tmp_path)


async def require_working_schema(url: str, new_url: str, folder: Path) -> None:
    """Require a new installation's schema, a valid ledger and working operations."""
    assert (await verify_ledger(url)).is_valid
    assert dump_schema(url) == dump_schema(new_url)
    await use_migrated_installation(url, folder)
    assert (await verify_ledger(url)).is_valid


async def get_commission_rates(url: str) -> list[tuple[int, int]]:
    """Return the cash-in rates by tier, after checking that all minimums are the default."""
    rows = await fetch_rows(
        url,
        """SELECT tier, rate, minimum_amount FROM commission_rules
           WHERE type = 'agent_cashin' ORDER BY tier""",
    )
    assert {row[2] for row in rows} == {1000}
    return [(row[0], row[1]) for row in rows]


async def test_upgrade_inserts_the_new_compliance_rules_once(
    empty_database_url: str, tmp_path: Path
) -> None:
    await build_schema(empty_database_url, get_migration_before("0031"), tmp_path)
    await apply_all(empty_database_url)
    select_rules = """
        SELECT name, type, subject, transaction_types, threshold, window_seconds, action, severity,
               status
        FROM compliance_rules WHERE id > 2000 ORDER BY id"""
    expected = [
        ("Large cash-in or top-up", "AMOUNT_THRESHOLD", "payee", ["agent_cashin", "partner_fund"],
         200_000_00, None, "alert", "MEDIUM", "active"),
        ("Busy agent", "TRANSACTION_COUNT", "agent", ["agent_cashin", "agent_cashout"],
         200, 86_400, "alert", "MEDIUM", "active"),
        ("Wrong PINs", "PIN_FAILURES", "payer",
         ["transfer_p2p", "transfer", "pos_payment", "online_payment"],
         5, 86_400, "alert", "MEDIUM", "inactive"),
    ]  # fmt: skip
    assert [tuple(row) for row in await fetch_rows(empty_database_url, select_rules)] == expected
    database = await Database.connect(empty_database_url)
    try:
        async with database.transaction() as tx:
            await insert_defaults(tx, "SLE", ids.IdGenerator(1))
    finally:
        await database.close()
    assert [tuple(row) for row in await fetch_rows(empty_database_url, select_rules)] == expected


async def use_migrated_installation(url: str, folder: Path) -> None:
    """Pay from a migrated balance, and reset the PIN with a code sent before the upgrade."""
    async with open_services(build_settings(url, folder), url) as services:
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


def build_settings(url: str, folder: Path) -> Settings:
    return load_settings(
        {
            "TAPGATE_DATA_DIR": str(folder),
            "TAPGATE_DATABASE_URL": url,
            "TAPGATE_SECRET_KEY": _SECRET_KEY,
        }
    )


async def test_upgrade_deletes_statement_links_of_restricted_subscribers(
    empty_database_url: str, tmp_path: Path
) -> None:
    await build_schema(empty_database_url, get_migration_before("0027"), tmp_path)
    database = await Database.connect(empty_database_url)
    try:
        await database.execute(
            """INSERT INTO statements
               SELECT 1402, 'other', holder, from_date, to_date, format, file, created_at,
                      expires_at
               FROM statements, (SELECT id AS holder FROM subscribers WHERE restricted) AS other"""
        )
    finally:
        await database.close()
    await apply_all(empty_database_url)
    assert await fetch_rows(empty_database_url, "SELECT id FROM statements") == [(1401,)]


async def test_upgrade_takes_over_languages_and_the_kyc_queue(
    empty_database_url: str, tmp_path: Path
) -> None:
    await build_schema(empty_database_url, get_migration_before("0036"), tmp_path)
    database = await Database.connect(empty_database_url)
    try:
        async with database.transaction() as tx:
            await tx.execute(
                """UPDATE messenger.people SET language = 'fr' WHERE address = '+23276000201';
                   INSERT INTO messenger.people VALUES
                       ('user:8', '+23276000201', 'en', true, '2026-03-01'),
                       ('user:9', '+23276000202', 'fr', false, '2026-03-03');
                   UPDATE subscribers SET kyc_status = 'PENDING', updated_at = '2026-03-05'
                   WHERE id = 201;
                   UPDATE subscribers SET kyc_status = 'REJECTED' WHERE id = 202;
                   UPDATE kyc_documents SET decided_at = '2026-03-03';"""
            )
    finally:
        await database.close()
    await apply_all(empty_database_url)
    rows = await fetch_rows(
        empty_database_url,
        """SELECT id, language, to_char(kyc_pending_since, 'YYYY-MM-DD')
           FROM subscribers ORDER BY id""",
    )
    # The latest choice of a trusted person counts.
    assert rows == [(201, "fr", "2026-03-05"), (202, "en", None)]
    documents = "SELECT subscriber_id, rejected FROM kyc_documents"
    assert await fetch_rows(empty_database_url, documents) == [(202, True)]
    due = "SELECT count(*) FROM messenger.people WHERE language_due_at IS NOT NULL"
    assert await fetch_rows(empty_database_url, due) == [(0,)]


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
        assert 1 < len(applied) < len(_MIGRATION_NAMES)
        again = asyncio.create_task(apply_all(first_schema_url))
    await holder.close()
    assert await again == [name for name in _MIGRATION_NAMES if name not in applied]
    async with connect(first_schema_url) as connection:
        await require_rows_kept(connection, columns, before)
    assert dump_schema(first_schema_url) == dump_schema(database_url)
