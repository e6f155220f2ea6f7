"""Parsing answers: amounts, phone numbers, cards, names and periods."""

from datetime import date

from hypothesis import given
from hypothesis import strategies as st

from cases import each
from growth import measure_growth
from tapgate.messenger.understanding.amounts import parse_amount
from tapgate.messenger.understanding.names import parse_list_number, parse_person_names
from tapgate.messenger.understanding.normalization import normalize_digits, normalize_text
from tapgate.messenger.understanding.periods import parse_period
from tapgate.messenger.understanding.transfers import (
    ParsedTransfer,
    has_unsupported_amount,
    parse_card_serial,
    parse_payee,
    parse_payee_name,
    parse_phone,
    parse_transfer,
)
from tapgate_client import money

OWN_PHONE = "+23276000001"
TODAY = date(2026, 11, 15)


@each(
    "text, expected",
    [
        ("500", "500"),
        ("500.50", "500.50"),
        ("500,50", "500.50"),
        ("1,500", "1500"),
        ("1 500", "1500"),
        ("1\u202f500,50", "1500.50"),
        ("1.500,50", "1500.50"),
        ("1,500.50", "1500.50"),
        ("1'500", "1500"),
        ("12 345 678", "12345678"),
        ("Le 500", "500"),
        ("le500", "500"),
        ("500 SLE", "500"),
        ("Le 500 SLE", "500"),
        ("500 leones please", "500"),
        ("amount: 500", "500"),
        ("500.", "500"),
        ("0.50", "0.50"),
        ("５００", "500"),
        ("٥٠٠", "500"),
        ("12345678 le", "12345678"),
        ("5k", "5000"),
        ("2.5k leones", "2500"),
        ("five", "5"),
        ("two hundred leones please", "200"),
    ],
)
def test_amount_is_parsed(text: str, expected: str) -> None:
    assert parse_amount(text, "SLE") == expected


@each(
    "text",
    """5m
    -500
    Le -500
    500-
    0
    0500
    00.50
    1,50,000
    1 50
    1,500,50
    1.500.50
    500.505
    1.500
    500 usd
    $500
    500 or 600
    five or six hundred
    two fifty
    50 cents
    1k5
    1e5
    076123456
    23276123456
    9999999999999 le
    ½
    500%
    """.splitlines(),
)
def test_invalid_amount_is_rejected(text: str) -> None:
    assert parse_amount(text.strip(), "SLE") is None


def test_amount_follows_the_decimals_of_its_currency() -> None:
    assert parse_amount("5 000 FCFA", "XOF") == "5000"
    assert parse_amount("5000.50", "XOF") is None
    assert parse_amount("1.500", "XOF") == "1500"
    assert parse_amount("1.500.000", "SLE") == "1500000"
    assert parse_amount("1,500", "TND") is None
    assert parse_amount("1 500", "TND") == "1500"


@given(st.integers(1, 10**11), st.sampled_from([",", " ", "'"]), st.sampled_from(["SLE", "XOF"]))
def test_amount_with_grouped_digits_is_parsed(minor: int, separator: str, currency: str) -> None:
    text = money.format_money(minor, currency).removesuffix(f" {currency}")
    text = text.removesuffix(".00").replace(",", separator)
    amount = parse_amount(f"{text} {currency}", currency)
    assert amount is not None
    assert money.parse(amount, currency) == minor


@given(st.text(max_size=60) | st.from_regex(r"[0-9 .,'Lek-]{1,20}", fullmatch=True))
def test_arbitrary_text_yields_only_valid_values(text: str) -> None:
    amount = parse_amount(text, "SLE")
    assert amount is None or money.parse(amount, "SLE") > 0
    transfer = parse_transfer(text, OWN_PHONE, "SLE")
    assert transfer.amount is None or money.parse(transfer.amount, "SLE") > 0
    assert transfer.phone is None or transfer.card_serial is None
    parse_payee(text, None)
    parse_person_names(text)
    parse_list_number(text)
    period = parse_period(text, TODAY)
    assert period is None or period[0] <= period[1] <= TODAY


