"""Statement files in the dialects of several banks, and files that are unreadable.

The samples were written by hand from the banks' public descriptions of their files.
"""

from datetime import date
from pathlib import Path

import pytest

from builders.bank_statements import build_camt, build_camt_entry, build_mt940
from tapgate.business.finance.reconciliation.parsers.files import find_format, parse_file
from tapgate.business.finance.reconciliation.parsers.parsed import (
    ParsedLine,
    ParsedStatement,
    UnreadableError,
)
from tapgate_client.errors import ApiError, Code
from tapgate_client.schemas.bank_statements import (
    BankStatementFormat,
    CsvDateFormat,
    CsvDecimalSeparator,
    CsvMapping,
)

SAMPLES = Path(__file__).parent / "samples"
REFERENCE = "PO04BGX6A000009"
GERMAN_COLUMNS = CsvMapping(
    date="Buchungstag",
    amount="betrag",
    description=["Empfänger", "Verwendungszweck"],
    date_format=CsvDateFormat.DAY_FIRST_DOTS,
    decimal_separator=CsvDecimalSeparator.COMMA,
)
BRITISH_COLUMNS = CsvMapping(
    date="Transaction Date",
    debit="Debit Amount",
    credit="Credit Amount",
    description=["Description"],
    date_format=CsvDateFormat.DAY_FIRST_SLASHES,
)


def parse(
    content: bytes | str, mapping: CsvMapping | None = None, currency: str = "EUR"
) -> ParsedStatement:
    encoded = content.encode() if isinstance(content, str) else content
    return parse_file(encoded, find_format(encoded), currency, mapping)


def parse_sample(name: str, mapping: CsvMapping | None = None) -> ParsedStatement:
    return parse((SAMPLES / name).read_bytes(), mapping)


def test_german_camt_has_a_line_for_each_payment_and_no_pending_entry() -> None:
    assert parse_sample("german_bank_v02.xml") == ParsedStatement(
        format=BankStatementFormat.CAMT_053,
        account="DE89370400440532013000",
        from_day=date(2026, 1, 15),
        to_day=date(2026, 1, 15),
        opening_balance=1_000_00,
        closing_balance=825_50,
        lines=[
            ParsedLine(date(2026, 1, 15), -120_00, REFERENCE, "Payout of January Kamara Stores"),
            ParsedLine(date(2026, 1, 15), -80_00, "PO04BGX6A00000B", "Bar Bintu"),
            ParsedLine(date(2026, 1, 15), 25_50, None, "DEP-17 Ada Cole"),
        ],
    )


def test_british_camt_has_a_namespace_prefix_and_entries_without_details() -> None:
    statement = parse_sample("british_bank_v08.xml")
    assert statement.account == "20-20-1555555555"
    assert (statement.opening_balance, statement.closing_balance) == (-10_00, None)
    line = ParsedLine(date(2026, 2, 28), 300_00, "77001", f"RETURNED PAYMENT {REFERENCE}")
    assert statement.lines == [line]


def test_german_mt940_has_structured_texts() -> None:
    statement = parse_sample("german_bank.sta")
    assert statement.account == "37040044/0532013000"
    assert (statement.opening_balance, statement.closing_balance) == (1_000_00, 905_50)
    payment, deposit = statement.lines
    assert payment[:3] == (date(2026, 1, 15), -120_00, REFERENCE)
    assert "Payout Januar" in str(payment.description)
    assert deposit[:3] == (date(2026, 1, 15), 25_50, None)
    assert "DEP-17 Ada Cole" in str(deposit.description)


def test_dutch_mt940_has_reversals_and_a_message_per_day() -> None:
    statement = parse_sample("dutch_bank.sta")
    assert [line.amount for line in statement.lines] == [-40_00, 70_15, -1_00]
    assert statement.lines[0].reference == REFERENCE
    assert (statement.from_day, statement.to_day) == (date(2026, 1, 31), date(2026, 2, 1))
    assert statement.closing_balance == 529_15


def test_west_african_mt940_has_references_in_the_item() -> None:
    statement = parse_sample("west_african_bank.sta")
    assert statement.closing_balance == -7_500_00
    assert statement.lines == [
        ParsedLine(date(2026, 1, 2), -15_000_00, REFERENCE, "TRANSFER TO KAMARA STORES FT26002ABC"),
        ParsedLine(
            date(2026, 1, 31), 7_500_00, "DEP-18", "CASH DEPOSIT FREETOWN BRANCH AGENT BINTU"
        ),
    ]


