"""Searches use an index and need a word of at least 3 characters; filters require valid IDs."""

import re
from typing import Any

import httpx2
import pytest

from cases import each
from harness import Harness
from tapgate.runtime.store.database import Database
from tapgate_client import ids

ROW_COUNT = 2_500
_FILLED_TABLES = {"accounts", "subscribers", "cards", "agents", "processors", "partners"}
SEARCHES = {
    "/api/v1/subscribers": ("subscribers", "mary", "koroma 00042"),
    "/api/v1/cards": ("cards", "tap-0", "0042"),
    "/api/v1/agents": ("agents", "mary", "koroma 00042"),
    "/api/v1/processors": ("processors", "mary", "shop00042"),
    "/api/v1/admin/partners": ("partners", "mary", "koroma 00042"),
}
#: Every name contains "Mary" and a number that occurs once per kind of account.
_INSERT_ACCOUNTS_SQL = """
    INSERT INTO accounts
        (id, kind, owner_id, holder_name, public_name, currency, kyc_level, checked)
    SELECT n * 10 + k, kind, n * 10 + k,
           'Mary' || n % 2 || ' Koroma ' || lpad(n::text, 5, '0'), '',
           'SLE', CASE kind WHEN 'wallet' THEN 1 END, true
    FROM generate_series(1, $1) n,
         unnest('{wallet,float,commission,settlement,clearing}'::text[])
             WITH ORDINALITY AS kinds (kind, k);
"""
_INSERT_ROWS_SQL = (
    """INSERT INTO subscribers (id, account_id, phone_number, first_name, last_name, created_at,
                                updated_at)
       SELECT n, n * 10 + 1, '+232' || (70000000 + n), 'Mary' || n % 2,
              'Koroma ' || lpad(n::text, 5, '0'), now(), now()
       FROM generate_series(1, $1) n""",
    """INSERT INTO cards (id, serial, status, created_at, updated_at)
       SELECT n, 'TAP-' || lpad(n::text, 5, '0'), 'UNASSIGNED', now(), now()
       FROM generate_series(1, $1) n""",
    """INSERT INTO agents (id, account_id, commission_account_id, agent_type, phone_number, address,
                           created_at, updated_at)
       SELECT n, n * 10 + 2, n * 10 + 3, 'super_agent', '+232' || (70000000 + n),
              lpad(n::text, 5, '0') || ' Kissy Road', now(), now()
       FROM generate_series(1, $1) n""",
    """INSERT INTO processors (id, account_id, phone_number, email, created_at, updated_at)
       SELECT n, n * 10 + 4, '+232' || (70000000 + n),
              'shop' || lpad(n::text, 5, '0') || '@example.com', now(), now()
       FROM generate_series(1, $1) n""",
    """INSERT INTO partners (id, account_id, webhook_secret, created_at)
       SELECT n, n * 10 + 5, '', now() FROM generate_series(1, $1) n""",
)


class QueryExplainer:
    """Sends search requests and explains the SQL of their queries."""

    def __init__(self, client: httpx2.AsyncClient, monkeypatch: pytest.MonkeyPatch) -> None:
        self._client = client
        self._queries: list[tuple[str, tuple[object, ...]]] = []
        fetch = Database.fetch

        async def record_and_fetch(database: Database, sql: str, *arguments: object) -> Any:
            self._queries.append((sql, arguments))
            return await fetch(database, sql, *arguments)

        monkeypatch.setattr(Database, "fetch", record_and_fetch)

    async def explain(
        self, database: Database, path: str, text: str, caller: Any, parameter: str = "search"
    ) -> str:
        self._queries.clear()
        response = await self._client.get(path, params={parameter: text}, auth=caller)
        assert response.status_code == 200, response.text
        assert response.json()["data"], text
        ((sql, arguments),) = [item for item in self._queries if "trigrams" in item[0]]
        rows = await database.fetch(f"EXPLAIN {sql}", *arguments)
        return "\n".join(row[0] for row in rows)


