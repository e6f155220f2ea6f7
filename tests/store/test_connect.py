"""Connections look up built-in types once per process, and other types once per connection."""

import asyncpg
import pytest

from tapgate.store import connect


async def test_only_builtin_types_are_shared_by_connections(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connect, "_builtin_types", {})
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
