"""A statement as CSV: RFC 4180, UTF-8, one row per entry."""

import csv
import io
import re
from typing import Final

from tapgate import ids
from tapgate.wallets.statements.model import Statement

CONTENT_TYPE: Final = "text/csv; charset=utf-8"

_COLUMNS: Final = (
    "date",
    "transaction_id",
    "type",
    "description",
    "debit",
    "credit",
    "balance",
)
#: Where a spreadsheet would take a text for a formula: at its beginning, and behind what separates
#: cells or rows for a spreadsheet of another country, which does not see the quotes around it.
_FORMULA: Final = re.compile(r'(^|[;\t\r\n])(?=[" ]*[=+\-@＝＋－＠\t\r])')


def rendered(statement: Statement) -> bytes:
    text = io.StringIO(newline="")
    rows = csv.writer(text)
    rows.writerow(_COLUMNS)
    for movement, balance in statement.lines():
        amount = movement.amount
        rows.writerow(
            (
                statement.day(movement.moved_at),
                ids.show(ids.TRANSACTION, movement.transaction_id),
                movement.type,
                harmless(movement.description),
                statement.money(-amount) if amount < 0 else "",
                statement.money(amount) if amount > 0 else "",
                statement.money(balance),
            )
        )
    return text.getvalue().encode()


def harmless(text: str) -> str:
    return _FORMULA.sub(r"\1'", text)
