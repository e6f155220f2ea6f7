"""Statement as a CSV file with one row per entry."""

from collections.abc import Iterator
from typing import Final

from tapgate import ids
from tapgate.api import csv_files
from tapgate.wallets.statements.model import Statement

CONTENT_TYPE: Final = csv_files.CONTENT_TYPE

_COLUMNS: Final = ("date", "transaction_id", "type", "description", "debit", "credit", "balance")


def render(statement: Statement) -> bytes:
    return csv_files.render_csv(_iter_rows(statement))


def _iter_rows(statement: Statement) -> Iterator[tuple[str, ...]]:
    yield _COLUMNS
    for movement, balance in statement.iter_lines():
        amount = movement.amount
        yield (
            statement.format_day(movement.moved_at),
            ids.encode(ids.TRANSACTION, movement.transaction_id),
            movement.type,
            csv_files.escape_formulas(movement.description),
            statement.format_amount(-amount) if amount < 0 else "",
            statement.format_amount(amount) if amount > 0 else "",
            statement.format_amount(balance),
        )
