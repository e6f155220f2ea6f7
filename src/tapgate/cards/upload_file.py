"""The file of a card upload: found in the request, read, and checked line by line. No I/O."""

import csv
import io
from collections.abc import Iterator
from datetime import date, datetime, time
from typing import Final, NamedTuple
from zoneinfo import ZoneInfo

import msgspec
from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header

from tapgate.cards.uids import is_random, read_uid
from tapgate.clock import get_platform_day
from tapgate.edge.fields import CardSerialRule, DateRule, InvalidValueError
from tapgate.errors import ApiError, Code, invalid_field

MAX_ROWS: Final = 10_000
#: Blank lines are no rows; a spreadsheet leaves some, and nobody millions.
MAX_LINES: Final = 10 * MAX_ROWS
#: Room for the empty columns of any spreadsheet. A line becomes a list of its columns, thirty times
#: as large as they are when they are many.
LONGEST_LINE: Final = 64 * 1024
#: A form from anywhere has a handful.
MAX_PARTS: Final = 100

_HEADERS: Final = (
    ["serial no.", "mac address"],
    ["serial no.", "mac address", "expiry date"],
)
_MULTIPART: Final = b"multipart/form-data"
#: The body by media type, for the OpenAPI document.
CSV_UPLOAD: Final = {
    "text/csv": {
        "schema": {
            "type": "string",
            "format": "binary",
            "description": "Columns: `Serial No.`, `MAC Address` and, optionally, `Expiry Date`",
        },
        "example": (
            "Serial No.,MAC Address,Expiry Date\nTAP-000001,04:A2:24:5B:6C:80:90,2030-12-31\n"
        ),
    },
    "multipart/form-data": {
        "schema": {
            "type": "object",
            "title": "CardUploadForm",
            "required": ["file"],
            "properties": {
                "file": {
                    "type": "string",
                    "format": "binary",
                    "description": "The CSV file, as in the other form of this request",
                }
            },
        },
        "encoding": {"file": {"contentType": "text/csv"}},
    },
}
#: Leaves room for every time zone before the calendar ends.
_LAST_YEAR: Final = 9998
_LAST_MOMENT: Final = time(23, 59, 59, 999_000)
_SHOWN_SERIAL: Final = 32

_SERIAL = CardSerialRule()
_DAY = DateRule()


class Row(NamedTuple):
    """A line that could become a card."""

    line: int
    serial: str
    uid: str | None
    expires_at: datetime | None


class RowError(msgspec.Struct, frozen=True):
    """Why a line does not become a card."""

    row: int
    serial: str
    error: str


class Contents(NamedTuple):
    rows: list[Row]
    errors: list[RowError]


def read(content_type: str | None, body: bytes, now: datetime, zone: ZoneInfo) -> Contents:
    """What was sent, as a form with a `file` or as it is."""
    return _checked(_records(_text(_file(content_type, body))), now, zone)


def _file(content_type: str | None, body: bytes) -> bytes:
    kind, options = parse_options_header(content_type)
    if kind != _MULTIPART:
        return body
    files = _Files()
    try:
        parser = MultipartParser(
            options.get(b"boundary", b""),
            {
                "on_part_begin": files.begin,
                "on_header_field": files.add_to_name,
                "on_header_value": files.add_to_value,
                "on_header_end": files.end_header,
                "on_part_data": files.add,
                "on_end": files.end,
            },
        )
        parser.write(body)
    except FormParserError:
        raise _bad_form("body", "is not a well-formed form") from None
    if not files.complete:
        raise _bad_form("body", "is not a well-formed form")
    if len(files.found) != 1:
        raise _bad_form("file", "must be given once" if files.found else "is required")
    return bytes(files.found[0])


class _Files:
    """Collects the parts of a form that are named `file`."""

    def __init__(self) -> None:
        self.found: list[bytearray] = []
        self.complete = False
        self._parts = 0
        self._name = b""
        self._value = b""
        self._wanted = False

    def begin(self) -> None:
        self._parts += 1
        if self._parts > MAX_PARTS:
            raise _bad_form("body", f"must not have more than {MAX_PARTS} parts")
        self._wanted = False

    def add_to_name(self, data: bytes, start: int, end: int) -> None:
        self._name += data[start:end]

    def add_to_value(self, data: bytes, start: int, end: int) -> None:
        self._value += data[start:end]

    def end_header(self) -> None:
        if self._name.lower() == b"content-disposition":
            _, options = parse_options_header(self._value)
            self._wanted = options.get(b"name") == b"file"
            if self._wanted:
                self.found.append(bytearray())
        self._name = self._value = b""

    def add(self, data: bytes, start: int, end: int) -> None:
        if self._wanted:
            self.found[-1] += data[start:end]

    def end(self) -> None:
        self.complete = True


