"""Lookup of transactions by idempotency key and by partner reference.

Both have tables of their own: the unique index of a partitioned table could not include them. Keys
of transactions that are older than these tables are in the unique indexes of the first partition
until `tapgate partition` has copied them.
"""

from collections.abc import Collection
from typing import Any, Final

_HAS_UNCOPIED_KEYS: Final = "EXISTS (SELECT FROM installation WHERE name = 'uncopied_keys')"
_FIND_BY_KEY: Final = f"""
    SELECT stored.transaction_id
    FROM unnest($1::text[], $2::text[]) AS requested (scope, request_id)
    JOIN idempotency_keys stored
      ON stored.scope = requested.scope AND stored.request_id = requested.request_id
    UNION
    SELECT t.id
    FROM unnest($1::text[], $2::text[]) AS requested (scope, request_id)
    JOIN transactions_initial t
      ON t.scope = requested.scope AND t.request_id = requested.request_id
    WHERE {_HAS_UNCOPIED_KEYS}"""
_FIND_BY_REFERENCE: Final = f"""
    SELECT stored.transaction_id
    FROM unnest($1::bigint[], $2::text[]) AS requested (partner_id, reference)
    JOIN partner_references stored
      ON stored.partner_id = requested.partner_id AND stored.reference = requested.reference
    UNION
    SELECT t.id
    FROM unnest($1::bigint[], $2::text[]) AS requested (partner_id, reference)
    JOIN transactions_initial t
      ON t.partner_id = requested.partner_id AND t.partner_reference = requested.reference
     AND t.status <> 'failed'
    WHERE {_HAS_UNCOPIED_KEYS}"""


async def find_by_idempotency_keys(reader: Any, keys: Collection[tuple[str, str]]) -> list[int]:
    """Return the IDs of the transactions with these pairs of scope and request ID."""
    return await _find(reader, _FIND_BY_KEY, keys)


async def find_by_partner_references(
    reader: Any, references: Collection[tuple[int, str]]
) -> list[int]:
    """Return the IDs of the transactions that have not failed with these partners' references."""
    return await _find(reader, _FIND_BY_REFERENCE, references)


async def _find(reader: Any, sql: str, pairs: Collection[tuple[Any, str]]) -> list[int]:
    if not pairs:
        return []
    first, second = zip(*pairs, strict=True)
    return [row["transaction_id"] for row in await reader.fetch(sql, list(first), list(second))]
