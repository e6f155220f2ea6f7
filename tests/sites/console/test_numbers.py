"""Numbers in English and French: what people read and what they may type."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders.participants import create_agent, get_balances
from drivers.console import ConsoleClient
from harness import BearerAuth, Harness
from tapgate.sites.console.numbers import get_number_format
from tapgate.sites.console.translation.translator import Language

ENGLISH, FRENCH = get_number_format("en"), get_number_format("fr")
NARROW, WIDE = "\N{NARROW NO-BREAK SPACE}", "\N{NO-BREAK SPACE}"
AMOUNTS = st.decimals(0, 10**12, places=2).map(lambda value: f"{value:.2f}")


def test_amounts_numbers_and_percentages_have_the_separators_of_the_language() -> None:
    assert ENGLISH.format_amount("-1234567.50", "SLE") == "−1,234,567.50 SLE"
    assert FRENCH.format_amount("-1234567.50", "SLE") == f"−1{NARROW}234{NARROW}567,50{WIDE}SLE"
    assert (ENGLISH.format_number(12345), FRENCH.format_number(12345)) == (
        "12,345",
        f"12{NARROW}345",
    )
    assert (ENGLISH.format_percent("2.5"), FRENCH.format_percent("2.5")) == ("2.5%", f"2,5{WIDE}%")
    assert (ENGLISH.format_amount(None), FRENCH.format_number(None)) == ("–", "–")


@pytest.mark.parametrize(
    ("typed", "english", "french"),
    [
        ("1 234,50", "1234.50", "1234.50"),
        ("1 234.50", "1234.50", "1234.50"),
        ("1, 234", "1234", "1.234"),
        ("1 234,567", "1234,567", "1234.567"),
        ("1,50", "1,50", "1.50"),
        ("1,234.50", "1234.50", "1234.50"),
        ("1.234,50", "1234.50", "1234.50"),
        ("1234.5", "1234.5", "1234.5"),
        ("12,5", "12,5", "12.5"),
        # A French comma is never a separator of thousands: the API rejects three decimals.
        ("1,234", "1234", "1.234"),
        ("1.234", "1.234", "1.234"),
        ("1'000", "1000", "1000"),
        ("1,23,4", "1,23,4", "1,23,4"),
        ("ten", "ten", "ten"),
    ],
)
def test_typed_amounts_are_read_as_the_language_writes_them(
    typed: str, english: str, french: str
) -> None:
    assert (ENGLISH.clean(typed), FRENCH.clean(typed)) == (english, french)


@given(AMOUNTS, st.sampled_from(list(Language)))
def test_every_shown_amount_can_be_typed(amount: str, language: Language) -> None:
    numbers = get_number_format(language)
    for shown in (numbers.format_amount(amount), numbers.format_input(amount)):
        cleaned = numbers.clean(shown)
        assert cleaned is not None and Decimal(cleaned) == Decimal(amount), shown


@given(st.text("0123456789.,' ", max_size=12), st.sampled_from(list(Language)))
def test_cleaning_changes_no_digit(typed: str, language: Language) -> None:
    cleaned = get_number_format(language).clean(typed)
    assert cleaned is not None
    digits = [[letter for letter in text if letter.isdigit()] for text in (typed, cleaned)]
    assert digits[0] == digits[1]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1,200.50 SLE", f"1{NARROW}200,50{WIDE}SLE"),
        ("0.01", "0,01"),
        ("2026", "2026"),
        ("Level 2", "Level 2"),
    ],
)
def test_only_amounts_in_messages_are_localized(text: str, expected: str) -> None:
    assert FRENCH.localize_amount(text) == expected


async def test_french_forms_show_and_take_french_amounts(
    ada: ConsoleClient, harness: Harness
) -> None:
    assert ada.session is not None
    preferences = {"language": "fr"}
    session = BearerAuth(ada.session, "")
    await harness.put("/api/v1/admin/me/preferences", json=preferences, auth=session)
    ada.client.headers["X-Language"] = "fr"  # as htmx sends it from a French page
    agent = await create_agent(harness, balance="0")
    await ada.submit_action("agent.fund", {"amount": "1 234,50"}, id=agent["id"])
    assert (await get_balances(harness, agent))[0] == "1234.50"
    page = await ada.get_page_text(f"/console/agents/{agent['id']}")
    assert f"1{NARROW}234,50{WIDE}SLE" in page
    form = await ada.get_page_text("/console/actions/limits.level_1?kyc_level=1")
    assert ',00"' in form and '.00"' not in form
    rejected = await ada.submit_action("agent.fund", {"amount": "1,234"}, id=agent["id"])
    assert rejected.status_code == 200 and "aria-invalid" in rejected.text
