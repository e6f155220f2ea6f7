"""Parser and validator for card upload files. Performs no I/O."""

import csv
import io
from collections.abc import Iterator
from datetime import date, datetime, time
from typing import Final, NamedTuple
from zoneinfo import ZoneInfo

from tapgate.business.customers.cards.uids import is_random_uid, is_signing_uid, parse_uid
from tapgate.http.api.form_files import FORM_TYPE, build_form_schema, extract_file
from tapgate_client.clock import get_platform_day
from tapgate_client.errors import invalid_field
from tapgate_client.schemas.cards import RowError
from tapgate_client.schemas.fields import CardSerialRule, DateRule, InvalidValueError

MAX_ROWS: Final = 10_000
#: Also counts blank lines, which are not rows. Spreadsheet exports stay far below this limit.
MAX_LINES: Final = 10 * MAX_ROWS
#: Allows for the empty columns that spreadsheets add. A line with many columns is parsed into a
#: list that takes up to thirty times the line's size.
MAX_LINE_LENGTH: Final = 64 * 1024

_COLUMNS: Final = ("serial no.", "mac address", "expiry date", "keyset")
_ACCEPTED_HEADERS: Final = (
    ["serial no.", "mac address"],
    ["serial no.", "mac address", "expiry date"],
    ["serial no.", "mac address", "keyset"],
    ["serial no.", "mac address", "expiry date", "keyset"],
)
#: Request body schemas by media type, for the OpenAPI document.
UPLOAD_MEDIA_TYPES: Final = {
    "text/csv": {
        "schema": {
            "type": "string",
            "format": "binary",
            "description": (
                "Columns: `Serial No.`, `MAC Address` and optionally `Expiry Date` and `Keyset`"
            ),
        },
        "example": (
            "Serial No.,MAC Address,Expiry Date\nTAP-000001,04:A2:24:5B:6C:80:90,2030-12-31\n"
        ),
    },
    FORM_TYPE: build_form_schema("CardUploadForm"),
}
#: In 9999, the last year that Python supports, converting a time to UTC could overflow.
_MAX_EXPIRY_YEAR: Final = 9998
_END_OF_DAY: Final = time(23, 59, 59, 999_000)
_MAX_SERIAL_LENGTH: Final = 32

_SERIAL_RULE = CardSerialRule()
_DAY_RULE = DateRule()


class CardRow(NamedTuple):
    """Valid row of an upload file."""

    line: int
    serial: str
    uid: str | None
    expires_at: datetime | None
    keyset: str | None = None  # ID or name


class ParsedFile(NamedTuple):
    rows: list[CardRow]
    errors: list[RowError]


def parse_upload(
    content_type: str | None, body: bytes, now: datetime, zone: ZoneInfo
) -> ParsedFile:
    """Parse an upload, sent either as a form with a `file` part or as the raw body."""
    return _check_rows(_read_records(_decode_text(extract_file(content_type, body))), now, zone)


def _decode_text(file: bytes) -> str:
    try:
        return file.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise invalid_field("file", "must be UTF-8") from None


def _read_records(text: str) -> Iterator[tuple[int, list[str]]]:
    """Yield each non-blank record with the line on which it begins, after checking the header."""
    reader = csv.reader(_read_lines(text), strict=True)
    line = 1
    try:
        header = [name.strip().lower() for name in next(reader, [])]
        if header not in _ACCEPTED_HEADERS:
            raise invalid_field(
                "file", "must start with the header Serial No.,MAC Address[,Expiry Date][,Keyset]"
            )
        line = reader.line_num + 1
        for record in reader:
            fields = [field.strip() for field in record]
            if any(fields):
                yield line, _fit_to_columns(fields, header)
            line = reader.line_num + 1
    except csv.Error:
        raise invalid_field("file", f"is not valid CSV at line {line}") from None


