"""Several queries in one statement: one round trip, and one snapshot for all of them."""

import re
from collections.abc import Sequence
from functools import cache
from typing import Any, Final, NamedTuple

_PARAMETER: Final = re.compile(r"\$(\d+)")


class Query(NamedTuple):
    sql: str
    arguments: tuple[Any, ...]


async def fetch_together(tx: Any, queries: Sequence[Query | None]) -> list[list[tuple[Any, ...]]]:
    """Return each query's rows, and no rows for None."""
    results: list[list[tuple[Any, ...]]] = [[] for _ in queries]
    requested = [(number, query) for number, query in enumerate(queries) if query is not None]
    if requested:
        sql = _combine(tuple((n, query.sql, len(query.arguments)) for n, query in requested))
        arguments = [argument for _, query in requested for argument in query.arguments]
        for number, row in await tx.fetch(sql, *arguments):
            results[number].append(row)
    return results


@cache
def _combine(queries: tuple[tuple[int, str, int], ...]) -> str:
    """Return one statement for numbered queries, each with the number of its parameters.

    The text depends only on which queries are combined, so asyncpg prepares each combination once.
    """
    selects, offset = [], 0
    for number, sql, parameter_count in queries:
        shifted = _shift_parameters(sql, offset)
        selects.append(f"SELECT {number}, result FROM ({shifted}) AS result")
        offset += parameter_count
    return "\nUNION ALL\n".join(selects)


def _shift_parameters(sql: str, offset: int) -> str:
    return _PARAMETER.sub(lambda match: f"${int(match[1]) + offset}", sql)
