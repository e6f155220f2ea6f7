"""Databases with an earlier release's schema."""

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import asyncpg

from harness import PIN
from tapgate.core.settings import Settings, load_settings
from tapgate.core.vault import Vault
from tapgate.events.audit import chain
from tapgate.ledger.pins.pin_storage import set_pin
from tapgate.ledger.pins.pin_verifier import PinVerifier
from tapgate.ledger.verification.verify import Verification, verify
from tapgate.runtime.store.database import Database
from tapgate.runtime.store.migrate import migrate
from tapgate.runtime.store.migration_plan import LAST_1X_MIGRATION, MIGRATIONS_DIR, load_migrations

MIGRATION_NAMES = [migration.name for migration in load_migrations()]
_SAMPLE_ROWS_DIR = Path(__file__).parents[1] / "runtime" / "store" / "upgrade"
SECRET_KEY = "a secret key of thirty-two characters"
_RESET_CODE = "402917"


async def apply_all(url: str, folder: Path = MIGRATIONS_DIR) -> list[str]:
    """Apply pending migrations, also contract migrations. The sample rows include old nodes."""
    return await migrate(url, folder, contract=True, force=True)


def copy_migrations_up_to(name: str, folder: Path) -> Path:
    """Return a folder with the migrations up to and including `name`."""
    copy = folder / f"up_to_{name}"
    copy.mkdir()
    for migration_name in MIGRATION_NAMES[: MIGRATION_NAMES.index(name) + 1]:
        (copy / migration_name).symlink_to(MIGRATIONS_DIR / migration_name)
    return copy


async def build_schema(url: str, last: str, folder: Path) -> None:
    """Apply the migrations up to `last`. Each table gets rows as soon as it exists."""
    for name in MIGRATION_NAMES[: MIGRATION_NAMES.index(last) + 1]:
        if name == last or get_sample_rows_file(name).exists():
            await apply_all(url, copy_migrations_up_to(name, folder))
            await insert_sample_rows(url, name)


def get_migration_before(number: str) -> str:
    """Return the name of the last migration before a number."""
    return max(name for name in MIGRATION_NAMES if name < number)


def get_sample_rows_file(name: str) -> Path:
    return _SAMPLE_ROWS_DIR / f"{name[:4]}.sql"


async def insert_sample_rows(url: str, name: str) -> bool:
    """Insert sample rows into the tables that this migration added, if there are any."""
    number, vault = name[:4], Vault(SECRET_KEY)
    if name == LAST_1X_MIGRATION:
        await complete_last_1x_release(url)
        return True
    file = get_sample_rows_file(name)
    if not file.exists():
        return False
    database = await Database.connect(url)
    try:
        async with database.transaction() as tx:
            await tx.execute(file.read_text())
            if number == "0001":
                for holder in (201, 202, 301):
                    await set_pin(tx, holder, PinVerifier(vault).hash(PIN))
            if number == "0072":
                await tx.execute(
                    "INSERT INTO secret_keys (key_id, name) VALUES ($1, '0')", vault.key_id
                )
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


async def complete_last_1x_release(url: str) -> None:
    """Store what the last 1.x release stores: the secret key, and keys of old transactions."""
    async with connect(url) as connection, connection.transaction():
        await connection.execute(
            """INSERT INTO idempotency_keys SELECT scope, request_id, id FROM transactions
               WHERE request_id IS NOT NULL ON CONFLICT DO NOTHING;
               INSERT INTO partner_references
               SELECT partner_id, partner_reference, id FROM transactions
               WHERE partner_reference IS NOT NULL AND status <> 'failed' ON CONFLICT DO NOTHING;
               DELETE FROM installation WHERE name = 'uncopied_keys'"""
        )
        await connection.execute(
            "INSERT INTO installation VALUES ('secret_fingerprint', $1)", Vault(SECRET_KEY).key_id
        )


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


async def verify_ledger(url: str) -> Verification:
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


def build_settings(url: str, folder: Path) -> Settings:
    return load_settings(
        {
            "TAPGATE_DATA_DIR": str(folder),
            "TAPGATE_DATABASE_URL": url,
            "TAPGATE_SECRET_KEY": SECRET_KEY,
        }
    )
