"""Parser for uploaded batch lines. Performs no I/O.

A file that cannot be read is refused, with the row and column of each problem. A line whose values
are not acceptable is kept: the validation reports it, and the other lines can be paid.
"""

import csv
import hashlib
import io
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

import msgspec

from tapgate.core.phone_numbers import normalize_phone_number
from tapgate.http.api.form_files import FORM_TYPE, build_form_schema, extract_file
from tapgate_client import money
from tapgate_client.errors import ApiError, Code, invalid_field
from tapgate_client.phone_numbers import PhoneNumberError
from tapgate_client.schemas.batches import MAX_LINES, BatchColumn
from tapgate_client.schemas.fields import CardSerialRule, InvalidValueError, TextRule

_COLUMNS: Final = tuple(BatchColumn)
_MAX_FIELD_LENGTH: Final = 255
_MAX_COLUMNS: Final = 100
#: A line with many separators is parsed into a list that is much larger than the line.
_MAX_LINE_LENGTH: Final = 16 * 1024
_MAX_BLANK_LINES: Final = MAX_LINES
#: An error names at most this many problems.
_MAX_PROBLEMS: Final = 50
_DELIMITERS: Final = (",", ";")
#: Request body schema by media type, for the OpenAPI document.
MEDIA_TYPES: Final = {
    "text/csv": {
        "schema": {
            "type": "string",
            "format": "binary",
            "description": "Columns: `phone_number` or `card_serial` (or both), `amount` and"
            " `reference`, separated by commas or semicolons",
        },
        "example": "phone_number,amount,reference\n+23276123456,500.00,EMP-0017\n",
    },
    FORM_TYPE: build_form_schema("BatchLinesForm"),
}
_serial_rule = CardSerialRule()
_text_rule = TextRule(_MAX_FIELD_LENGTH)


class ParsedLine(NamedTuple):
    """Line with its values as far as they are acceptable, and the first column that is not."""

    row: int
    phone_number: str | None
    card_serial: str | None
    amount_text: str
    amount: int | None
    reference: str
    problem: BatchColumn | None


class ParsedLines(msgspec.Struct, frozen=True):
    lines: list[ParsedLine]
    #: The same for the same lines in any order.
    digest: bytes


def parse_lines(content_type: str | None, body: bytes, currency: str) -> ParsedLines:
    """Return the lines of a CSV file, sent as a form or as the raw body, or raise 422."""
    rows = list(_read_rows(_decode(extract_file(content_type, body))))
    if not rows:
        raise invalid_field("file", "must have at least one line below the header")
    lines = [_parse_line(row, fields, currency) for row, fields in enumerate(rows, 1)]
    contents = sorted("\x1f".join(str(value) for value in line[1:-1]) for line in lines)
    digest = hashlib.blake2b("\x1e".join(contents).encode(), digest_size=16).digest()
    return ParsedLines(lines, digest)


def _decode(file: bytes) -> str:
    try:
        return file.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = file.count(b"\n", 0, error.start) + 1
        raise invalid_field("file", f"must be UTF-8; line {line} is not") from None


def _read_rows(text: str) -> Iterator[Mapping[str, str]]:
    """Yield the values of each row by column."""
    header_line = text.partition("\n")[0]
    delimiter = max(_DELIMITERS, key=header_line.count)
    reader = csv.reader(_read_lines(text), delimiter=delimiter, strict=True)
    problems: dict[str, str] = {}
    row = 0
    try:
        header = _parse_header(next(reader, []))
        for record in reader:
            fields = [field.strip() for field in record]
            if not any(fields):
                continue
            row += 1
            if row > MAX_LINES:
                raise invalid_field("file", f"must have at most {MAX_LINES} lines")
            problems |= _find_problems(row, fields, header)
            if len(problems) >= _MAX_PROBLEMS:
                break
            yield dict(zip(header, fields, strict=False))
    except csv.Error:
        problems["file"] = f"is not valid CSV after row {row}"
    if problems:
        raise ApiError(Code.VALIDATION_FAILED, details={"fields": problems})


def _read_lines(text: str) -> Iterator[str]:
    for number, line in enumerate(io.StringIO(text, newline=""), 1):
        if number > MAX_LINES + _MAX_BLANK_LINES:
            raise invalid_field("file", f"must have at most {MAX_LINES} lines")
        if len(line) > _MAX_LINE_LENGTH:
            raise invalid_field(
                "file", f"must not have lines longer than {_MAX_LINE_LENGTH} characters"
            )
        yield line


def _parse_header(cells: list[str]) -> list[str]:
    """Return the column names. Other columns, such as a person's name, are ignored."""
    names = [cell.strip().lower() for cell in cells]
    while names and not names[-1]:
        names.pop()
    if len(names) > _MAX_COLUMNS:
        raise invalid_field("file", f"must have at most {_MAX_COLUMNS} columns")
    receivers = {BatchColumn.PHONE_NUMBER, BatchColumn.CARD_SERIAL}
    missing = [name for name in (BatchColumn.AMOUNT, BatchColumn.REFERENCE) if name not in names]
    if not receivers & {*names}:
        missing.insert(0, BatchColumn.PHONE_NUMBER)
    twice = [name for name in _COLUMNS if names.count(name) > 1]
    if missing or twice:
        words = [f"has no column {name}" for name in missing]
        words += [f"has the column {name} twice" for name in twice]
        raise invalid_field("file", f"{'; '.join(words)}: the first line must name the columns")
    return names


def _find_problems(row: int, fields: list[str], header: list[str]) -> dict[str, str]:
    """Return what makes a row unreadable, by row and column."""
    problems = {}
    if any(fields[len(header) :]):
        problems[f"row {row}"] = "has more fields than the header"
    for name, value in zip(header, fields, strict=False):
        if name in _COLUMNS and value:
            try:
                _text_rule.check(value)
            except InvalidValueError as error:
                problems[f"row {row}, {name}"] = error.problems[""]
    return problems


def _parse_line(row: int, fields: Mapping[str, str], currency: str) -> ParsedLine:
    phone_number, card_serial, amount_text, reference = (fields.get(name, "") for name in _COLUMNS)
    problem = None
    amount = _parse_amount(amount_text, currency)
    if not reference:
        problem = BatchColumn.REFERENCE
    if amount is None:
        problem = BatchColumn.AMOUNT
    if card_serial and (phone_number or not _is_serial(card_serial)):
        problem = BatchColumn.CARD_SERIAL
    if not card_serial:
        normalized = _normalize_phone(phone_number)
        if normalized is None:
            problem = BatchColumn.PHONE_NUMBER
        phone_number = normalized or phone_number
    return ParsedLine(
        row, phone_number or None, card_serial or None, amount_text, amount, reference, problem
    )


def _parse_amount(text: str, currency: str) -> int | None:
    try:
        return money.parse(text, currency)
    except money.AmountError:
        return None


def _is_serial(text: str) -> bool:
    try:
        _serial_rule.check(text)
    except InvalidValueError:
        return False
    return True


def _normalize_phone(text: str) -> str | None:
    try:
        return normalize_phone_number(text)
    except PhoneNumberError:
        return None
