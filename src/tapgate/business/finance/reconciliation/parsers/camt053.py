"""Parser for camt.053 statements (ISO 20022), versions 02 and 08.

The file is read with expat as a stream: memory does not grow with unknown or nested elements. A
document type declaration is refused, and with it every entity.
"""

import re
from collections.abc import Iterator, Mapping
from datetime import date
from typing import Final, NoReturn
from xml.parsers import expat

from tapgate.business.finance.reconciliation.parsers.parsed import (
    MAX_DESCRIPTION_LENGTH,
    MAX_REFERENCE_LENGTH,
    ParsedLine,
    ParsedStatement,
    UnreadableError,
    clean,
    find_period,
    parse_amount,
    parse_day,
    require_currency,
    require_room,
)
from tapgate_client.schemas.bank_statements import BankStatementFormat

_NAMESPACE: Final = re.compile(r"urn:iso:std:iso:20022:tech:xsd:camt\.053\.001\.(02|08)")
_CHUNK_BYTES: Final = 64 * 1024
_MAX_DEPTH: Final = 40
_MAX_VALUES: Final = 20
#: Elements whose fields are kept together.
_CONTAINERS: Final = ("Stmt", "Bal", "Ntry", "TxDtls")
#: Paths of the fields that are read, from their container.
_FIELDS: Final = frozenset({
    "Acct/Id/IBAN", "Acct/Id/Othr/Id", "FrToDt/FrDtTm", "FrToDt/ToDtTm",
    "Tp/CdOrPrtry/Cd", "Amt", "CdtDbtInd", "Dt/Dt", "Dt/DtTm",
    "NtryRef", "Sts", "Sts/Cd", "BookgDt/Dt", "BookgDt/DtTm", "ValDt/Dt", "ValDt/DtTm",
    "AcctSvcrRef", "AddtlNtryInf", "Refs/EndToEndId", "Refs/TxId", "Refs/PmtInfId",
    "Refs/AcctSvcrRef", "AmtDtls/TxAmt/Amt", "RmtInf/Ustrd", "RmtInf/Strd/CdtrRefInf/Ref",
    "AddtlTxInf", "RltdPties/Dbtr/Nm", "RltdPties/Cdtr/Nm", "RltdPties/Dbtr/Pty/Nm",
    "RltdPties/Cdtr/Pty/Nm",
})  # fmt: skip
_REFERENCE_FIELDS: Final = ("Refs/EndToEndId", "Refs/TxId", "Refs/AcctSvcrRef")
_TEXT_FIELDS: Final = (
    "RmtInf/Ustrd", "RmtInf/Strd/CdtrRefInf/Ref", "RltdPties/Dbtr/Nm", "RltdPties/Dbtr/Pty/Nm",
    "RltdPties/Cdtr/Nm", "RltdPties/Cdtr/Pty/Nm", "AddtlTxInf", "Refs/PmtInfId",
)  # fmt: skip
#: ISO 20022 requires an end-to-end ID, so banks write this if there is none.
_NO_REFERENCE: Final = "NOTPROVIDED"


class _Element:
    """Container with the texts of its fields, and the containers inside it."""

    def __init__(self, name: str, line: int, depth: int) -> None:
        self.name, self.line, self.depth = name, line, depth
        self.values: dict[str, list[str]] = {}
        self.currencies: dict[str, str] = {}
        self.children: list[_Element] = []

    def get(self, *paths: str) -> str | None:
        """Return the first field with a text."""
        return next((self.values[path][0] for path in paths if path in self.values), None)

    def require(self, *paths: str) -> str:
        value = self.get(*paths)
        if value is None:
            raise UnreadableError(self.line, f"has no {paths[0].rpartition('/')[2]}")
        return value


class _Reader:
    """Receives expat's events and collects statements."""

    def __init__(self) -> None:
        self.statements: list[_Element] = []
        self._items = 0
        self._path: list[str] = []
        self._containers: list[_Element] = []
        self._text: list[str] = []
        self._text_length = 0
        self._parser = parser = expat.ParserCreate(namespace_separator=" ")
        parser.buffer_text = True
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._add_text
        parser.StartDoctypeDeclHandler = self._refuse_declaration
        parser.EntityDeclHandler = self._refuse_declaration
        parser.ExternalEntityRefHandler = self._refuse_declaration

    def read(self, content: bytes) -> None:
        try:
            for start in range(0, len(content), _CHUNK_BYTES):
                self._parser.Parse(content[start : start + _CHUNK_BYTES], False)
            self._parser.Parse(b"", True)
        except expat.ExpatError as error:
            raise UnreadableError(error.lineno, "is not valid XML") from None
        except (ValueError, LookupError):  # an unknown encoding
            raise UnreadableError(1, "has an encoding that is not supported") from None

    def _refuse_declaration(self, *_: object) -> NoReturn:
        raise UnreadableError(
            self._parser.CurrentLineNumber, "has a document type or entity declaration"
        )

    def _start(self, name: str, attributes: Mapping[str, str]) -> None:
        line = self._parser.CurrentLineNumber
        namespace, _, local = name.rpartition(" ")
        if not self._path and (local != "Document" or not _NAMESPACE.fullmatch(namespace)):
            raise UnreadableError(line, "is not camt.053.001.02 or camt.053.001.08")
        self._path.append(local)
        if len(self._path) > _MAX_DEPTH:
            raise UnreadableError(line, "is nested too deeply")
        if local in _CONTAINERS:
            self._open_container(local, line)
        elif self._containers and "Ccy" in attributes:
            self._containers[-1].currencies.setdefault(self._get_field_path(), attributes["Ccy"])
        self._text, self._text_length = [], 0

    def _open_container(self, name: str, line: int) -> None:
        require_room(self._items, line)
        self._items += name != "Stmt"
        element = _Element(name, line, len(self._path))
        if self._containers:
            self._containers[-1].children.append(element)
        elif name == "Stmt":
            self.statements.append(element)
        self._containers.append(element)

    def _get_field_path(self) -> str:
        return "/".join(self._path[self._containers[-1].depth :])

    def _add_text(self, text: str) -> None:
        if self._containers and self._text_length <= MAX_DESCRIPTION_LENGTH:
            self._text.append(text)
            self._text_length += len(text)

    def _end(self, _: str) -> None:
        if self._containers and len(self._path) == self._containers[-1].depth:
            self._containers.pop()
        elif self._containers and self._text:
            self._store_field("".join(self._text).strip()[:MAX_DESCRIPTION_LENGTH])
        self._path.pop()
        self._text, self._text_length = [], 0

    def _store_field(self, text: str) -> None:
        path = self._get_field_path()
        if text and path in _FIELDS:
            values = self._containers[-1].values.setdefault(path, [])
            if len(values) < _MAX_VALUES:
                values.append(text)


