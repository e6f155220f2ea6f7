"""Backup and restore of remote databases: with a password, with TLS, in another schema."""

import asyncio
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from urllib.parse import quote

import pytest

from drivers.backups import (
    dump_schema,
    fetch_rows,
    get_database_name,
    restore_backup,
    save_backup,
)
from drivers.forked import become
from drivers.processes import free_port
from runtime.store.conftest import TlsProxy, make_reachable
from tapgate.runtime.store import StoreError
from tapgate.runtime.store.embedded import EmbeddedPostgres, prepare_programs
from tapgate.runtime.store.migrate import migrate
from tapgate.runtime.store.server_user import resolve_server_user

PASSWORD = "p@ss:w/rd %&'\\"


@pytest.fixture
async def password_url(data_dir: Path) -> AsyncIterator[str]:
    """Yield a URL with the password for a role that owns only the databases `one` and `two`."""
    server = EmbeddedPostgres(data_dir)
    quoted = PASSWORD.replace("'", "''")
    try:
        url = server.start()
        await fetch_rows(url, f"CREATE ROLE shop LOGIN PASSWORD '{quoted}'")
        for name in ("one", "two"):
            await fetch_rows(url, f"CREATE DATABASE {name} OWNER shop")
    finally:
        server.stop()
    pgdata, port = data_dir / "pgdata", free_port()
    (pgdata / "pg_hba.conf").write_text("host all shop 127.0.0.1/32 scram-sha-256\n")
    make_reachable(pgdata)
    user = resolve_server_user(pgdata)
    process = await asyncio.create_subprocess_exec(
        prepare_programs(user) / "postgres",
        *("-D", pgdata, "-c", "listen_addresses=127.0.0.1", "-c", f"port={port}", "-k", ""),
        stderr=asyncio.subprocess.PIPE,
        preexec_fn=None if user.is_current_user else partial(become, user),
        cwd="/",
    )
    try:
        assert process.stderr is not None
        while b"ready to accept" not in (line := await process.stderr.readline()):
            assert line
        yield (
            f"postgresql://shop:{quote(PASSWORD, safe='')}@127.0.0.1:{port}/one"
            "?sslmode=disable&lock_timeout=60000"
        )
    finally:
        process.terminate()
        await process.communicate()


async def test_backup_and_restore_with_a_password_in_the_url(
    password_url: str, tmp_path: Path
) -> None:
    other = password_url.replace("/one?", "/two?")
    await migrate(password_url)
    await fetch_rows(password_url, "INSERT INTO login_failures VALUES ('ada', 'here', '{}')")
    await save_backup(password_url, tmp_path / "backup")
    await restore_backup(other, tmp_path / "backup")
    assert await fetch_rows(other, "SELECT email FROM login_failures") == [("ada",)]
    owners = await fetch_rows(
        other, "SELECT DISTINCT tableowner FROM pg_tables WHERE schemaname='public'"
    )
    assert owners == [("shop",)]
    wrong = password_url.replace(quote(PASSWORD, safe=""), "wrong")
    with pytest.raises(StoreError, match="the database cannot be reached: password"):
        await save_backup(wrong, tmp_path / "other")
    assert not (tmp_path / "other").exists()


@pytest.mark.parametrize("mode", ["require", "verify-full"])
async def test_backup_and_restore_on_a_server_that_requires_tls(
    mode: str, database_url: str, empty_database_url: str, tls_proxy: TlsProxy, tmp_path: Path
) -> None:
    await fetch_rows(database_url, "INSERT INTO login_failures VALUES ('ada', 'here', '{}')")
    options = f"?sslmode={mode}" + (
        f"&sslrootcert={tls_proxy.root_certificate}" if mode == "verify-full" else ""
    )
    await save_backup(tls_proxy.build_url(database_url) + options, tmp_path / "backup")
    await restore_backup(tls_proxy.build_url(empty_database_url) + options, tmp_path / "backup")
    assert await fetch_rows(empty_database_url, "SELECT email FROM login_failures") == [("ada",)]
    with pytest.raises(StoreError, match=r"cannot be reached: no pg_hba\.conf entry"):
        await save_backup(
            tls_proxy.build_url(database_url) + "?sslmode=disable", tmp_path / "other"
        )
    by_address = tls_proxy.build_url(database_url, "127.0.0.1")
    with pytest.raises(StoreError, match=r"cannot be reached: .*certificate verify failed"):
        await save_backup(
            f"{by_address}?sslmode=verify-full&sslrootcert={tls_proxy.root_certificate}",
            tmp_path / "other",
        )


@pytest.mark.parametrize("configured_by", ["options", "database"])
async def test_backup_and_restore_in_another_schema(
    configured_by: str,
    database_url: str,
    empty_database_url: str,
    other_empty_database_url: str,
    tmp_path: Path,
) -> None:
    """Restores from `public` into another schema and back, because a backup must fit any schema."""
    other = f"{empty_database_url}&options=-c%20search_path%3D%22My%5C%20shop%22"
    await fetch_rows(empty_database_url, 'CREATE SCHEMA "My shop"')
    if configured_by == "database":
        name = get_database_name(empty_database_url)
        await fetch_rows(empty_database_url, f'ALTER DATABASE {name} SET search_path = "My shop"')
        other = empty_database_url
    await fetch_rows(database_url, "INSERT INTO login_failures VALUES ('ada', 'here', '{}')")
    manifest = await save_backup(database_url, tmp_path / "backup")
    await restore_backup(other, tmp_path / "backup")
    assert await fetch_rows(other, 'SELECT email FROM "My shop".login_failures') == [("ada",)]
    assert await fetch_rows(other, "SELECT FROM pg_tables WHERE schemaname = 'public'") == []
    assert await migrate(other) == []
    again = await save_backup(other, tmp_path / "again")
    assert (again.tables, again.figures) == (manifest.tables, manifest.figures)
    await restore_backup(other_empty_database_url, tmp_path / "again")
    assert dump_schema(other_empty_database_url) == dump_schema(database_url)


async def test_missing_schema_is_reported(
    database_url: str, empty_database_url: str, tmp_path: Path
) -> None:
    await save_backup(database_url, tmp_path / "backup")
    with pytest.raises(StoreError, match=r"no schema in the search_path exists \(nowhere\)"):
        await restore_backup(f"{empty_database_url}&search_path=nowhere", tmp_path / "backup")