@each(
    "text, expected",
    [
        ("076 123 456", "+23276123456"),
        ("076-123-456", "+23276123456"),
        ("+232 76 123456", "+23276123456"),
        ("0023276123456", "+23276123456"),
        ("23276123456", "+23276123456"),
        ("to 076123456", "+23276123456"),
        ("le numéro 076123456", "+23276123456"),
        ("+33 6 12 34 56 78", "+33612345678"),
        ("500", None),
        ("1234", None),
        ("hello", None),
        ("076 123 456 or 077 123 456", None),
        ("+999999999999", None),
    ],
)
def test_phone_number_is_parsed(text: str, expected: str | None) -> None:
    assert parse_phone(text, OWN_PHONE) == expected


def test_national_phone_number_uses_the_country_of_the_sender() -> None:
    assert parse_phone("076123456", None) is None
    assert parse_phone("+23276123456", None) == "+23276123456"
    assert parse_phone("620 12 34 56", "+224621000000") == "+224620123456"


@each(
    "text, expected",
    [
        ("CARD-123", "CARD-123"),
        ("card TAP-000001", "TAP-000001"),
        ("la carte A1B2", "A1B2"),
        ("1234567890123456", "1234567890123456"),
        ("500", None),
        ("076123456", None),
        ("hello", None),
        ("CARD", None),
        ("CARD_1", None),
        ("A1" * 17, None),
        ("CARD-1 CARD-2", None),
    ],
)
def test_card_serial_is_parsed(text: str, expected: str | None) -> None:
    assert parse_card_serial(text) == expected


def test_payee_is_parsed_as_phone_or_card() -> None:
    assert parse_payee("076 123 456", OWN_PHONE) == ParsedTransfer(phone="+23276123456")
    assert parse_payee("CARD-123", OWN_PHONE) == ParsedTransfer(card_serial="CARD-123")
    assert parse_payee("my brother", OWN_PHONE) is None


@each(
    "text, expected",
    [
        ("send 500 to 076 123 456", ParsedTransfer(amount="500", phone="+23276123456")),
        ("envoie 2000 à la carte CARD-123", ParsedTransfer(amount="2000", card_serial="CARD-123")),
        ("a wan send 500 to 076123456", ParsedTransfer(amount="500", phone="+23276123456")),
        (
            "Send Le 1,500.50 to +23276123456 please",
            ParsedTransfer(amount="1500.50", phone="+23276123456"),
        ),
        ("envoyer 1 500 au 076 12 34 56", ParsedTransfer(amount="1500", phone="+23276123456")),
        ("send 500 to my brother", ParsedTransfer(amount="500")),
        ("send to 076123456", ParsedTransfer(phone="+23276123456")),
        ("send money to 1234", ParsedTransfer()),
        ("send 500 or 600 to 076123456", ParsedTransfer(phone="+23276123456")),
        ("send 500 to 076123456 to 077123456", ParsedTransfer(amount="500")),
        ("send -500 to 076123456", ParsedTransfer(phone="+23276123456")),
        ("send 5k to 076123456", ParsedTransfer(amount="5000", phone="+23276123456")),
        ("send two fifty to 076123456", ParsedTransfer(phone="+23276123456")),
        ("send 1000 thousand to 076123456", ParsedTransfer(phone="+23276123456")),
        ("send 5 or 6 hundred to 076123456", ParsedTransfer(phone="+23276123456")),
        ("send 5m to 076123456", ParsedTransfer(phone="+23276123456")),
        ("send 500 usd to 076123456", ParsedTransfer(phone="+23276123456")),
        ("send $500 to 076123456", ParsedTransfer(phone="+23276123456")),
        ("send 500le to CARD-9", ParsedTransfer(amount="500", card_serial="CARD-9")),
        ("send 076123456", ParsedTransfer(phone="+23276123456")),
        ("send to CARD-9 10", ParsedTransfer(amount="10", card_serial="CARD-9")),
        ("send to 076123456 10", ParsedTransfer(amount="10", phone="+23276123456")),
        ("send CARD-9 5", ParsedTransfer(amount="5", card_serial="CARD-9")),
        ("send 5 CARD-9", ParsedTransfer(amount="5", card_serial="CARD-9")),
        ("send 5 CARD-9 6", ParsedTransfer(card_serial="CARD-9")),
        ("send CARD-9 CARD-8 5", ParsedTransfer()),
        ("CARD-9", ParsedTransfer(card_serial="CARD-9")),
        ("send 5 to CARD-9 6", ParsedTransfer(amount="5", card_serial="CARD-9")),
        ("send money", ParsedTransfer()),
    ],
)
def test_transfer_is_parsed(text: str, expected: ParsedTransfer) -> None:
    assert parse_transfer(text, OWN_PHONE, "SLE") == expected