def parse(content: bytes, currency: str) -> ParsedStatement:
    reader = _Reader()
    reader.read(content)
    if not reader.statements:
        raise UnreadableError(1, "has no statement")
    accounts = {_get_account(statement) for statement in reader.statements}
    if len(accounts) > 1:
        raise UnreadableError(reader.statements[1].line, "starts the statement of another account")
    lines = [line for statement in reader.statements for line in _build_lines(statement, currency)]
    opening = _find_balance(reader.statements[0], ("OPBD", "PRCD"), currency)
    closing = _find_balance(reader.statements[-1], ("CLBD",), currency)
    last = reader.statements[-1].get("FrToDt/ToDtTm")
    end = closing[1] if closing else last and parse_day(last, reader.statements[-1].line)
    period = find_period(lines, end or None)
    if period is None:
        raise UnreadableError(reader.statements[0].line, "has neither entries nor balances")
    first = reader.statements[0].get("FrToDt/FrDtTm")
    from_day = parse_day(first, reader.statements[0].line) if first else period[0]
    return ParsedStatement(
        format=BankStatementFormat.CAMT_053,
        account=accounts.pop(),
        from_day=min(from_day, period[1]),
        to_day=period[1],
        opening_balance=opening and opening[0],
        closing_balance=closing and closing[0],
        lines=lines,
    )


def _get_account(statement: _Element) -> str:
    return "".join(statement.require("Acct/Id/IBAN", "Acct/Id/Othr/Id").split()).upper()


def _find_balance(
    statement: _Element, codes: tuple[str, ...], currency: str
) -> tuple[int, date] | None:
    """Return a balance and its date."""
    for child in statement.children:
        if child.name == "Bal" and child.get("Tp/CdOrPrtry/Cd") in codes:
            amount = _get_amount(child, child, currency)
            assert amount is not None
            return amount, parse_day(child.require("Dt/Dt", "Dt/DtTm"), child.line)
    return None


def _build_lines(statement: _Element, currency: str) -> Iterator[ParsedLine]:
    for entry in statement.children:
        if entry.name != "Ntry" or entry.require("Sts/Cd", "Sts") != "BOOK":
            continue
        details = [child for child in entry.children if child.name == "TxDtls"] or [entry]
        amounts = [_get_amount(each, entry, currency) for each in details]
        if len(details) == 1 or None in amounts:
            # One payment has the amount of its entry. Payments without amounts are one line.
            details, amounts = details[:1], [_get_amount(entry, entry, currency)]
        for each, amount in zip(details, amounts, strict=True):
            if amount:
                yield _build_line(entry, each, amount)


def _get_amount(element: _Element, entry: _Element, currency: str) -> int | None:
    """Return a signed amount, or None for a payment without an amount in the currency."""
    path = "Amt" if "Amt" in element.values else "AmtDtls/TxAmt/Amt"
    code = element.currencies.get(path)
    if element is entry or element.name == "Bal":
        path = "Amt"
        element.require(path)
        require_currency(element.currencies.get(path, ""), currency)
    elif path not in element.values or code != currency:
        return None
    amount = parse_amount(element.values[path][0], currency, element.line)
    side = element.get("CdtDbtInd") or entry.require("CdtDbtInd")
    if side not in ("CRDT", "DBIT"):
        raise UnreadableError(element.line, "is neither a credit nor a debit")
    return amount if side == "CRDT" else -amount


def _build_line(entry: _Element, details: _Element, amount: int) -> ParsedLine:
    references = [details.get(path) for path in _REFERENCE_FIELDS]
    references += [entry.get("NtryRef"), entry.get("AcctSvcrRef")]
    known = [value for value in references if value and value.upper() != _NO_REFERENCE]
    texts = [text for path in _TEXT_FIELDS for text in details.values.get(path, ())]
    texts += entry.values.get("AddtlNtryInf", [])
    day = entry.require("BookgDt/Dt", "BookgDt/DtTm", "ValDt/Dt", "ValDt/DtTm")
    return ParsedLine(
        day=parse_day(day, entry.line),
        amount=amount,
        reference=clean(known[0], MAX_REFERENCE_LENGTH) if known else None,
        description=clean(" ".join(texts)),
    )
