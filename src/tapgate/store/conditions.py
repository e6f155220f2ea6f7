"""The WHERE of a list: only the conditions that were asked for, with their values bound.

A condition that is not asked for is left out rather than written as `$1 IS NULL OR ...`, which no
index can answer.
"""

from tapgate import ids


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

    def hardly_ever_fails(self, condition: str) -> None:
        """Guessed by PostgreSQL to let 199 of 200 rows through. Without that, what it knows nothing
        of, or what says nearly the same as another condition, makes it expect next to no rows: it
        then reads and sorts all there are instead of stopping when a page is full."""
        self.add(f"nullif({condition}, false) IS NOT NULL")

    def search(self, text: str | None, *columns: str, id_column: str, prefix: str) -> None:
        """A whole identifier, or words that each occur, in any case, in one of the columns. All
        rows are looked at: for what there is of thousands, not of millions."""
        if text is None:
            return
        number = ids.read(prefix, text.strip())
        if number is not None:
            self.where(f"{id_column} = {{}}", number)
            return
        for word in text.split():
            bound = self.bind(word)
            found = (f"strpos(lower({column}), lower({bound})) > 0" for column in columns)
            self.add(f"({' OR '.join(found)})")

    def __str__(self) -> str:
        return " AND ".join(self._conditions) or "true"