async def test_searches_do_not_scan_tables(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    admin, database = await harness.create_admin(), harness.database
    async with database.transaction() as tx:
        await tx.execute(_INSERT_ACCOUNTS_SQL.replace("$1", str(ROW_COUNT)), timeout=120)
        for statement in _INSERT_ROWS_SQL:
            await tx.execute(statement.replace("$1", str(ROW_COUNT)), timeout=120)
    async with database.connection() as connection:
        for table in _FILLED_TABLES:
            await connection.execute(f"VACUUM ANALYZE {table}", timeout=120)
    explainer = QueryExplainer(harness.client, monkeypatch)
    for path, (table, frequent, rare) in SEARCHES.items():
        for search in (frequent, rare):
            plan = await explainer.explain(database, path, search, admin)
            # The planner may scan the other tables, such as pins: they are empty here.
            scanned = set(re.findall(r"Seq Scan on (\w+)", plan)) & _FILLED_TABLES
            assert not scanned, (path, search, plan)
        assert f"{table}_search" in plan, plan
    plan = await explainer.explain(database, "/api/v1/agents", "00042 kissy", admin, "address")
    assert "agents_address" in plan and "Seq Scan on agents" not in plan, plan


@pytest.mark.parametrize("path", SEARCHES)
async def test_search_requires_a_word_of_at_least_three_characters(
    harness: Harness, path: str
) -> None:
    admin = await harness.create_admin()
    for search in ("a", "ab", "ab cd ef", " a  b ", "  %  "):
        response = await harness.get(path, params={"search": search}, auth=admin)
        assert (response.status_code, response.json()["code"]) == (422, "VALIDATION_FAILED"), search
        assert list(response.json()["details"]["fields"]) == ["search"]
    for search in ("abc", "ab cde", "a b cde"):
        response = await harness.get(path, params={"search": search}, auth=admin)
        assert response.status_code == 200, search


async def test_separators_do_not_count_toward_the_search_length(harness: Harness) -> None:
    admin = await harness.create_admin()
    for search in ("a:b", "-1-", "ab :: 1"):
        response = await harness.get("/api/v1/cards", params={"search": search}, auth=admin)
        assert response.status_code == 422, search


async def test_renamed_account_updates_the_search_text(harness: Harness) -> None:
    """A database trigger updates the account owner's search text."""
    database = harness.database
    processor = await harness.create_processor()
    await database.execute(
        "UPDATE accounts SET holder_name = 'Renamed Limited' WHERE kind = 'settlement'"
    )
    stored = await database.fetchval("SELECT search_text FROM processors")
    assert stored == "renamed limited +23276000000 shop@example.com"
    await database.execute("UPDATE processors SET email = 'NEW@example.com'")
    assert "new@example.com" in await database.fetchval("SELECT search_text FROM processors")
    assert processor.id


FILTERS = [
    ("/api/v1/cards", "subscriber_id", ids.SUBSCRIBER),
    ("/api/v1/agents", "parent_agent_id", ids.AGENT),
    ("/api/v1/compliance/alerts", "subscriber_id", ids.SUBSCRIBER),
    ("/api/v1/support/requests", "subscriber_id", ids.SUBSCRIBER),
    ("/api/v1/support/requests", "assignee", ids.ADMIN),
    ("/api/v1/transactions", "user_id", ids.SUBSCRIBER),
]


@each("url, name, prefix", FILTERS)
async def test_malformed_id_filter_is_rejected_and_unknown_id_finds_nothing(
    harness: Harness, url: str, name: str, prefix: str
) -> None:
    admin = await harness.create_admin()
    for bad in ("x", f"{prefix}x", "key_0000000000001"):
        response = await harness.get(url, params={name: bad}, auth=admin)
        assert (response.status_code, response.json()["code"]) == (422, "VALIDATION_FAILED")
        assert name in response.json()["details"]["fields"]
    response = await harness.get(url, params={name: ids.encode(prefix, 1)}, auth=admin)
    assert (response.status_code, response.json()["data"]) == (200, [])
