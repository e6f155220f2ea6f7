"""Expand and contract migrations: which releases can start on which schema."""

import asyncio
import shutil
from collections.abc import Awaitable, Callable
from pathlib import Path

import asyncpg
import pytest

from drivers.backups import dump_schema, fetch_rows
from drivers.processes import run_command_on
from tapgate import VERSION
from tapgate.http.api.services import Services
from tapgate.runtime import nodes as nodes_module
from tapgate.runtime.store import StoreError
from tapgate.runtime.store import migrate as migrate_module
from tapgate.runtime.store.migrate import MIGRATION_LOCK_KEY, check_schema, migrate, read_plan
from tapgate.runtime.store.migration_plan import (
    FIRST_CLASSIFIED,
    MIGRATIONS_DIR,
    Migration,
    load_migrations,
)

_EXPAND, _INDEX, _CONTRACT = "9001_expand.sql", "9002_index.sql", "9003_contract.sql"
_SQL = {
    _EXPAND: "-- migration: expand\nALTER TABLE cards ADD note text DEFAULT 'x';\n",
    _INDEX: "-- migration: expand concurrently\n"
    "DROP INDEX CONCURRENTLY IF EXISTS cards_note;\n"
    "CREATE INDEX CONCURRENTLY cards_note ON cards (note);\n",
    _CONTRACT: "-- migration: contract, requires 9001\n"
    "ALTER TABLE cards ALTER note DROP DEFAULT;\n",
}


@pytest.fixture
def next_release(tmp_path: Path) -> Path:
    """Return a later release's migrations."""
    folder = tmp_path / "next_release"
    shutil.copytree(MIGRATIONS_DIR, folder)
    for name, sql in _SQL.items():
        (folder / name).write_text(sql)
    return folder


async def list_applied(url: str) -> list[str]:
    rows = await fetch_rows(url, "SELECT name FROM schema_migrations WHERE name >= '9' ORDER BY 1")
    return [str(row[0]) for row in rows]


async def register_node(url: str, newest_migration: str | None) -> None:
    connection = await asyncpg.connect(url)
    try:
        await connection.execute(
            """INSERT INTO nodes (id, role, host, port, version, settings, problems, started_at,
                                  last_seen, newest_migration)
               VALUES ('old', 'gateway', 'a.example', 8000, '1.0.0', '{}', '{}', now(), now(), $1)
               ON CONFLICT (id, role) DO UPDATE SET newest_migration = excluded.newest_migration""",
            newest_migration,
        )
    finally:
        await connection.close()


async def test_start_applies_only_expand_migrations(database_url: str, next_release: Path) -> None:
    lines: list[str] = []
    assert await migrate(database_url, next_release, lines.append) == [_EXPAND, _INDEX]
    expected = [
        "Not yet applied: 9003_contract.sql. Run `tapgate migrate --contract` when all nodes run"
        " this release and you no longer need to roll back."
    ]
    assert lines == expected
    assert await migrate(database_url, next_release, lines.append) == []
    assert await migrate(database_url, next_release, contract=True) == [_CONTRACT]


async def test_new_database_gets_all_migrations(
    empty_database_url: str, next_release: Path
) -> None:
    lines: list[str] = []
    assert (await migrate(empty_database_url, next_release, lines.append))[-1] == _CONTRACT
    assert lines == []


async def test_older_release_starts_until_a_contract_migration_is_applied(
    database_url: str, next_release: Path
) -> None:
    await migrate(database_url, next_release)
    for start in (migrate, check_schema):
        lines: list[str] = []
        assert not await start(database_url, report=lines.append)
        expected = [
            f"Warning: the database was upgraded by Tapgate {VERSION} to 9002_index.sql. This"
            f" release, {VERSION}, can still use it."
        ]
        assert lines == expected
    await migrate(database_url, next_release, contract=True)
    for refuse in (migrate, check_schema):
        with pytest.raises(StoreError, match=f"requires a newer .* Start Tapgate {VERSION}"):
            await refuse(database_url)
    assert await migrate(database_url, next_release) == []


async def test_contract_migration_may_follow_later_expand_migrations(
    database_url: str, next_release: Path, empty_database_url: str
) -> None:
    await migrate(database_url, next_release)
    later = next_release / "9004_later.sql"
    later.write_text("-- migration: expand\nALTER TABLE cards ADD later text;\n")
    assert await migrate(database_url, next_release) == [later.name]
    assert await migrate(database_url, next_release, contract=True) == [_CONTRACT]
    await migrate(empty_database_url, next_release)
    assert dump_schema(database_url) == dump_schema(empty_database_url)


@pytest.mark.parametrize("newest", [None, "9000"])
async def test_contract_migration_is_refused_while_an_older_node_is_registered(
    newest: str | None, database_url: str, next_release: Path
) -> None:
    await register_node(database_url, newest)
    with pytest.raises(StoreError) as raised:
        await migrate(database_url, next_release, contract=True)
    expected = (
        "9003_contract.sql was not applied: gateway a.example:8000 (1.0.0) cannot run after it."
    )
    assert str(raised.value).startswith(expected)
    assert await list_applied(database_url) == [_EXPAND, _INDEX]
    _, blockers = await read_plan(database_url, next_release)
    assert blockers == {_CONTRACT: ["gateway a.example:8000 (1.0.0)"]}
    await register_node(database_url, "9001")
    assert await migrate(database_url, next_release, contract=True) == [_CONTRACT]


async def test_contract_migration_can_be_forced(database_url: str, next_release: Path) -> None:
    await register_node(database_url, None)
    applied = await migrate(database_url, next_release, contract=True, force=True)
    assert applied[-1] == _CONTRACT


