"""Statement as a CSV file: the opening balance, then one row per entry."""

from collections.abc import Iterator
from typing import Final

from tapgate.business.payments.wallets.statements.model import Statement
from tapgate.http.api import csv_files
from tapgate_client import ids

CONTENT_TYPE: Final = csv_files.CONTENT_TYPE

_COLUMNS: Final = (
    "date", "time", "transaction_id", "type", "description", "debit", "credit", "balance",
    "currency",
)  # fmt: skip
#: Type of the first row, which has the balance at the start of the period.
OPENING_BALANCE_TYPE: Final = "opening_balance"


def render(statement: Statement) -> bytes:
    return csv_files.render_file(_COLUMNS, _iter_rows(statement))


def _iter_rows(statement: Statement) -> Iterator[tuple[str, ...]]:
    currency = statement.currency
    opening_balance = statement.format_amount(statement.opening_balance)
    start = (statement.period.first.isoformat(), "00:00:00", "", OPENING_BALANCE_TYPE)
    yield (*start, "Opening balance", "", "", opening_balance, currency)
    for movement, balance in statement.iter_lines():
        amount = movement.amount
        yield (
            statement.format_day(movement.moved_at),
            statement.format_time(movement.moved_at),
            ids.encode(ids.TRANSACTION, movement.transaction_id),
            movement.type,
            movement.description,
            statement.format_amount(-amount) if amount < 0 else "",
            statement.format_amount(amount) if amount > 0 else "",
            statement.format_amount(balance),
            currency,
        )
