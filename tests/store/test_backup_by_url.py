"""Backup and restore of databases elsewhere: with a password, with TLS, in another schema."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import quote

import pytest

from gateway.running import free_port
from store.conftest import Tls, let_others_reach
from store.test_backup import load, name_of, rows, saved, schema
from tapgate.store import StoreError
from tapgate.store.embedded import PROGRAMS_DIR, EmbeddedPostgres
from tapgate.store.migrate import migrate
from tapgate.store.server_user import resolve_server_user

PASSWORD = "p@ss:w/rd %&'\\"


@pytest.fixture
async def by_password(data_dir: Path) -> AsyncIterator[str]:
    """A server that is reached by TCP, as a user who owns a database and is nobody else."""
    server = EmbeddedPostgres(data_dir)
    quoted = PASSWORD.replace("'", "''")
    try:
        url = server.start()
        await rows(url, f"CREATE ROLE shop LOGIN PASSWORD '{quoted}'")
        for name in ("one", "two"):
            await rows(url, f"CREATE DATABASE {name} OWNER shop")
    finally:
        server.stop()
    pgdata, port = data_dir / "pgdata", free_port()
    (pgdata / "pg_hba.conf").write_text("host all shop 127.0.0.1/32 scram-sha-256\n")
    let_others_reach(pgdata)
    process = await asyncio.create_subprocess_exec(
        PROGRAMS_DIR / "postgres",
        *("-D", pgdata, "-c", "listen_addresses=127.0.0.1", "-c", f"port={port}", "-k", ""),
        stderr=asyncio.subprocess.PIPE,
        **resolve_server_user(pgdata).popen_arguments(),
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


async def test_by_url_with_a_password(by_password: str, tmp_path: Path) -> None:
    other = by_password.replace("/one?", "/two?")
    await migrate(by_password)
    await rows(by_password, "INSERT INTO login_failures VALUES ('ada', 'here', '{}')")
    await saved(by_password, tmp_path / "backup")
    await load(other, tmp_path / "backup")
    assert await rows(other, "SELECT email FROM login_failures") == [("ada",)]
    owners = await rows(
        other, "SELECT DISTINCT tableowner FROM pg_tables WHERE schemaname='public'"
    )
    assert owners == [("shop",)]
    wrong = by_password.replace(quote(PASSWORD, safe=""), "wrong")
    with pytest.raises(StoreError, match="the database cannot be reached: password"):
        await saved(wrong, tmp_path / "other")
    assert not (tmp_path / "other").exists()


@pytest.mark.parametrize("mode", ["require", "verify-full"])
async def test_a_server_that_requires_tls(
    mode: str, database_url: str, empty_url: str, tls: Tls, tmp_path: Path
) -> None:
    await rows(database_url, "INSERT INTO login_failures VALUES ('ada', 'here', '{}')")
    options = f"?sslmode={mode}" + (f"&sslrootcert={tls.root}" if mode == "verify-full" else "")
    await saved(tls.url(database_url) + options, tmp_path / "backup")
    await load(tls.url(empty_url) + options, tmp_path / "backup")
    assert await rows(empty_url, "SELECT email FROM login_failures") == [("ada",)]
    with pytest.raises(StoreError, match=r"cannot be reached: no pg_hba\.conf entry"):
        await saved(tls.url(database_url) + "?sslmode=disable", tmp_path / "other")
    by_number = tls.url(database_url, "127.0.0.1")
    with pytest.raises(StoreError, match=r"cannot be reached: .*certificate verify failed"):
        await saved(f"{by_number}?sslmode=verify-full&sslrootcert={tls.root}", tmp_path / "other")


@pytest.mark.parametrize("way", ["options", "role"])
async def test_tables_in_another_schema(
    way: str, database_url: str, empty_url: str, other_empty_url: str, tmp_path: Path
) -> None:
    """There and back: neither the file nor the code says how the schema is called."""
    other = f"{empty_url}&options=-c%20search_path%3D%22My%5C%20shop%22"
    await rows(empty_url, 'CREATE SCHEMA "My shop"')
    if way == "role":
        name = name_of(empty_url)
        await rows(empty_url, f'ALTER DATABASE {name} SET search_path = "My shop"')
        other = empty_url
    await rows(database_url, "INSERT INTO login_failures VALUES ('ada', 'here', '{}')")
    manifest = await saved(database_url, tmp_path / "backup")
    await load(other, tmp_path / "backup")
    assert await rows(other, 'SELECT email FROM "My shop".login_failures') == [("ada",)]
    assert await rows(other, "SELECT FROM pg_tables WHERE schemaname = 'public'") == []
    assert await migrate(other) == []
    again = await saved(other, tmp_path / "again")
    assert (again.tables, again.figures) == (manifest.tables, manifest.figures)
    await load(other_empty_url, tmp_path / "again")
    assert schema(other_empty_url) == schema(database_url)


async def test_a_schema_that_does_not_exist_is_one_line(
    database_url: str, empty_url: str, tmp_path: Path
) -> None:
    await saved(database_url, tmp_path / "backup")
    with pytest.raises(StoreError, match=r"no schema of the search_path exists \(nowhere\)"):
        await load(f"{empty_url}&search_path=nowhere", tmp_path / "backup")
