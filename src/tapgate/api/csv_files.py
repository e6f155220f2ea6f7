"""CSV files for spreadsheets: RFC 4180, in UTF-8, with protection against formula injection."""

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


def render_csv(rows: Iterable[Sequence[str]]) -> bytes:
    text = io.StringIO(newline="")
    csv.writer(text).writerows(rows)
    return text.getvalue().encode()


def escape_formulas(text: str) -> str:
    """Escape user-supplied text so that a spreadsheet does not evaluate it as a formula."""
    return _FORMULA_START.sub(r"\1'", text)
