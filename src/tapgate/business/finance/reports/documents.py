"""Finance reports as tables, from which CSV and PDF files are rendered."""

from collections.abc import Sequence
from typing import NamedTuple


class Column(NamedTuple):
    """Column with its name in CSV files, its title, and its share of the width."""

    name: str
    title: str
    width: int
    is_amount: bool = False


class Document(NamedTuple):
    """Report as a table. `bold_rows` are positions of sums, from the start or the end."""

    title: str
    period: str
    currency: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[str]]
    bold_rows: Sequence[int] = (-1,)
    file_name: str = "report"
