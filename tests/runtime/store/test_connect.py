"""Connections look up built-in types once per process, and other types once per connection."""

import os
import subprocess
import sys
from collections import deque
from typing import Any

import asyncpg
import pytest

from tapgate.runtime.store import connect


async def test_only_builtin_types_are_shared_by_connections(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connect, "builtin_types", {})
    queries: list[str] = []

    async def count_lookups(sql: str, value: object) -> int:
        """Return how often two new connections look up the types of a statement."""
        queries.clear()
        for _ in range(2):
            connection = await connect.open_connection(database_url, timeout=60)
            connection.add_query_logger(_append_query)
            assert await connection.fetchval(sql, value) == value
            await connection.close()
        return sum("typeinfo_tree" in query for query in queries)

    def _append_query(record: asyncpg.connection.LoggedQuery) -> None:
        queries.append(record.query)

    assert await count_lookups("SELECT $1::smallint[]", [1, 2]) == 1
    assert await count_lookups("SELECT ($1::smallint[] || $1::smallint[])[1:2]", [3, 4]) == 0
    connection = await asyncpg.connect(database_url)
    await connection.execute("CREATE TYPE color AS ENUM ('red', 'green')")
    await connection.close()
    assert await count_lookups("SELECT $1::color[]", ["red", "green"]) == 2


#: Allocates blocks next to the rows and frees them: the C library checks a block when it is freed.
_FETCH_ROWS_WITHOUT_COLUMNS = """
import asyncio, sys
from tapgate.runtime.store.connect import open_connection

async def main():
    connection = await open_connection(sys.argv[1], timeout=60)
    for _ in range(200):
        rows = await connection.fetch("SELECT FROM generate_series(1, 20)")
        neighbors = [bytes(size) for size in range(600, 2000, 7)]
        del rows, neighbors
    await connection.close()

asyncio.run(main())
"""


def test_rows_without_columns_do_not_corrupt_memory(database_url: str) -> None:
    subprocess.run(
        [sys.executable, "-c", _FETCH_ROWS_WITHOUT_COLUMNS, database_url],
        env={**os.environ, "PYTHONMALLOC": "malloc"},
        check=True,
    )


@pytest.mark.parametrize(
    ("sql", "value"),
    [
        ("SELECT $1::bigint[]", [1, None, 3]),
        ("SELECT $1::text[]", ["a", "", None]),
        ("SELECT $1::bytea[]", [b"a", b""]),
        ("SELECT $1::bigint[]", [[1, 2], [3, 4]]),
        ("SELECT $1::jsonb[]", ["{}", "[1]"]),
        ("SELECT array(SELECT unnest($1::bigint[]) ORDER BY 1)", {1: "a", 2: "b"}.keys()),
        ("SELECT array(SELECT unnest($1::text[]) ORDER BY 1)", {"a": 1}.keys()),
        ("SELECT array(SELECT unnest($1::bigint[]) ORDER BY 1)", (1, 2)),
        ("SELECT array(SELECT unnest($1::bigint[]) ORDER BY 1)", frozenset((1, 2))),
        ("SELECT array(SELECT unnest($1::bigint[]) ORDER BY 1)", deque((1, 2))),
    ],
)
async def test_array_arguments_of_all_kinds(database_url: str, sql: str, value: Any) -> None:
    connection = await connect.open_connection(database_url, timeout=60)
    try:
        assert await connection.fetchval(sql, value) == list(value)
        for wrong in ({1: 2}, "text", 5, iter([1])):
            with pytest.raises(asyncpg.DataError, match="a sized iterable container expected"):
                await connection.fetchval(sql, wrong)
    finally:
        await connection.close()
