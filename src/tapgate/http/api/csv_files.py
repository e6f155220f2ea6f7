"""CSV files for spreadsheets: RFC 4180, in UTF-8, with protection against formula injection.

A file starts with a byte-order mark. Without it, spreadsheets read UTF-8 in the encoding for the
computer's language, and names lose their accents.
"""

import codecs
import csv
import io
import re
from collections.abc import Iterable, Sequence
from typing import Final

CONTENT_TYPE: Final = "text/csv; charset=utf-8"

#: Positions where a spreadsheet may interpret text as a formula: at the start of the text, or after
#: a cell or row separator, if a formula character follows, even after quotes or spaces. In some
#: locales, spreadsheets split cells at separators other than the comma, even inside quotes.
_FORMULA_START: Final = re.compile(r'(^|[;\t\r\n])(?=[" ]*[=+\-@＝＋－＠\t\r])')
_NUMBER: Final = re.compile(r"-?[0-9]+(\.[0-9]+)?", re.ASCII)


def render_file(columns: Sequence[str], rows: Iterable[Sequence[str]] = ()) -> bytes:
    """Return a file, or its beginning, which `render_rows` continues."""
    return codecs.BOM_UTF8 + render_rows([columns]) + render_rows(rows)


def render_rows(rows: Iterable[Sequence[str]]) -> bytes:
    """Return rows without a byte-order mark. Formulas in any cell are escaped."""
    text = io.StringIO(newline="")
    csv.writer(text).writerows([escape_formulas(cell) for cell in row] for row in rows)
    return text.getvalue().encode()


def escape_formulas(text: str) -> str:
    """Escape text, except numbers, so that a spreadsheet does not evaluate it as a formula."""
    return text if _NUMBER.fullmatch(text) else _FORMULA_START.sub(r"\1'", text)
