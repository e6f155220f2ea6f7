"""Files that are opened in a spreadsheet: CSV as RFC 4180 has it, in UTF-8."""

import csv
import io
import re
from collections.abc import Iterable, Sequence
from typing import Final

CONTENT_TYPE: Final = "text/csv; charset=utf-8"

#: Where a spreadsheet would take a text for a formula: at its beginning, and behind what separates
#: cells or rows for a spreadsheet of another country, which does not see the quotes around it.
_FORMULA_START: Final = re.compile(r'(^|[;\t\r\n])(?=[" ]*[=+\-@＝＋－＠\t\r])')


def render_csv(rows: Iterable[Sequence[str]]) -> bytes:
    text = io.StringIO(newline="")
    csv.writer(text).writerows(rows)
    return text.getvalue().encode()


def escape_formulas(text: str) -> str:
    """What somebody wrote, so that it is no formula for somebody else."""
    return _FORMULA_START.sub(r"\1'", text)
