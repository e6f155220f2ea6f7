"""A query for a period reads few entries, regardless of the length of the audit log."""

from typing import Any
from zoneinfo import ZoneInfo

import pytest

from tapgate.audit import entry
from tapgate.audit.routes import build_page_query
from tapgate.schemas.audit import AuditLogQuery
from tapgate.store.database import Database
from transactions.large_history import QueryExplainer, count_rows_read

DAY_COUNT = 60
ENTRIES_PER_DAY = 200


async def _insert_entries(database: Database) -> None:
    await database.execute(
        """INSERT INTO audit_entries (id, occurred_at, event, actor, resource_type, result, changes)
           SELECT number, timestamptz '2026-01-01 00:00Z' + number * interval '1 day' / $2::integer,
                  'subscriber.updated', '{"id": "adm_1"}', 'subscriber', 'success', '{}'
           FROM generate_series(0, $1::integer * $2::integer - 1) AS number""",
        DAY_COUNT,
        ENTRIES_PER_DAY,
    )
    await database.execute("VACUUM ANALYZE audit_entries")


@pytest.mark.parametrize(
    ("period", "expected"),
    [
        ({"from_": "2026-01-05", "to": "2026-01-05"}, 51),
        ({"to": "2026-01-02"}, 51),
        ({"from_": "2026-02-01", "to": "2026-02-02", "actor_id": "adm_1"}, 51),
        ({"from_": "2026-03-01T23:00:00Z"}, 8),
        ({"from_": "2026-03-03"}, 0),
    ],
)
async def test_period_query_reads_few_entries_outside_its_page(
    database: Database, period: dict[str, str], expected: int
) -> None:
    await _insert_entries(database)
    sql, values = build_page_query(AuditLogQuery(**period), ZoneInfo("UTC"))
    rows = await database.fetch(sql, *values)
    assert len(rows) == expected
    explainer: Any = QueryExplainer(database)
    await explainer.fetch(sql, *values)
    assert (
        max(count_rows_read(plan, "audit_entries") for plan in explainer.plans)
        < 3 * ENTRIES_PER_DAY
    )
    assert {entry.to_record(row).occurred_at[:4] for row in rows} <= {"2026"}
