"""Finds transactions by idempotency key and by partner reference.

Both have separate tables: a partitioned table's unique index could not include them.
"""

from collections.abc import Collection
from typing import Any, Final

from tapgate.runtime.store.combined import Query

#: OFFSET 0 fixes the plan: one lookup per key. A plan made while the table is small could otherwise
#: read all keys for every batch later.
_FIND_BY_KEY: Final = """
    SELECT DISTINCT found.transaction_id
    FROM unnest($1::text[], $2::text[]) AS requested (scope, request_id)
    CROSS JOIN LATERAL (
        SELECT transaction_id FROM idempotency_keys stored
        WHERE stored.scope = requested.scope AND stored.request_id = requested.request_id OFFSET 0
    ) AS found"""
_FIND_BY_REFERENCE: Final = """
    SELECT DISTINCT found.transaction_id
    FROM unnest($1::bigint[], $2::text[]) AS requested (partner_id, reference)
    CROSS JOIN LATERAL (
        SELECT transaction_id FROM partner_references stored
        WHERE stored.partner_id = requested.partner_id AND stored.reference = requested.reference
        OFFSET 0
    ) AS found"""
#: The distinct scopes, with one lookup in the unique index for each.
_LIST_SCOPES: Final = """
    WITH RECURSIVE scopes AS (
        (SELECT scope FROM idempotency_keys ORDER BY scope LIMIT 1)
        UNION ALL
        SELECT (SELECT scope FROM idempotency_keys WHERE scope > scopes.scope
                ORDER BY scope LIMIT 1)
        FROM scopes WHERE scopes.scope IS NOT NULL)
    SELECT scope FROM scopes WHERE scope IS NOT NULL"""


def build_key_query(keys: Collection[tuple[str, str]]) -> Query | None:
    """Return the query for `find_by_idempotency_keys`, or None without keys."""
    return _build_query(_FIND_BY_KEY, keys)


def build_reference_query(references: Collection[tuple[int, str]]) -> Query | None:
    """Return the query for `find_by_partner_references`, or None without references."""
    return _build_query(_FIND_BY_REFERENCE, references)


async def find_by_idempotency_keys(reader: Any, keys: Collection[tuple[str, str]]) -> list[int]:
    """Return transaction IDs by (scope, request ID) pair."""
    return await _find(reader, build_key_query(keys))


async def find_by_partner_references(
    reader: Any, references: Collection[tuple[int, str]]
) -> list[int]:
    """Return transaction IDs by partner reference, without failed transactions."""
    return await _find(reader, build_reference_query(references))


async def find_by_request_id(reader: Any, request_id: str) -> list[int]:
    """Return the IDs of all owners' transactions with this request ID.

    Looks it up for each owner that has used idempotency keys. An index by request ID alone would
    cost every payment a write to a random page.
    """
    rows = await reader.fetch(_LIST_SCOPES)
    return await find_by_idempotency_keys(reader, [(row["scope"], request_id) for row in rows])


async def _find(reader: Any, query: Query | None) -> list[int]:
    if query is None:
        return []
    return [row["transaction_id"] for row in await reader.fetch(query.sql, *query.arguments)]


def _build_query(sql: str, pairs: Collection[tuple[Any, str]]) -> Query | None:
    if not pairs:
        return None
    first, second = zip(*pairs, strict=True)
    return Query(sql, (list(first), list(second)))
