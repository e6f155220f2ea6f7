"""Builds a list query's WHERE clause, with bound parameters.

Filters that are not set are omitted instead of being written as `$1 IS NULL OR ...`, which cannot
use an index.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Final

import asyncpg

from tapgate.runtime.store.database import Database
from tapgate_client import ids
from tapgate_client.errors import invalid_field
from tapgate_client.schemas.assignees import UNASSIGNED
from tapgate_client.schemas.pagination import INVALID_CURSOR, OrderedPageQuery, PageOrder, PageQuery

MIN_SEARCH_LENGTH = 3
SEARCH_ERROR = f"must contain a word of at least {MIN_SEARCH_LENGTH} characters"

_WORD: Final = re.compile("[a-z0-9_]+")
_LAST_CHARACTER: Final = "\U0010ffff"


class Conditions:
    def __init__(self) -> None:
        self.values: list[object] = []
        self._conditions: list[str] = []

    def bind(self, value: object) -> str:
        """Bind a value and return its placeholder."""
        self.values.append(value)
        return f"${len(self.values)}"

    def add(self, condition: str) -> None:
        self._conditions.append(condition)

    def where(self, condition: str, value: object) -> None:
        """Add a condition, with `{}` as the placeholder, unless the value is None."""
        if value is not None:
            self.add(condition.format(self.bind(value)))

    def where_id(self, column: str, prefix: str, public_id: str | None) -> None:
        """Require that a column equals a public ID, unless it is None. The ID must be valid."""
        self.where(f"{column} = {{}}", None if public_id is None else ids.decode(prefix, public_id))

    def where_assignee(self, column: str, assignee: str | None) -> None:
        """Require an admin ID, or no admin if it is `none`, unless the filter is None."""
        if assignee == UNASSIGNED:
            self.add(f"{column} IS NULL")
        else:
            self.where_id(column, ids.ADMIN, assignee)

    def where_word(self, column: str, word: str | None) -> None:
        """Require that a column equals a word from a fixed set, unless the word is None.

        The word is inlined in the statement. PostgreSQL then plans for the frequency of that word
        and can use a partial index for it, even with a cached plan.
        """
        if word is not None:
            if _WORD.fullmatch(word) is None:
                raise ValueError("not a word from a fixed set")
            self.add(f"{column} = '{word}'")

    def add_unselective(self, condition: str) -> None:
        """Add a condition that PostgreSQL estimates to match 199 of 200 rows.

        For a condition that has no statistics or that is correlated with another, the planner would
        expect almost no rows. It would then read and sort all matching rows instead of stopping
        when a page is full.
        """
        self.add(f"nullif({condition}, false) IS NOT NULL")

    def search(
        self,
        text: str | None,
        column: str,
        *,
        id_column: str | None = None,
        prefix: str = "",
        fold: str = "lower",
        spellings: Callable[[str], Iterable[str]] = lambda word: (word,),
    ) -> None:
        """Require that the ID equals the text, or that each word in the text occurs in the column.

        The ID is compared if `id_column` is given and the text is an ID with `prefix`. A word
        occurs if any of its `spellings` does. `fold` is the SQL function that normalizes case. A
        word whose spellings all have at least three characters uses the column's trigram index. A
        text without such a word is rejected, because every row would be read.
        """
        if text is None:
            return
        number = ids.decode(prefix, text.strip()) if id_column else None
        if number is not None:
            self.where(f"{id_column} = {{}}", number)
            return
        words = [[spelling for spelling in spellings(word) if spelling] for word in text.split()]
        if not any(map(_is_indexed, words)):
            raise invalid_field("search", SEARCH_ERROR)
        for word in words:
            indexed = _is_indexed(word)
            matches = [
                self._build_match(f"{fold}({self.bind(spelling)})", column, indexed)
                for spelling in word
            ]
            self.add(f"({' OR '.join(matches) or 'false'})")

    def where_part(self, column: str, text: str | None) -> None:
        """Require that a lowercase column contains the text, ignoring case, unless it is None.

        A text with at least three characters uses the column's trigram index.
        """
        if text is not None:
            indexed = len(text) >= MIN_SEARCH_LENGTH
            self.add(self._build_match(f"lower({self.bind(text)})", column, indexed))

    def _build_match(self, text: str, column: str, indexed: bool) -> str:
        occurs = f"strpos({column}, {text}) > 0"
        # The index finds rows with all trigrams; `strpos` checks that they are adjacent.
        return f"{occurs} AND trigrams({column}) @> trigrams({text})" if indexed else occurs

    def build_prefix_query(self, select: str, column: str, prefix: str, limit: int) -> str:
        """Return a query for the first rows, in byte order, whose column starts with the prefix.

        The rows also meet all conditions. The column needs an index with `text_pattern_ops`: the
        query reads only the rows that it returns, regardless of how many match.
        """
        start, end = self.bind(prefix), self.bind(prefix + _LAST_CHARACTER)
        return f"""{select} WHERE {column} ~>=~ {start} AND {column} ~<~ {end} AND {self}
                   ORDER BY {column} USING ~<~ LIMIT {limit}"""

    def __str__(self) -> str:
        return " AND ".join(self._conditions) or "true"


class PageConditions(Conditions):
    """Conditions for a list query that returns one page, newest first unless ordered otherwise."""

    def __init__(
        self, query: PageQuery, id_column: str = "id", *, order: str | None = None
    ) -> None:
        super().__init__()
        self._limit, self._id_column = query.limit, id_column
        self._is_ascending = isinstance(query, OrderedPageQuery) and query.order == PageOrder.OLDEST
        self._order = order or (id_column if self._is_ascending else f"{id_column} DESC")
        self._add_position(query)

    def _add_position(self, query: PageQuery) -> None:
        """Exclude rows on earlier pages."""
        if self._is_ascending:
            self.where(f"{self._id_column} > {{}}", query.after_id)
        else:
            self.where(f"{self._id_column} < {{}}", query.before_id)

    async def fetch(self, database: Database, select: str) -> list[asyncpg.Record]:
        """Return the page's rows, plus one row if there are more."""
        return await database.fetch(
            f"{select} WHERE {self} ORDER BY {self._order} LIMIT {self.bind(self._limit + 1)}",
            *self.values,
        )


