"""An installation's tables, as found in the catalog, and their preparation for loading.

Names in statements come only from the database's own catalog. A name from any other source, such as
a backup, is looked up in the catalog and never becomes part of a statement.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import asyncpg

from tapgate.runtime.store import StoreError

#: The only schema that migrations name. Other tables are in the search path's first schema.
MESSENGER_SCHEMA = "messenger"

_SELECT_TABLES = """
    SELECT n.nspname AS schema, c.relname AS name, format('%I.%I', n.nspname, c.relname) AS quoted,
           (SELECT coalesce(array_agg(attname::text ORDER BY attnum), '{}') FROM pg_attribute
            WHERE attrelid = c.oid AND attnum > 0 AND NOT attisdropped
              AND attgenerated = '') AS columns
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE n.nspname = ANY ($1) AND c.relkind IN ('r', 'p') AND NOT c.relispartition
    ORDER BY n.nspname = $2 DESC, c.relname"""

#: Partitions have separate statement triggers.
_SELECT_PARTITIONS = """
    SELECT c.oid::regclass::text FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE n.nspname = ANY ($1) AND c.relkind = 'r' AND c.relispartition"""

_SELECT_SEQUENCES = """
    SELECT n.nspname AS schema, c.relname AS name, format('%I.%I', n.nspname, c.relname) AS quoted
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE n.nspname = ANY ($1) AND c.relkind = 'S' ORDER BY n.nspname, c.relname"""

_SELECT_FOREIGN_KEYS = """
    SELECT format('ALTER TABLE %s DROP CONSTRAINT %I', conrelid::regclass, conname) AS remove,
           format('ALTER TABLE %s ADD CONSTRAINT %I %s', conrelid::regclass, conname,
                  pg_get_constraintdef(c.oid)) AS restore
    FROM pg_constraint c JOIN pg_namespace n ON n.oid = connamespace
    WHERE contype = 'f' AND n.nspname = ANY ($1)
    ORDER BY conrelid::regclass::text, conname"""

#: Excludes indexes that back constraints. Rows are loaded roughly in primary key order, so the
#: primary key indexes are cheap to maintain during loading. A partition's index is dropped with the
#: table's index, and attached to it again.
_SELECT_INDEXES = """
    SELECT CASE WHEN NOT c.relispartition THEN format('DROP INDEX %s', indexrelid::regclass)
           END AS remove,
           pg_get_indexdef(indexrelid) || CASE WHEN c.relispartition THEN
               format('; ALTER INDEX %s ATTACH PARTITION %s', inhparent::regclass,
                      indexrelid::regclass) ELSE '' END AS restore
    FROM pg_index JOIN pg_class c ON c.oid = indexrelid JOIN pg_namespace n ON n.oid = relnamespace
    LEFT JOIN pg_inherits ON inhrelid = indexrelid
    WHERE n.nspname = ANY ($1)
      AND NOT EXISTS (SELECT FROM pg_constraint
                      WHERE conindid = indexrelid AND contype IN ('p', 'u', 'x'))
    ORDER BY c.relispartition, indexrelid::regclass::text"""


class Table(NamedTuple):
    schema: str
    name: str
    quoted: str
    #: Without generated columns.
    columns: Sequence[str]


class Schema(NamedTuple):
    """Tables and sequences by name; only the messenger's names include their schema."""

    schemas: tuple[str, str]
    tables: Mapping[str, Table]
    #: Name to quoted name.
    sequences: Mapping[str, str]


async def get_main_schema(connection: asyncpg.Connection) -> str:
    name = await connection.fetchval("SELECT current_schema()")
    if name is None:
        path = await connection.fetchval("SELECT current_setting('search_path')")
        raise StoreError(f"no schema in the search_path exists ({path}). Create it first")
    return str(name)


async def read_schema(connection: asyncpg.Connection) -> Schema:
    main = await get_main_schema(connection)
    schemas = (main, MESSENGER_SCHEMA)

    def qualify(schema: str, name: str) -> str:
        return name if schema == main else f"{schema}.{name}"

    tables = [Table(*row) for row in await connection.fetch(_SELECT_TABLES, schemas, main)]
    sequences = await connection.fetch(_SELECT_SEQUENCES, schemas)
    return Schema(
        schemas,
        {qualify(table.schema, table.name): table for table in tables},
        {qualify(row["schema"], row["name"]): row["quoted"] for row in sequences},
    )


async def prepare_for_loading(
    connection: asyncpg.Connection, schema: Schema
) -> Sequence[tuple[str, str]]:
    """Empty all tables, disable triggers, and drop indexes and foreign keys.

    Indexes and foreign keys are faster to build after loading. Return the steps that rebuild them
    and enable the triggers, each as a label and a statement.
    """
    tables = [table.quoted for table in schema.tables.values()]
    foreign_keys, indexes = [
        await connection.fetch(query, schema.schemas)
        for query in (_SELECT_FOREIGN_KEYS, _SELECT_INDEXES)
    ]
    removals = [row["remove"] for row in (*foreign_keys, *indexes) if row["remove"]]
    partitions = [row[0] for row in await connection.fetch(_SELECT_PARTITIONS, schema.schemas)]
    for table in (*tables, *partitions):
        await connection.execute(f"ALTER TABLE {table} DISABLE TRIGGER USER")
    for removal in removals:
        await connection.execute(removal)
    await connection.execute(f"TRUNCATE {', '.join(tables)}")
    return [
        *(("index", row["restore"]) for row in indexes),
        *(("foreign key", row["restore"]) for row in foreign_keys),
        *(
            ("triggers", f"ALTER TABLE {table} ENABLE TRIGGER USER")
            for table in (*tables, *partitions)
        ),
    ]
