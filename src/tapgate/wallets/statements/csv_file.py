"""A statement as CSV: one row per entry."""

from collections.abc import Iterator
from typing import Final

from tapgate import ids
from tapgate.edge import spreadsheet
from tapgate.wallets.statements.model import Statement

CONTENT_TYPE: Final = spreadsheet.CONTENT_TYPE

_COLUMNS: Final = (
    "date",
    "transaction_id",
    "type",
    "description",
    "debit",
    "credit",
    "balance",
)


def render(statement: Statement) -> bytes:
    return spreadsheet.written(_iter_rows(statement))


def _iter_rows(statement: Statement) -> Iterator[tuple[str, ...]]:
    yield _COLUMNS
    for movement, balance in statement.iter_lines():
        amount = movement.amount
        yield (
            statement.format_day(movement.moved_at),
            ids.encode(ids.TRANSACTION, movement.transaction_id),
            movement.type,
            spreadsheet.harmless(movement.description),
            statement.format_amount(-amount) if amount < 0 else "",
            statement.format_amount(amount) if amount > 0 else "",
            statement.format_amount(balance),
        )