def _read_lines(text: str) -> Iterator[str]:
    for number, line in enumerate(io.StringIO(text, newline=""), 1):
        if number > MAX_LINES:
            raise invalid_field("file", f"must have at most {MAX_LINES} lines")
        if len(line) > MAX_LINE_LENGTH:
            raise invalid_field(
                "file", f"must not have lines longer than {MAX_LINE_LENGTH} characters"
            )
        yield line


def _fit_to_columns(fields: list[str], header: list[str]) -> list[str]:
    """Return one field per column of `_COLUMNS`, then any fields beyond the header.

    Missing fields are empty, and empty trailing ones are removed, as spreadsheet exports vary.
    """
    while len(fields) > len(header) and not fields[-1]:
        fields.pop()
    by_column = dict(zip(header, fields, strict=False))
    return [by_column.get(column, "") for column in _COLUMNS] + fields[len(header) :]


def _check_rows(
    records: Iterator[tuple[int, list[str]]], now: datetime, zone: ZoneInfo
) -> ParsedFile:
    parsed = ParsedFile([], [])
    today = get_platform_day(now, zone)
    serials: dict[str, int] = {}
    uids: dict[str, int] = {}
    for number, (line, fields) in enumerate(records, 1):
        if number > MAX_ROWS:
            raise invalid_field("file", f"must have at most {MAX_ROWS} rows")
        try:
            row = _parse_row(line, fields, today, zone)
            _require_unique("Serial No.", row.serial, serials)
            _require_unique("MAC Address", row.uid, uids)
        except InvalidValueError as error:
            parsed.errors.append(build_row_error(line, fields[0], error.problems))
        else:
            serials[row.serial] = line
            if row.uid is not None:
                uids[row.uid] = line
            parsed.rows.append(row)
    return parsed


def _parse_row(line: int, fields: list[str], today: date, zone: ZoneInfo) -> CardRow:
    serial, uid, expiry, keyset, *rest = fields
    if rest:
        raise InvalidValueError({"The row": "has more fields than the header"})
    try:
        _SERIAL_RULE.check(serial)
    except InvalidValueError as error:
        raise InvalidValueError(error.prefix_paths("Serial No.")) from None
    row = CardRow(
        line, serial, _parse_uid_field(uid), _parse_expiry(expiry, today, zone), keyset or None
    )
    if row.keyset is not None and (row.uid is None or not is_signing_uid(row.uid)):
        raise InvalidValueError({"MAC Address": "must be a UID of 7 bytes for a card of a keyset"})
    return row


def _parse_uid_field(text: str) -> str | None:
    if not text:
        return None
    uid = parse_uid(text)
    if uid is None:
        raise InvalidValueError(
            {"MAC Address": "must be a UID of 4, 7 or 10 bytes or a MAC address"}
        )
    if is_random_uid(uid):
        raise InvalidValueError(
            {"MAC Address": "must not be a random UID (08...), which changes at every tap"}
        )
    return uid


def _parse_expiry(text: str, today: date, zone: ZoneInfo) -> datetime | None:
    """Return the end of the expiry date, or None if the field is empty."""
    if not text:
        return None
    try:
        day = date.fromisoformat(_DAY_RULE.check(text))
    except InvalidValueError as error:
        raise InvalidValueError(error.prefix_paths("Expiry Date")) from None
    if day < today:
        raise InvalidValueError({"Expiry Date": "must not be in the past"})
    if day.year > _MAX_EXPIRY_YEAR:
        raise InvalidValueError({"Expiry Date": f"must not be after the year {_MAX_EXPIRY_YEAR}"})
    return datetime.combine(day, _END_OF_DAY, zone)


def _require_unique(column: str, value: str | None, seen: dict[str, int]) -> None:
    if value is not None and value in seen:
        raise InvalidValueError({column: f"is a duplicate of row {seen[value]}"})


def build_row_error(line: int, serial: str, problems: dict[str, str]) -> RowError:
    """Build a row error, with the serial stripped of unprintable characters and truncated."""
    printable = "".join(filter(str.isprintable, serial))[:_MAX_SERIAL_LENGTH]
    return RowError(
        line, printable, "; ".join(f"{column} {problem}" for column, problem in problems.items())
    )