class NameConditions(PageConditions):
    """Conditions for a list in name order, compared byte by byte.

    `last_name` is the name in the previous page's last row. It is not part of the cursor, which
    would put personal data into URLs.
    """

    def __init__(self, query: PageQuery, id_column: str, name: str, last_name: str | None) -> None:
        self._name, self._last_name = name, last_name
        super().__init__(query, id_column, order=f"{name} USING ~<~, {id_column}")

    def _add_position(self, query: PageQuery) -> None:
        if self._last_name is not None:
            last, last_id = self.bind(self._last_name), self.bind(query.before_id)
            self.add(
                f"""{self._name} ~>=~ {last}
                    AND ({self._name} ~>~ {last} OR {self._id_column} > {last_id})"""
            )


async def start_name_page(
    database: Database,
    query: PageQuery,
    id_column: str,
    name: str,
    *,
    source: str,
    visible: Conditions,
) -> NameConditions:
    """Return the conditions for a page in name order.

    `name` is an SQL expression over the tables in `source`. The last row on the previous page must
    still be `visible`, because its position would reveal the name.
    """
    last_name = None
    if query.position:
        visible.where(f"{id_column} = {{}}", query.before_id)
        sql = f"SELECT {name} FROM {source} WHERE {visible}"
        last_name = await database.fetchval(sql, *visible.values)
        if last_name is None:
            raise invalid_field("cursor", INVALID_CURSOR)
    return NameConditions(query, id_column, name, last_name)


def _is_indexed(spellings: Sequence[str]) -> bool:
    return bool(spellings) and min(map(len, spellings)) >= MIN_SEARCH_LENGTH
