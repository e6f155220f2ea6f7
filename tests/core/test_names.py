"""Names have no room for a link, and stored names that do are cleaned for display."""

import re

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cases import each
from growth import measure_growth
from tapgate.core import public_names
from tapgate_client import names
from tapgate_client.schemas.fields import BusinessNameRule, InvalidValueError, PersonNameRule

LINK = "https://evil.example/win"
PERSON_NAMES = [
    *("Aminata", "N'Guessan", "N’Dour", "Jean-Pierre", "J.-P.", "St. John", "Kamara Jr.", "’Abd"),
    *("Zoë", "Ze\u0301", "محمد", "राम कुमार", "Ọlá", "王", "O", "a" * 60),
]
BUSINESS_NAMES = ["Kamara & Sons", "Shop 24", "7", "Bah 2 Ltd."]
INVALID_NAMES = [
    *(LINK, "evil.example", "t.me", "a.b", "www.evil.example", "me@evil.example", "bit.ly/x"),
    *("Aminata\nKamara", "Aminata\n", "A\r\nB", "A\tB", "A\u2028B", "A\u00a0B", "A\u202eB", "A\0B"),
    *(
        "",
        " ",
        "'",
        "-",
        ".",
        " . ",
        "..",
        "A..",
        ".A",
        "\u0301a",
        "\u3164",
        "A #2",
        "A (B)",
        "A, B",
    ),
    *("A:B", "A_B", "A*B*", "A。B", "A．B", "a" * 61, "🎉"),
]
#: Letters with several marks: Vietnamese, Yoruba, polytonic Greek, Arabic, Hebrew, Thai, Hindi,
#: Tamil, Amharic, Burmese, Tibetan and Khmer.
NAMES_WITH_MARKS = [
    *("Nguyễn Thị Thuỷ", "Nguye\u0302\u0303n Tie\u0302\u0301n Du\u031b\u0323ng"),
    *("Ọládẹ̀lé", "O\u0323\u0301la\u0301 Ṣo\u0323\u0300lá", "\u1f84ννα", "α\u0313\u0301\u0345ννα"),
    *("مُحَمَّد", "عَبْدُ اللّٰه", "שָׁלוֹם", "ש\u05c1\u05bc\u05b8", "น้ำทิพย์", "กิ่งแก้ว"),
    *("लक्ष्मी", "ज़ैंब", "மீனாட்சி", "አበበ ቢቂላ", "ကျော်", "မြို့", "བསྒྲུབས", "សុភ័ក្ត្រ"),
]
MISLEADING_NAMES = [
    *("A" + "\u0336" * 4, "A" + "\u0336" * 59, "Ama\u0301\u0302\u0303\u0304 Bah"),
    *("A\u20dd", "A\u0489", "A\u20dd\u0301"),
    *(f"A{mark}B" for mark in "\u034f\u17b4\u17b5\u180b\u180f\ufe00\ufe0f\U000e0100\U000e01ef"),
    *(f"evil{dot}com" for dot in "\ua4f8\ua4f9\ua4fa\ua4fb\ua4fc\ua4fd\U0001d16d\u2024\ufe52"),
    *(f"evil{slash}pay" for slash in "\u2cc6\u3031\u3033\u3034\u3035"),
]
LINK_PATTERN = re.compile(r"[/:@\n\r]|\w\.\w")
TEXTS = st.text(max_size=255) | st.from_regex(
    r"(Win |Call 076123456 |\n)?(https?://|www\.)?[a-z]{2,8}\.(com|sl|example)(/[a-z]*)?( now)?",
    fullmatch=True,
)


def is_valid(rule: PersonNameRule, text: str) -> bool:
    try:
        rule.check(text)
    except InvalidValueError:
        return False
    return True


@each("name", PERSON_NAMES + NAMES_WITH_MARKS)
def test_names_of_people_are_accepted_everywhere(name: str) -> None:
    assert PersonNameRule().check(f" {name}"[-60:]) == name
    assert BusinessNameRule().check(name) == name
    assert public_names.clean_person_name(name) == name


@each("name", BUSINESS_NAMES)
def test_digits_and_ampersands_are_only_for_businesses(name: str) -> None:
    assert BusinessNameRule().check(name) == name
    with pytest.raises(InvalidValueError):
        PersonNameRule().check(name)


@each("name", INVALID_NAMES + MISLEADING_NAMES)
def test_links_line_breaks_and_other_characters_are_rejected(name: str) -> None:
    for rule in (PersonNameRule(), BusinessNameRule()):
        with pytest.raises(InvalidValueError) as raised:
            rule.check(name)
        found = (
            name == "" or name.isspace() or len(name) < 3 or name not in str(raised.value.problems)
        )
        assert found


@given(TEXTS)
def test_openapi_pattern_accepts_every_valid_name(text: str) -> None:
    for rule in (PersonNameRule(), BusinessNameRule()):
        schema = {"type": "string", **rule.to_json_schema()}
        if is_valid(rule, text):
            assert jsonschema_rs.is_valid(schema, text)
            assert re.search(schema["pattern"], text)  # also without Unicode classes


