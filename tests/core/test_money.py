from decimal import ROUND_HALF_UP, Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cases import each
from tapgate_client import money

CURRENCIES = st.sampled_from(["SLE", "USD", "JPY", "XOF", "KWD", "CLF"])
MINOR = st.integers(0, 10**14)


@each(
    "text, minor", [("500", 50000), ("500.00", 50000), ("500.5", 50050), ("0.01", 1), ("007", 700)]
)
def test_amount_is_parsed_to_minor_units(text: str, minor: int) -> None:
    assert money.parse(text, "SLE") == minor


@each(
    "text",
    [
        *("", " ", "abc", "1,000", "1 000", "+1", "-1", "1e3", "NaN", "Infinity", ".5", "5."),
        *("1.234", "0", "0.00", "1000000000000", "１２", "٣", "1\n", "0x10", "1_000", "1.0.0"),
    ],
)
def test_invalid_amount_is_rejected_without_echoing_it(text: str) -> None:
    with pytest.raises(money.AmountError) as raised:
        money.parse(text, "SLE")
    assert not text.strip() or text.strip() not in str(raised.value).split()


def test_amount_has_a_maximum() -> None:
    assert money.parse("999999999999.99", "SLE") == 99_999_999_999_999
    with pytest.raises(money.AmountError):
        money.parse("1000000000000.00", "SLE")


@each("currency, digits", [("SLE", 2), ("JPY", 0), ("KWD", 3), ("CLF", 4)])
def test_number_of_decimals_follows_iso_4217(currency: str, digits: int) -> None:
    assert money.get_decimals(currency) == digits
    assert money.is_currency(currency)


def test_unknown_currency_is_rejected() -> None:
    assert not money.is_currency("SLX")
    assert not money.is_currency("sle")
    with pytest.raises(KeyError):
        money.get_decimals("SLX")


@each(
    "minor, currency, text",
    [
        (123450, "SLE", "1,234.50 SLE"),
        (0, "SLE", "0.00 SLE"),
        (-5, "SLE", "-0.05 SLE"),
        (100_000_000, "SLE", "1,000,000.00 SLE"),
        (1234, "JPY", "1,234.00 JPY"),
        (1234567, "KWD", "1,234.567 KWD"),
    ],
)
def test_money_is_formatted_with_separators_and_currency(
    minor: int, currency: str, text: str
) -> None:
    assert money.format_money(minor, currency) == text
    french = money.format_money(minor, currency, "fr")
    assert french == text.replace(",", "\u00a0").replace(".", ",").replace(" ", "\u00a0")


def test_french_amounts_have_spaces_that_do_not_wrap_and_a_decimal_comma() -> None:
    assert money.format_money(123450, "SLE", "fr") == "1\u00a0234,50\u00a0SLE"


@given(MINOR, CURRENCIES)
def test_formatted_decimal_can_be_parsed_again(minor: int, currency: str) -> None:
    if minor < 10 ** (12 + money.get_decimals(currency)):
        found = money.parse(money.format_decimal(minor, currency), currency, allow_zero=True)
        assert found == minor


@given(MINOR)
def test_float_representation_is_exact(minor: int) -> None:
    assert Decimal(repr(money.to_float(minor, "SLE"))) * 100 == minor


@given(MINOR, st.integers(0, 100_000))
def test_rate_is_applied_with_rounding_half_up(minor: int, rate: int) -> None:
    exact = Decimal(minor) * rate / 100_000
    assert money.apply_rate(minor, rate) == exact.quantize(Decimal(1), ROUND_HALF_UP)