def test_payee_name_is_parsed() -> None:
    assert parse_payee_name("send 8 to Mohamed") == "Mohamed"
    assert parse_payee_name("envoie 8 à ma tante Fatou svp.") == "tante Fatou svp"
    assert parse_payee_name("send 8 to my mum!") == "mum"
    for text in (
        "send 8",
        "send 8 to 076123456",
        "send 8 to a friend",
        "send 8 to x to y",
        "x" * 999,
    ):
        assert parse_payee_name(text) is None


def test_unsupported_amount_is_detected() -> None:
    for text in ("1m", "send $5", "send 5 USD", "send two fifty", "5€", "send 2.5m to CARD-9"):
        assert has_unsupported_amount(text, "SLE")
    for text in ("send 5", "send 5 SLE to CARD-9", "send le 5", "send money", "5 le"):
        assert not has_unsupported_amount(text, "SLE")


def test_person_names_and_list_numbers_are_parsed() -> None:
    assert parse_person_names("Aminata Bah Kamara") == ("Aminata", "Bah Kamara")
    assert parse_person_names("my name is Jean-Luc N'Diaye.") == ("Jean-Luc", "N'Diaye")
    assert parse_person_names("je m’appelle Zoé Bâ") == ("Zoé", "Bâ")
    assert parse_person_names("Aminata") is None
    assert parse_person_names("Aminata 4071") is None
    texts = ("2", "2.", "number 2", "deux", "the second")
    assert [parse_list_number(text) for text in texts] == [2] * 5
    assert [parse_list_number(text) for text in ("2 or 3", "4071", "-1", "", "many")] == [None] * 5


@each(
    "text, first, last",
    [
        ("last month", "2026-10-01", "2026-10-31"),
        ("le mois dernier", "2026-10-01", "2026-10-31"),
        ("this month", "2026-11-01", "2026-11-15"),
        ("ce mois-ci", "2026-11-01", "2026-11-15"),
        ("october", "2026-10-01", "2026-10-31"),
        ("Décembre", "2025-12-01", "2025-12-31"),
        ("february 2024", "2024-02-01", "2024-02-29"),
        ("january to march", "2026-01-01", "2026-03-31"),
        ("novembre à janvier", "2025-11-01", "2026-01-31"),
        ("2026-10-01 to 2026-10-31", "2026-10-01", "2026-10-31"),
        ("du 01/10/2026 au 15/10/2026", "2026-10-01", "2026-10-15"),
        ("2026-09", "2026-09-01", "2026-09-30"),
        ("2025", "2025-01-01", "2025-12-31"),
        ("last 3 months", "2026-08-15", "2026-11-15"),
        ("les 3 derniers mois", "2026-08-15", "2026-11-15"),
        ("last 7 days", "2026-11-09", "2026-11-15"),
        ("l'année dernière", "2025-01-01", "2025-12-31"),
        ("since 2026-10-01", "2026-10-01", "2026-11-15"),
        ("hier", "2026-11-14", "2026-11-14"),
    ],
)
def test_period_is_parsed(text: str, first: str, last: str) -> None:
    assert parse_period(text, TODAY) == (date.fromisoformat(first), date.fromisoformat(last))


@each(
    "text",
    """hello
    2026-13-01 to 2026-14-01
    2026-10-31 to 2026-10-01
    2027
    may i have it
    last 0 months
    december 2026
    until 2026-10-01
    0000-00
    """.splitlines(),
)
def test_invalid_period_is_rejected(text: str) -> None:
    assert parse_period(text, TODAY) is None


@each("unit", ["1", "1.", "1,", "a", "("])
def test_reading_takes_time_linear_in_the_text(unit: str) -> None:
    assert measure_growth(normalize_text, unit, 80) < 8
    assert measure_growth(lambda text: has_unsupported_amount(text, "SLE"), unit, 75) < 8


def test_answer_that_expands_beyond_the_maximum_length_is_not_parsed() -> None:
    assert normalize_digits("⒛" * 100) == "20." * 100
    assert normalize_digits("⒛" * 101) == ""
