"""Parser for CSV statements with the platform's columns or a saved mapping."""

import csv
import io
import re
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from typing import Final

from tapgate.business.finance.reconciliation.parsers.parsed import (
    MAX_REFERENCE_LENGTH,
    ParsedLine,
    ParsedStatement,
    UnreadableError,
    clean,
    parse_amount,
    require_plausible,
    require_room,
)
from tapgate_client.schemas.bank_statements import (
    BankStatementFormat,
    CsvDateFormat,
    CsvDecimalSeparator,
    CsvMapping,
)

#: Columns of a file without a mapping.
STANDARD_MAPPING: Final = CsvMapping(
    date="date", amount="amount", reference="reference", description=["description"]
)
_DATE_FORMATS: Final[Mapping[CsvDateFormat, str]] = {
    CsvDateFormat.ISO: "%Y-%m-%d",
    CsvDateFormat.DAY_FIRST_DOTS: "%d.%m.%Y",
    CsvDateFormat.DAY_FIRST_SLASHES: "%d/%m/%Y",
    CsvDateFormat.DAY_FIRST_HYPHENS: "%d-%m-%Y",
    CsvDateFormat.MONTH_FIRST: "%m/%d/%Y",
    CsvDateFormat.COMPACT: "%Y%m%d",
}
#: Banks write the account and the period above the header.
_MAX_PREAMBLE_LINES: Final = 40
_MAX_LINE_LENGTH: Final = 16 * 1024
_DELIMITERS: Final = ",;\t|"
_GROUPING: Final = re.compile(r"[\s'’]")


def parse(content: bytes, currency: str, mapping: CsvMapping | None) -> ParsedStatement:
    """Parse a file with the mapping's columns if it has them, or else with the standard ones."""
    rows = _split(_decode(content))
    for columns in (mapping, STANDARD_MAPPING):
        found = None if columns is None else _find_header(rows, columns)
        if columns is not None and found is not None:
            break
    else:
        raise UnreadableError(1, "starts a file without the columns date and amount")
    header, positions = found
    lines: list[ParsedLine] = []
    for number, line in rows[header + 1 :]:
        cells = _read_cells(line, number, rows[header][1])
        if any(cell.strip() for cell in cells):
            require_room(len(lines), number)
            parsed = _parse_row(cells, number, columns, positions, currency)
            lines += [parsed] if parsed.amount else []
    if not lines:
        raise UnreadableError(rows[header][0], "is followed by no items")
    days = [line.day for line in lines]
    return ParsedStatement(BankStatementFormat.CSV, None, min(days), max(days), None, None, lines)


def _decode(content: bytes) -> str:
    encoding = "utf-16" if content.startswith((b"\xff\xfe", b"\xfe\xff")) else "utf-8-sig"
    try:
        return content.decode(encoding)
    except UnicodeDecodeError:
        return content.decode("cp1252", "replace")


def _split(text: str) -> list[tuple[int, str]]:
    """Return lines with their numbers. A quoted line break is a space: no statement needs it."""
    rows: list[tuple[int, str]] = []
    pending, start = "", 0
    for number, line in enumerate(text.replace("\r\n", "\n").replace("\r", "\n").split("\n"), 1):
        if len(line) > _MAX_LINE_LENGTH:
            raise UnreadableError(number, "is too long")
        start = start if pending else number
        pending = f"{pending} {line}" if pending else line
        if pending.count('"') % 2 and len(pending) <= _MAX_LINE_LENGTH:
            continue
        if pending.strip():
            rows.append((start, pending))
        pending = ""
    return [*rows, (start, pending)] if pending.strip() else rows


def _read_cells(line: str, number: int, header: str) -> list[str]:
    delimiter = max(_DELIMITERS, key=header.count)
    try:
        return next(csv.reader(io.StringIO(line, newline=""), delimiter=delimiter), [])
    except csv.Error:
        raise UnreadableError(number, "is not valid CSV") from None


def _find_header(
    rows: Sequence[tuple[int, str]], columns: CsvMapping
) -> tuple[int, dict[str, int]] | None:
    """Return the index of the header and the positions of its columns, by their folded names."""
    required = [columns.date, *_list_amount_columns(columns)]
    for index, (number, line) in enumerate(rows[:_MAX_PREAMBLE_LINES]):
        positions: dict[str, int] = {}
        for position, cell in enumerate(_read_cells(line, number, line)):
            positions.setdefault(_fold(cell), position)
        if all(_fold(name) in positions for name in required):
            return index, positions
    return None


def _list_amount_columns(columns: CsvMapping) -> list[str]:
    names = (columns.amount, columns.debit, columns.credit)
    return [name for name in names if name is not None]


def _fold(name: str) -> str:
    return " ".join(name.split()).casefold()


def _parse_row(
    cells: Sequence[str],
    number: int,
    columns: CsvMapping,
    positions: Mapping[str, int],
    currency: str,
) -> ParsedLine:
    def read(name: str | None) -> str:
        position = None if name is None else positions.get(_fold(name))
        return "" if position is None or position >= len(cells) else cells[position].strip()

    separator = columns.decimal_separator
    if columns.amount is not None:
        amount = _parse_signed(read(columns.amount), separator, currency, number)
    else:
        debit, credit = read(columns.debit), read(columns.credit)
        amount = _parse_signed(credit, separator, currency, number) if credit else 0
        amount -= abs(_parse_signed(debit, separator, currency, number)) if debit else 0
    return ParsedLine(
        day=_parse_day(read(columns.date), columns.date_format, number),
        amount=amount,
        reference=clean(read(columns.reference), MAX_REFERENCE_LENGTH),
        description=clean(" ".join(read(name) for name in columns.description)),
    )


def _parse_day(text: str, date_format: CsvDateFormat, line: int) -> date:
    try:
        day = datetime.strptime(text, _DATE_FORMATS[date_format]).date()  # noqa: DTZ007
    except ValueError:
        raise UnreadableError(line, "has no valid date") from None
    return require_plausible(day, line)


def _parse_signed(text: str, separator: CsvDecimalSeparator, currency: str, line: int) -> int:
    """Return a signed amount in minor units. The sign may follow the digits."""
    digits = _GROUPING.sub("", text).replace("\N{MINUS SIGN}", "-")
    is_negative = digits.startswith("-") or digits.endswith("-")
    digits = digits.strip("-").removeprefix("+")
    if separator == CsvDecimalSeparator.COMMA:
        digits = digits.replace(".", "").replace(",", ".")
    else:
        digits = digits.replace(",", "")
    amount = parse_amount(digits, currency, line)
    return -amount if is_negative else amount
