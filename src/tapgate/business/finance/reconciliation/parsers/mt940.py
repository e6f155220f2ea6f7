"""Parser for MT940 statements (SWIFT), line by line.

Every pattern is anchored and has bounded repetitions, so the time is linear in the file's size.
"""

import re
from datetime import date
from typing import Final, NamedTuple

from tapgate.business.finance.reconciliation.parsers.parsed import (
    MAX_REFERENCE_LENGTH,
    ParsedLine,
    ParsedStatement,
    UnreadableError,
    clean,
    find_period,
    parse_amount,
    require_currency,
    require_room,
)
from tapgate_client.schemas.bank_statements import BankStatementFormat

_TAG: Final = re.compile(r":([0-9]{2}[A-Z]?):(.*)", re.ASCII)
_BALANCE: Final = re.compile(r"([CD])([0-9]{6})([A-Z]{3})([0-9]{1,15}[,.]?[0-9]{0,5})", re.ASCII)
#: Value date, entry date, mark, funds code, amount, type, and the references with their separator.
_ITEM: Final = re.compile(
    r"([0-9]{6})([0-9]{4})?(R?[CD])([A-Z])?([0-9]{1,15}[,.]?[0-9]{0,5})([A-Z][0-9A-Z]{3})(.*)",
    re.ASCII,
)
#: Structured field 86 of German-speaking banks: `?20` to `?63` have texts and the counterparty.
_SUBFIELD: Final = re.compile(r"\?[0-9]{2}", re.ASCII)
#: Reference that the payer or the payee gave, as in SEPA texts and as a slash-delimited word.
_END_TO_END: Final = re.compile(r"(?:EREF\+|/EREF/)\s?([^/+? ]{1,35})", re.ASCII)
_NO_REFERENCES: Final = ("NONREF", "NOTPROVIDED")
_MAX_FIELD_LINES: Final = 60


class _Field(NamedTuple):
    tag: str
    lines: list[str]
    line: int


def parse(content: bytes, currency: str) -> ParsedStatement:
    fields = _split_fields(_decode(content))
    account, opening, closing = None, None, None
    lines: list[ParsedLine] = []
    for index, field in enumerate(fields):
        match field.tag:
            case "25" | "25P":
                account = _parse_account(field, account)
            case "60F" | "60M":
                balance = _parse_balance(field, currency)
                opening = opening or balance
            case "62F" | "62M":
                closing = _parse_balance(field, currency)
            case "61":
                require_room(len(lines), field.line)
                following = fields[index + 1] if index + 1 < len(fields) else None
                details = following if following is not None and following.tag == "86" else None
                line = _parse_item(field, details, currency)
                lines += [line] if line.amount else []
    if account is None:
        raise UnreadableError(1, "starts a file without an account (:25:)")
    period = find_period(lines, None if closing is None else closing[1])
    if period is None:
        raise UnreadableError(1, "starts a file with neither items nor balances")
    return ParsedStatement(
        format=BankStatementFormat.MT940,
        account=account,
        from_day=period[0],
        to_day=period[1],
        opening_balance=opening and opening[0],
        closing_balance=closing and closing[0],
        lines=lines,
    )


def _decode(content: bytes) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return content.decode("latin-1")


def _split_fields(text: str) -> list[_Field]:
    """Return the fields. Lines before the first one belong to the envelope."""
    fields: list[_Field] = []
    for number, raw in enumerate(text.replace("\r\n", "\n").replace("\r", "\n").split("\n"), 1):
        line = raw.rstrip()
        match = _TAG.fullmatch(line)
        if match is not None:
            fields.append(_Field(match[1], [match[2]], number))
        elif line.startswith(("-", "{")):
            continue  # the end of a message and the envelope of the next one
        elif line and fields and len(fields[-1].lines) < _MAX_FIELD_LINES:
            fields[-1].lines.append(line)
    if not any(field.tag == "61" or field.tag.startswith("6") for field in fields):
        raise UnreadableError(1, "starts a file that is not MT940")
    return fields


def _parse_account(field: _Field, earlier: str | None) -> str:
    account = "".join(field.lines[0].split()).upper()[:MAX_REFERENCE_LENGTH]
    if not account:
        raise UnreadableError(field.line, "has no account")
    if earlier is not None and account != earlier:
        raise UnreadableError(field.line, "starts the statement of another account")
    return account


def _parse_balance(field: _Field, currency: str) -> tuple[int, date]:
    match = _BALANCE.fullmatch(field.lines[0].strip())
    if match is None:
        raise UnreadableError(field.line, "has no valid balance")
    require_currency(match[3], currency)
    amount = parse_amount(match[4].replace(",", "."), currency, field.line)
    return amount if match[1] == "C" else -amount, _parse_day(match[2], field.line)


def _parse_item(field: _Field, details: _Field | None, currency: str) -> ParsedLine:
    match = _ITEM.fullmatch(field.lines[0].strip())
    if match is None:
        raise UnreadableError(field.line, "has no valid item")
    value_day = _parse_day(match[1], field.line)
    day = _parse_entry_day(match[2], value_day, field.line) if match[2] else value_day
    amount = parse_amount(match[5].replace(",", "."), currency, field.line)
    is_credit = match[3] in ("C", "RD")  # RD reverses a debit, RC a credit
    customer, _, bank = match[7].partition("//")
    texts = [] if details is None else details.lines
    # Field 86 is broken anywhere after 65 characters, also inside a reference.
    end_to_end = _END_TO_END.search("".join(texts))
    references = [end_to_end[1] if end_to_end else "", customer.strip(), bank.strip()]
    known = [value for value in references if value and value.upper() not in _NO_REFERENCES]
    return ParsedLine(
        day=day,
        amount=amount if is_credit else -amount,
        reference=clean(known[0], MAX_REFERENCE_LENGTH) if known else None,
        description=clean(" ".join([*field.lines[1:], _join(texts), *known[1:]])),
    )


def _join(lines: list[str]) -> str:
    """Join the lines of field 86. A structured field has its spaces in the text."""
    text = "".join(lines)
    return _SUBFIELD.sub(" ", text) if _SUBFIELD.search(text) else " ".join(lines)


def _parse_day(text: str, line: int) -> date:
    """Return the date of YYMMDD. SWIFT puts years from 80 into the last century."""
    year = int(text[:2])
    try:
        return date((1900 if year >= 80 else 2000) + year, int(text[2:4]), int(text[4:]))
    except ValueError:
        raise UnreadableError(line, "has no valid date") from None


def _parse_entry_day(text: str, value_day: date, line: int) -> date:
    """Return the date of MMDD that is nearest to the value date."""
    candidates = []
    for year in (value_day.year - 1, value_day.year, value_day.year + 1):
        try:
            candidates.append(date(year, int(text[:2]), int(text[2:])))
        except ValueError:
            continue  # 29 February
    if not candidates:
        raise UnreadableError(line, "has no valid date")
    return min(candidates, key=lambda day: abs(day - value_day))
