"""Numbers in words: reading them as digits, and refusing ambiguous ones."""

from hypothesis import given
from hypothesis import strategies as st

from cases import each
from growth import measure_growth
from tapgate.messenger.understanding.number_words import AMBIGUOUS_NUMBER, write_digits

ENGLISH = (
    "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen "
    "sixteen seventeen eighteen nineteen"
).split()
ENGLISH_TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split()
FRENCH = (
    "un deux trois quatre cinq six sept huit neuf dix onze douze treize quatorze quinze seize "
    "dix-sept dix-huit dix-neuf"
).split()
FRENCH_TENS = {2: "vingt", 3: "trente", 4: "quarante", 5: "cinquante", 6: "soixante"}
KRIO = "wan tu tri fo fayv siks sɛvin et nayn".split()


def spell_english(number: int) -> str:
    if number >= 1000:
        rest = f" {spell_english(number % 1000)}" if number % 1000 else ""
        return f"{spell_english(number // 1000)} thousand{rest}"
    if number >= 100:
        rest = f" and {spell_english(number % 100)}" if number % 100 else ""
        return f"{ENGLISH[number // 100 - 1]} hundred{rest}"
    if number < 20:
        return ENGLISH[number - 1]
    rest = f"-{ENGLISH[number % 10 - 1]}" if number % 10 else ""
    return ENGLISH_TENS[number // 10 - 2] + rest


def spell_french(number: int) -> str:
    if number >= 1000:
        head = "" if number // 1000 == 1 else f"{spell_french(number // 1000)} "
        return f"{head}mille {spell_french(number % 1000) if number % 1000 else ''}".strip()
    if number >= 100:
        head = "" if number // 100 == 1 else f"{FRENCH[number // 100 - 1]} "
        return f"{head}cent {spell_french(number % 100) if number % 100 else ''}".strip()
    if number < 20:
        return FRENCH[number - 1]
    if number >= 80:
        return "quatre-vingts" if number == 80 else f"quatre-vingt-{FRENCH[number - 81]}"
    tens, rest = (6, number - 60) if number >= 60 else divmod(number, 10)
    if not rest:
        return FRENCH_TENS[tens]
    return f"{FRENCH_TENS[tens]}{' et ' if rest in (1, 11) else '-'}{FRENCH[rest - 1]}"


@given(st.integers(10, 999_999))
def test_number_in_english_or_french_words_is_read(number: int) -> None:
    assert write_digits(f"send {spell_english(number)} to Fatu") == f"send {number} to Fatu"
    assert write_digits(f"envoie {spell_french(number)} à Fatu") == f"envoie {number} à Fatu"


@given(st.integers(1, 9), st.integers(1, 9))
def test_krio_hundreds_and_thousands_are_read(thousands: int, hundreds: int) -> None:
    text = f"sɛn {KRIO[thousands - 1]} tawzin {KRIO[hundreds - 1]} ɔndrɛd gi Fatu"
    assert write_digits(text) == f"sɛn {thousands}{hundreds}00 gi Fatu"


@each(
    "text, expected",
    [
        ("20k", "20000"),
        ("20 K leones", "20000 leones"),
        ("2.5k", "2500"),
        ("2,5k", "2500"),
        ("5 thousand", "5000"),
        ("2 thousand 500", "2500"),
        ("a hundred and twenty", "120"),
        ("fifteen hundred", "1500"),
        ("soixante et onze", "71"),
        ("a wan sɛn tu oondrɛd fɔ mi mama", "a wan sɛn 200 fɔ mi mama"),
        ("one tawzin", "1000"),
        ("send fifty to A and twenty to B", "send 50 to A and 20 to B"),
    ],
)
def test_short_and_mixed_forms_are_read(text: str, expected: str) -> None:
    assert write_digits(text) == expected


@each(
    "text",
    [
        "two fifty",
        "five or six hundred",
        "half a million",
        "about fifty",
        "50 cents",
        "fifty 2",
        "500 20k",
        "twenty thirty",
        "twɛnti fo",
        "deux thousand",
        "2.505 thousand",
        "five hundred hundred",
        "minus fifty",
        "environ deux cents",
    ],
)
def test_ambiguous_number_becomes_a_placeholder(text: str) -> None:
    written = write_digits(text)
    assert AMBIGUOUS_NUMBER in written or written == text


@each(
    "text",
    [
        "this one",
        "sɛn am tu Fatu",
        "un ami",
        "a wan sɛn mɔni",
        "ok k",
        "1k5",
        "2,500k",
        "1.500k",
        "send 500 to 076 123 456",
        "six cents",
        "AM-2201",
    ],
)
def test_other_words_and_digits_stay(text: str) -> None:
    assert write_digits(text) == text


def test_lone_small_number_is_read_only_in_an_answer() -> None:
    assert write_digits("five") == "five"
    assert write_digits("five", is_answer=True) == "5"


@each("unit", ["one ", "1 ", "1k ", "a ", "thousand ", "and "])
def test_reading_takes_time_linear_in_the_text(unit: str) -> None:
    assert measure_growth(write_digits, unit, 20) < 8