def _bad_form(field: str, sentence: str) -> ApiError:
    return ApiError(
        Code.INVALID_REQUEST, f"{field} {sentence}", details={"fields": {field: sentence}}
    )


def _text(file: bytes) -> str:
    try:
        return file.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise invalid_field("file", "must be UTF-8") from None


def _records(text: str) -> Iterator[tuple[int, list[str]]]:
    """Each record with the line it begins on; blank ones are left out, the header is checked."""
    reader = csv.reader(_lines(text), strict=True)
    line = 1
    try:
        header = [name.strip().lower() for name in next(reader, [])]
        if header not in _HEADERS:
            raise invalid_field(
                "file", "must begin with the header Serial No.,MAC Address[,Expiry Date]"
            )
        line = reader.line_num + 1
        for record in reader:
            fields = [field.strip() for field in record]
            if any(fields):
                yield line, _fitted(fields, len(header))
            line = reader.line_num + 1
    except csv.Error:
        raise invalid_field(
            "file", f"is not well-formed CSV in the record of line {line}"
        ) from None


def _lines(text: str) -> Iterator[str]:
    for number, line in enumerate(io.StringIO(text, newline=""), 1):
        if number > MAX_LINES:
            raise invalid_field("file", f"must not have more than {MAX_LINES} lines")
        if len(line) > LONGEST_LINE:
            raise invalid_field("file", f"must not have a line longer than {LONGEST_LINE} letters")
        yield line


def _fitted(fields: list[str], columns: int) -> list[str]:
    """As many fields as the header has; spreadsheets leave out or add empty ones at the end."""
    while len(fields) > columns and not fields[-1]:
        fields.pop()
    return fields + [""] * (columns - len(fields))


def _checked(records: Iterator[tuple[int, list[str]]], now: datetime, zone: ZoneInfo) -> Contents:
    contents = Contents([], [])
    today = get_platform_day(now, zone)
    serials: dict[str, int] = {}
    uids: dict[str, int] = {}
    for number, (line, fields) in enumerate(records, 1):
        if number > MAX_ROWS:
            raise invalid_field("file", f"must not have more than {MAX_ROWS} rows")
        try:
            row = _row(line, fields, today, zone)
            _require_new("Serial No.", row.serial, serials)
            _require_new("MAC Address", row.uid, uids)
        except InvalidValueError as refusal:
            contents.errors.append(row_error(line, fields[0], refusal.problems))
        else:
            serials[row.serial] = line
            if row.uid is not None:
                uids[row.uid] = line
            contents.rows.append(row)
    return contents


def _row(line: int, fields: list[str], today: date, zone: ZoneInfo) -> Row:
    serial, uid, *rest = fields
    if len(rest) > 1:
        raise InvalidValueError({"The row": "has more fields than the header"})
    try:
        _SERIAL.check(serial)
    except InvalidValueError as refusal:
        raise InvalidValueError(refusal.prefix_paths("Serial No.")) from None
    return Row(line, serial, _uid(uid), _expiry("".join(rest), today, zone))


def _uid(text: str) -> str | None:
    if not text:
        return None
    uid = read_uid(text)
    if uid is None:
        raise InvalidValueError(
            {"MAC Address": "must be a UID of 4, 7 or 10 octets or a MAC address"}
        )
    if is_random(uid):
        raise InvalidValueError(
            {"MAC Address": "is a random UID (08...), which is another one at every tap"}
        )
    return uid


def _expiry(text: str, today: date, zone: ZoneInfo) -> datetime | None:
    """The card works until the end of that day."""
    if not text:
        return None
    try:
        day = date.fromisoformat(_DAY.check(text))
    except InvalidValueError as refusal:
        raise InvalidValueError(refusal.prefix_paths("Expiry Date")) from None
    if day < today:
        raise InvalidValueError({"Expiry Date": "is in the past"})
    if day.year > _LAST_YEAR:
        raise InvalidValueError({"Expiry Date": f"must not be after the year {_LAST_YEAR}"})
    return datetime.combine(day, _LAST_MOMENT, zone)


def _require_new(column: str, value: str | None, seen: dict[str, int]) -> None:
    if value is not None and value in seen:
        raise InvalidValueError({column: f"is also in row {seen[value]}"})


def row_error(line: int, serial: str, problems: dict[str, str]) -> RowError:
    """The serial as it was sent, but nothing that is not one."""
    printable = "".join(filter(str.isprintable, serial))[:_SHOWN_SERIAL]
    return RowError(line, printable, "; ".join(f"{at} {what}" for at, what in problems.items()))
