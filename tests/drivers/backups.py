"""Backups and database comparisons."""

import asyncio
import subprocess
from pathlib import Path

import asyncpg

from tapgate.core.vault import Vault
from tapgate.runtime.store import restore
from tapgate.runtime.store.backup import create_backup
from tapgate.runtime.store.backup_file import BackupReader, Manifest, open_new_file
from tapgate.runtime.store.postgres_programs import find_programs_dir

VAULT = Vault("the secret key of these tests")


def ignore_progress(*_: object) -> None:
    """Ignore progress reports."""


async def save_backup(url: str, path: Path) -> Manifest:
    with open_new_file(path, replace=True) as file:
        manifest, _ = await create_backup(url, file, VAULT, ignore_progress)
        return manifest


async def restore_backup(url: str, path: Path) -> list[str]:
    with path.open("rb") as file:
        return await restore.restore_backup(
            url, BackupReader(file, VAULT, ignore_progress), ignore_progress
        )


async def fetch_rows(url: str, sql: str) -> list[tuple[object, ...]]:
    connection = await asyncpg.connect(url)
    try:
        return [tuple(row) for row in await connection.fetch(sql)]
    finally:
        await connection.close()


def list_files(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


def dump_schema(url: str) -> str:
    """Return the schema without parentheses, because restored expressions may have fewer."""
    command = [
        find_programs_dir() / "pg_dump",
        "--schema-only",
        "--no-owner",
        "--restrict-key=same",
    ]
    result = subprocess.run([*command, url], check=True, capture_output=True, text=True)
    return result.stdout.replace("(", "").replace(")", "")


async def is_empty(url: str) -> bool:
    return (
        await fetch_rows(url, "SELECT FROM pg_tables WHERE schemaname IN ('public', 'messenger')")
        == []
    )


async def wait_until_idle(url: str) -> None:
    """Wait until PostgreSQL has ended all other sessions on the database."""
    while await fetch_rows(
        url,
        """SELECT FROM pg_stat_activity
           WHERE datname = current_database() AND pid <> pg_backend_pid()""",
    ):
        await asyncio.sleep(0.01)


def get_database_name(url: str) -> str:
    return url.partition("@/")[2].partition("?")[0]
