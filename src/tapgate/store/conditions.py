"""The WHERE of a list: only the conditions that were asked for, with their values bound.

A condition that is not asked for is left out rather than written as `$1 IS NULL OR ...`, which no
index can answer.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from tapgate import ids
from tapgate.errors import invalid_field

MIN_SEARCH_LENGTH = 3
SEARCH_ERROR = f"must contain a word of at least {MIN_SEARCH_LENGTH} characters"

_WORD: Final = re.compile("[a-z0-9_]+")


class Conditions:
    def __init__(self) -> None:
        self.values: list[object] = []
        self._conditions: list[str] = []

    def bind(self, value: object) -> str:
        """The name of the parameter that stands for a value."""
        self.values.append(value)
        return f"${len(self.values)}"

    def add(self, condition: str) -> None:
        self._conditions.append(condition)

    def where(self, condition: str, value: object) -> None:
        """`{}` stands for the value; without a value there is no condition."""
        if value is not None:
            self.add(condition.format(self.bind(value)))

    def where_word(self, column: str, word: str | None) -> None:
        """Compare with a word of a fixed set, written into the statement: PostgreSQL then plans for
        how often that word occurs and which partial index has it, also when it keeps the plan."""
        if word is not None:
            assert _WORD.fullmatch(word), "not a word of a fixed set"
            self.add(f"{column} = '{word}'")

    def add_unselective(self, condition: str) -> None:
        """Guessed by PostgreSQL to let 199 of 200 rows through. Without that, what it knows nothing
        of, or what says nearly the same as another condition, makes it expect next to no rows: it
        then reads and sorts all there are instead of stopping when a page is full."""
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
        """Match a whole identifier, or words that each occur in the column, whose case is `fold`ed.

        Words of three and more characters are found by the column's index over its trigrams. One
        of them is required: without, every row would have to be read. A word may occur in any of
        its spellings.
        """
        if text is None:
            return
        number = ids.decode(prefix, text.strip()) if id_column else None
        if number is not None:
            self.where(f"{id_column} = {{}}", number)
            return
        words = [[one for one in spellings(word) if one] for word in text.split()]
        if not any(map(_is_indexed, words)):
            raise invalid_field("search", SEARCH_ERROR)
        for word in words:
            indexed = _is_indexed(word)
            found = [
                self._build_match(f"{fold}({self.bind(one)})", column, indexed) for one in word
            ]
            self.add(f"({' OR '.join(found) or 'false'})")

    def _build_match(self, text: str, column: str, indexed: bool) -> str:
        occurs = f"strpos({column}, {text}) > 0"
        # The index knows only which trigrams there are, not where.
        return f"{occurs} AND trigrams({column}) @> trigrams({text})" if indexed else occurs

    def __str__(self) -> str:
        return " AND ".join(self._conditions) or "true"


def _is_indexed(spellings: Sequence[str]) -> bool:
    return bool(spellings) and min(map(len, spellings)) >= MIN_SEARCH_LENGTH
