"""Looks for PINs where none may be. Every journey's PINs are canaries."""

import re
from collections.abc import Iterable

from tapgate.messenger.outbox.sealed import opened
from tapgate.store.database import Database
from tapgate.vault import Vault

#: Four digits that stand alone: not a part of an id, an amount or a time.
_ALONE = r"(?<![0-9A-Za-z+_-])(?<![0-9]\.)(?:{})(?![0-9A-Za-z_-])(?!\.[0-9])"


def seen(pins: Iterable[str], text: str) -> list[str]:
    """What is around each one that was found."""
    pattern = re.compile(_ALONE.format("|".join(pins)))
    return [text[max(0, found.start() - 60) : found.end() + 60] for found in pattern.finditer(text)]


async def rows(database: Database) -> str:
    """Every row of every table, as text."""
    tables = await database.fetch(
        """SELECT format('%I.%I', schemaname, tablename) AS name FROM pg_tables
           WHERE schemaname IN ('public', 'messenger')"""
    )
    lines = []
    for table in tables:
        found = await database.fetch(f"SELECT t::text AS line FROM {table['name']} t")
        lines += [f"{table['name']}: {row['line']}" for row in found]
    return "\n".join(lines)


async def replies(database: Database, vault: Vault) -> str:
    """Everything that people were told, one-time codes and tokens of forms too."""
    kept = await database.fetch(
        "SELECT id, content FROM messenger.outbox WHERE content IS NOT NULL"
    )
    return "\n".join(str(opened(vault, row["id"], row["content"])) for row in kept)