def test_german_csv_has_a_preamble_and_a_decimal_comma() -> None:
    assert parse_sample("german_bank.csv", GERMAN_COLUMNS).lines == [
        ParsedLine(date(2026, 1, 15), -1_234_56, None, f"Kamara Stores {REFERENCE}; Januar"),
        ParsedLine(date(2026, 1, 16), 1_000_00, None, "Ada Cole DEP-17"),
    ]


def test_british_csv_has_debits_and_credits() -> None:
    lines = parse_sample("british_bank.csv", BRITISH_COLUMNS).lines
    assert [line.amount for line in lines] == [-120_00, 1_000_50]
    assert lines[0].description == f"KAMARA STORES, {REFERENCE}"


def test_standard_columns_are_read_without_and_beside_a_mapping() -> None:
    content = 'date;amount;description\n2026-01-15;-5.5;"a ""b""\nc"\n;;\n2026-01-16;0;nothing\n'
    line = ParsedLine(date(2026, 1, 15), -5_50, None, 'a "b" c')
    for mapping in (None, GERMAN_COLUMNS):
        assert parse(content, mapping).lines == [line]


def test_payments_without_amounts_are_one_line() -> None:
    details = "<TxDtls><Refs><EndToEndId>A</EndToEndId></Refs></TxDtls>" * 2
    entry = build_camt_entry("-7.00", "2026-01-15", "A", currency="EUR")
    content = entry.replace("</NtryDtls>", f"{details}</NtryDtls>")
    statement = parse(build_camt(content, currency="EUR"))
    assert [line.amount for line in statement.lines] == [-7_00]


@pytest.mark.parametrize(
    ("amount", "currency", "minor"),
    [("7", "XOF", 7), ("7.000", "XOF", 7), ("1.2345", "KWD", None), ("1e3", "EUR", None)],
)
def test_amount_has_the_decimals_of_the_currency(
    amount: str, currency: str, minor: int | None
) -> None:
    content = build_camt(build_camt_entry(amount, "2026-01-15", "A", currency=currency))
    if minor is not None:
        assert parse(content, currency=currency).lines[0].amount == minor
        return
    with pytest.raises(UnreadableError):
        parse(content, currency=currency)


@pytest.mark.parametrize(("content", "line"), [
    ("", 1),
    ("date,amount\n", 1),
    ("date,amount\n2026-01-15,1\n2026-02-30,1\n", 3),
    ("date,amount\n2026-01-15,\n", 2),
    ("date,amount\n0001-01-01,1\n", 2),
    (f"date,amount\n2026-01-15,1{'0' * 20_000}\n", 2),
    ("<Document/>", 1),
    ("<a>\n<b>\n</a>", 1),
    (build_camt("<Ntry>", currency="EUR"), 5),
    (f"<Document xmlns='urn:iso:std:iso:20022:tech:xsd:camt.053.001.08'>\n{'<a>' * 99}", 2),
    (build_camt("<Ntry><Sts>BOOK</Sts></Ntry>", currency="EUR"), 4),
    (build_camt("", version="04"), 2),
    (build_camt(""), 3),
    (build_mt940([":61:what"]).replace("SLE", "EUR"), 5),
    (build_mt940([":61:260230C1,00NTRFNONREF"]).replace("SLE", "EUR"), 5),
    (build_mt940([":25:OTHER"]).replace("SLE", "EUR"), 5),
    (":20:A\n:60F:C260101EUR1,\n", 1),
    (":20:A\n:25:1\n:60F:C26EUR\n", 3),
])  # fmt: skip
def test_unreadable_file_is_refused_with_its_line(content: str, line: int) -> None:
    with pytest.raises(UnreadableError) as caught:
        parse(content)
    details = caught.value.details
    assert details is not None
    assert details["line"] == line
    assert caught.value.status == 422


def test_another_currency_is_refused() -> None:
    for content in (build_camt(build_camt_entry("1", "2026-01-15", "A")), build_mt940([])):
        with pytest.raises(ApiError) as caught:
            parse(content)
        assert caught.value.code == Code.CURRENCY_NOT_SUPPORTED


def test_statement_has_at_most_50_000_lines() -> None:
    rows = "2026-01-15,1.00\n" * 50_001
    with pytest.raises(UnreadableError) as caught:
        parse("date,amount\n" + rows)
    assert caught.value.details is not None
    assert caught.value.details["line"] == 50_002