async def test_node_that_joins_during_a_contract_migration_is_refused_or_seen(
    services: Services, next_release: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a joining node and a contract migration, the second one always fails."""
    url = str(services.settings.database_url)
    await migrate(url, next_release)
    results = await asyncio.gather(
        services.nodes.join(),
        migrate(url, next_release, contract=True),
        return_exceptions=True,
    )
    assert sum(isinstance(result, StoreError) for result in results) == 1, results
    # The other order.
    await services.database.execute("DELETE FROM nodes")
    await migrate(url, next_release, contract=True)
    with pytest.raises(StoreError, match="requires a newer release"):
        await services.nodes.join()
    monkeypatch.setattr(nodes_module, "get_newest_number", lambda: "9001")
    registry = nodes_module.NodeRegistry(
        services.settings.replace(node_id="new"),
        services.nodes.role,
        services.database,
        services.health,
    )
    assert await registry.join() == []


async def test_node_starts_while_another_process_builds_an_index(
    database_url: str, next_release: Path
) -> None:
    builder = await asyncpg.connect(database_url)
    try:
        await builder.execute("SELECT pg_advisory_lock($1)", MIGRATION_LOCK_KEY)
        assert await migrate(database_url) == []  # the older release has nothing to apply
        lines: list[str] = []
        newer = asyncio.create_task(migrate(database_url, next_release, lines.append))
        while not lines:
            await asyncio.sleep(0.01)
        assert lines == ["Waiting for another process that migrates the database."]
    finally:
        await builder.close()
    assert await newer == [_EXPAND, _INDEX]


async def test_interrupted_index_build_is_repeated(
    database_url: str, next_release: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*arguments: object) -> Awaitable[None]:
        raise StoreError("interrupted")

    record: Callable[..., Awaitable[None]] = migrate_module.record_migration
    await migrate(database_url, _without(next_release, _INDEX, _CONTRACT))
    (next_release / _INDEX).write_text(_SQL[_INDEX])
    monkeypatch.setattr(migrate_module, "record_migration", fail)
    with pytest.raises(StoreError, match="interrupted"):
        await migrate(database_url, next_release)
    monkeypatch.setattr(migrate_module, "record_migration", record)
    assert await migrate(database_url, next_release) == [_INDEX]
    valid = "SELECT indisvalid FROM pg_index WHERE indexrelid = 'cards_note'::regclass"
    assert await fetch_rows(database_url, valid) == [(True,)]


def _without(folder: Path, *names: str) -> Path:
    for name in names:
        (folder / name).unlink()
    return folder


async def test_start_without_auto_migrate_says_what_to_run(
    database_url: str, next_release: Path
) -> None:
    with pytest.raises(StoreError) as raised:
        await check_schema(database_url, next_release)
    text = str(raised.value)
    expected = (
        f"the database must be migrated first: run `tapgate migrate` of Tapgate {VERSION}. Pending:"
        " 9001_expand.sql, 9002_index.sql"
    )
    assert text == expected
    assert await list_applied(database_url) == []


async def test_plan_lists_kinds_and_changes_nothing(
    services: Services, next_release: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for function in (read_plan, migrate):  # their default folder
        monkeypatch.setattr(
            function, "__defaults__", (next_release, *(function.__defaults__ or ())[1:])
        )
    await services.nodes.join()
    url = str(services.settings.database_url)
    planned = await run_command_on(services, "migrate", "--plan")
    assert planned.returncode == 0
    lines = planned.stdout.splitlines()
    assert lines[:3] == [
        "9001_expand.sql: expand",
        "9002_index.sql: expand, long-running",
        "9003_contract.sql: contract, releases without 9001 cannot run after it",
    ]
    assert lines[3].startswith("  Upgrade first: gateway ")
    assert await list_applied(url) == []
    applied = await run_command_on(services, "migrate")
    assert "applied 9002_index.sql" in applied.stdout
    assert "Not yet applied: 9003_contract.sql." in applied.stdout
    refused = await run_command_on(services, "migrate", "--contract")
    assert (refused.returncode, refused.stderr.count("\n")) == (1, 1)
    assert refused.stderr.startswith("tapgate: 9003_contract.sql was not applied: gateway ")
    forced = await run_command_on(services, "migrate", "--contract", "--force")
    assert (forced.returncode, await list_applied(url)) == (0, list(_SQL))


def test_every_migration_declares_its_kind() -> None:
    migrations = [item for item in load_migrations() if item.number >= FIRST_CLASSIFIED]
    unclassified = [item.name for item in migrations if item.kind.startswith("unclassified")]
    assert unclassified == [], "begin the file with `-- migration: expand` (docs/upgrading.md)"
    for item in migrations:
        assert item.requires is None or FIRST_CLASSIFIED <= item.requires < item.number


@pytest.mark.parametrize(
    ("header", "kind"),
    [
        ("-- migration: expand\n", (False, False)),
        ("-- migration: expand concurrently\n", (False, True)),
        ("-- migration: contract, requires 0047\n", (True, False)),
        ("-- migration: contract\n", None),
        ("-- Migration: expand\n", None),
        ("SELECT 1;\n-- migration: expand\n", None),
    ],
)
def test_kind_is_declared_in_the_first_line(header: str, kind: tuple[bool, bool] | None) -> None:
    migration = Migration("0099_example.sql", header)
    if kind is None:
        assert migration.kind.startswith("unclassified")
    else:
        assert (migration.is_contract, migration.is_concurrent) == kind
