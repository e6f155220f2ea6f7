"""What a migration changes for processes on the previous release, found in PostgreSQL's catalog.

The catalog before and after a migration is compared instead of its text, so that the form of a
statement, DO blocks and functions make no difference.
"""

from typing import Any, Final, NamedTuple

import asyncpg

#: Tables with few rows in every installation, which a migration may read or rewrite.
_SMALL_TABLES: Final = frozenset(
    {
        "account_rules", "admins", "api_keys", "audit_budgets", "audit_seal", "branding",
        "commission_rules",
        "compliance_rules", "fee_rules", "gl_codes", "installation", "nodes", "schema_migrations",
        "verified_sums_seal", "webhook_endpoints",
    }
)  # fmt: skip

_SELECT_RELATIONS: Final = """
    SELECT oid::regclass::text AS name, oid, relkind::text AS kind, relispartition AS is_partition,
           pg_relation_filenode(oid) AS file, pg_stat_get_xact_numscans(oid) AS scans
    FROM pg_class WHERE relnamespace::regnamespace::text IN ('public', 'messenger')
      AND relkind IN ('r', 'p', 'v', 'm', 'S')"""
_SELECT_COLUMNS: Final = """
    SELECT attrelid::regclass::text AS table, attname::text AS name,
           format_type(atttypid, atttypmod) AS type, attnotnull AS is_required,
           atthasdef OR attidentity <> '' AS has_default
    FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid
    WHERE relnamespace::regnamespace::text IN ('public', 'messenger')
      AND relkind IN ('r', 'p', 'v', 'm') AND attnum > 0 AND NOT attisdropped"""
#: Rules that a row must obey: constraints, and unique indexes without a constraint.
_SELECT_RULES: Final = """
    SELECT conrelid::regclass::text AS table, conname::text AS name, conkey AS columns
    FROM pg_constraint WHERE conrelid <> 0 AND contype IN ('c', 'f', 'p', 'u', 'x')
      AND connamespace::regnamespace::text IN ('public', 'messenger')
    UNION
    SELECT indrelid::regclass::text, indexrelid::regclass::text, indkey::smallint[]
    FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid
    WHERE indisunique AND relnamespace::regnamespace::text IN ('public', 'messenger')"""
_SELECT_COLUMN_NUMBERS: Final = """
    SELECT attrelid::regclass::text, array_agg(attnum) FROM pg_attribute JOIN pg_class c
        ON c.oid = attrelid
    WHERE relnamespace::regnamespace::text IN ('public', 'messenger') AND attnum > 0 GROUP BY 1"""
_SELECT_FUNCTIONS: Final = """
    SELECT oid::regprocedure::text AS name FROM pg_proc
    WHERE pronamespace::regnamespace::text IN ('public', 'messenger')"""


class Catalog(NamedTuple):
    relations: dict[str, Any]
    columns: dict[tuple[str, str], Any]
    rules: dict[tuple[str, str], Any]
    column_numbers: dict[str, list[int]]
    functions: set[str]

    @classmethod
    async def read(cls, connection: asyncpg.Connection) -> "Catalog":
        columns = await connection.fetch(_SELECT_COLUMNS)
        rules = await connection.fetch(_SELECT_RULES)
        return cls(
            {row["name"]: row for row in await connection.fetch(_SELECT_RELATIONS)},
            {(row["table"], row["name"]): row for row in columns},
            {(row["table"], row["name"]): row for row in rules},
            dict(map(tuple, await connection.fetch(_SELECT_COLUMN_NUMBERS))),
            {row["name"] for row in await connection.fetch(_SELECT_FUNCTIONS)},
        )


def list_incompatibilities(before: Catalog, after: Catalog) -> list[str]:
    """Return the changes with which processes on the previous release cannot work."""
    found = [f"{name} is missing" for name in before.relations if name not in after.relations]
    found += [f"{name} is missing" for name in before.functions - after.functions]
    for key, column in before.columns.items():
        if key[0] in after.relations:
            found += _compare_column(".".join(key), column, after.columns.get(key))
    for key, column in after.columns.items():
        is_new = key not in before.columns and key[0] in before.relations
        if is_new and column["is_required"] and not column["has_default"]:
            found.append(f"{'.'.join(key)} must be set by every INSERT")
    for (table, name), rule in after.rules.items():
        if table in before.relations and (table, name) not in before.rules:
            old_columns = set(before.column_numbers[table]) & set(rule["columns"] or [0])
            if old_columns or not rule["columns"]:
                found.append(f"{name} restricts existing columns of {table}")
    return sorted(found)


def _compare_column(name: str, before: Any, after: Any) -> list[str]:
    if after is None:
        return [f"{name} is missing"]
    found = []
    if before["type"] != after["type"]:
        found.append(f"{name} changes its type from {before['type']} to {after['type']}")
    if after["is_required"] and not before["is_required"]:
        found.append(f"{name} must not be null any more")
    if after["is_required"] and before["has_default"] and not after["has_default"]:
        found.append(f"{name} loses its default")
    return found


def list_long_locks(before: Catalog, after: Catalog) -> list[str]:
    """Return the tables that were read or rewritten while they were locked."""
    found = []
    for name, relation in before.relations.items():
        now = after.relations.get(name)
        if now is None or now["oid"] != relation["oid"] or name in _SMALL_TABLES:
            continue
        if relation["kind"] == "r" and now["file"] != relation["file"]:
            found.append(f"{name} is rewritten")
        elif now["scans"] > relation["scans"]:
            found.append(f"{name} is read completely")
    return sorted(found)