@each("name", [LINK, "evil.example", "t.me", "A\nB", "A #2", "A:B", "me@evil.example"])
def test_openapi_pattern_rejects_links_and_line_breaks(name: str) -> None:
    for rule in (PersonNameRule(), BusinessNameRule()):
        assert not jsonschema_rs.is_valid({"type": "string", **rule.to_json_schema()}, name)


@given(TEXTS)
def test_cleaned_name_is_a_valid_name_or_unknown(text: str) -> None:
    person, business = public_names.clean_person_name(text), public_names.clean_business_name(text)
    assert person == "?" or names.is_person_name(person)
    assert business == "?" or names.is_business_name(business)
    assert public_names.clean_person_name(person) == person
    if names.is_person_name(text):
        assert person == " ".join(text.split())


@given(TEXTS, TEXTS)
def test_nothing_shown_to_others_has_a_link(first: str, last: str) -> None:
    for shown in (
        public_names.build_public_name(first, last),
        public_names.mask_person_name(first),
        public_names.get_public_agent_name(first, None),
        public_names.get_public_agent_name(first, last),
        public_names.get_counterparty_name(None, first, is_person=True),
    ):
        assert LINK_PATTERN.search(shown) is None, shown
        assert len(shown) <= names.MAX_NAME_LENGTH + 5


@each(
    "stored, shown",
    [
        (f"Visit {LINK} now", "Visit now"),
        ("Kamara,Jr", "Kamara Jr"),
        ("Aminata\nKamara", "Aminata Kamara"),
        ("Amy 2", "Amy"),
        (LINK, "?"),
        ("*Support*", "Support"),
        ("Ama\u0301\u0302\u0303\u0304\u0336 Bah", "Ama\u0301\u0302\u0303 Bah"),
        ("Ama evil\ua4f8com", "Ama evil com"),
        ("Ama evil\u2024com", "Ama"),
    ],
)
def test_stored_name_is_cleaned_for_display(stored: str, shown: str) -> None:
    assert public_names.clean_person_name(stored) == shown


@each(
    "first, last, shown",
    [
        ("Aminata", "Kamara", "Aminata K."),
        ("Mary Ann", "Kamara Sesay", "Mary Ann K."),
        ("Ama", "'Abd", "Ama A."),
        ("राम", "कुमार", "राम कु."),
        ("Ama", LINK, "Ama"),
    ],
)
def test_public_name_has_one_initial(first: str, last: str, shown: str) -> None:
    assert public_names.build_public_name(first, last) == shown


@each(
    "text, shown",
    [
        ("Rent for May, 5.50 e.g. now.", "Rent for May, 5.50 e.g. now."),
        (f"Prize:\n{LINK}", "Prize: …"),
        ("At 10.0.0.1/x or evil。example", "At … or …"),
        ("May/June: rent", "May/June: rent"),
        ("see evil.example or me@evil.example", "see … or …"),
        ("a\u202eb", "a b"),
        ("Pay evil\u2024com/pay, evil\ufe52com, evil．com, evil｡com", "Pay … … … …"),
        ("Pay https：／／x me＠evil ⓔⓥⓘⓛ.ⓒⓞⓜ", "Pay … … …"),
        ("Pay evil.\u034fcom e.c\u0301om 1２7.0.0.1 000127.0.0.1", "Pay … … … …"),
        ("Loyer…Merci ❤️ 5 ㎏ à 9 ㏂", "Loyer…Merci ❤️ 5 ㎏ à 9 ㏂"),
    ],
)
def test_links_are_hidden_in_texts_for_others(text: str, shown: str) -> None:
    assert public_names.hide_links(text) == shown


@each(
    "unit",
    [
        *("a", "a.", "1.", ":/", "@", "1", "-", "-.", "1.1.", ":", "/", "a ", "é", "é.", "\u0663."),
        *("\u0336", "\u0336\u0323", "\u2024", "\ufdfa", "\u33c2", "\u3316", "\ufe0f", "\uff9e"),
    ],
)
def test_hiding_links_takes_time_linear_in_the_text(unit: str) -> None:
    assert measure_growth(public_names.hide_links, unit, 250) < 8


@each(
    "merchant_name, shown",
    [
        ("Kamara Stores, Aberdeen", "Kamara Stores, Aberdeen"),
        ("Kamara\n Stores", "Kamara Stores"),
        (f"Refund at {LINK}", "Refund at …"),
        (LINK, "Kamara"),
        (None, "Kamara"),
        ("x" * 255, "x" * 60),
    ],
)
def test_merchant_name_of_a_payment_is_cleaned(merchant_name: str | None, shown: str) -> None:
    assert public_names.get_counterparty_name(merchant_name, "Kamara", is_person=False) == shown
