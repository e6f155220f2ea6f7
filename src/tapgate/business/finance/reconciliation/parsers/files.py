"""Finds the format of a statement file and parses it."""

import re
from typing import Final

from tapgate.business.finance.reconciliation.parsers import camt053, csv_statement, mt940
from tapgate.business.finance.reconciliation.parsers.parsed import ParsedStatement
from tapgate_client.schemas.bank_statements import BankStatementFormat, CsvMapping

_HEAD_BYTES: Final = 4096
_MT940_FIELD: Final = re.compile(rb"^:(?:20|25|28C|60F):|^\{1:", re.MULTILINE)


def find_format(content: bytes) -> BankStatementFormat:
    head = content[:_HEAD_BYTES]
    if head.removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"<") or (
        head[:2]
        in (
            b"\xff\xfe",
            b"\xfe\xff",
        )
        and b"<" in head[:8]
    ):
        return BankStatementFormat.CAMT_053
    return BankStatementFormat.MT940 if _MT940_FIELD.search(head) else BankStatementFormat.CSV


def parse_file(
    content: bytes, file_format: BankStatementFormat, currency: str, mapping: CsvMapping | None
) -> ParsedStatement:
    """Parse a file, or raise 422 with the line that is unreadable."""
    if file_format == BankStatementFormat.CAMT_053:
        return camt053.parse(content, currency)
    if file_format == BankStatementFormat.MT940:
        return mt940.parse(content, currency)
    return csv_statement.parse(content, currency, mapping)
