"""Detecting texts that may contain a PIN, which must not be stored."""

import sys
from types import FrameType
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from cases import each
from tapgate.messenger.understanding import secret_detection
from tapgate.messenger.understanding.secret_detection import may_contain_pin

PINS = st.from_regex(r"[0-9]{4}", fullmatch=True)


@each(
    "text",
    """4071
    4071.
    4071 !!
    (4071)
    4 0 7 1
    0 0 7 1
    4-0-7-1
    4.0.7.1
    4...0...7...1
    ４０７１
    ٤٠٧١
    ④⓪⑦①
    4️⃣0️⃣7️⃣1️⃣
    𝟜𝟘𝟟𝟙
    pin:4071
    pin4071
    4071pin
    mypin 4071
    P.I.N 4071
    PIN = 4071
    my pin is 4071
    my pin is 4071 send 500
    send 500 to 076123456 pin 4071
    4071 5082
    40 71
    old 4071 new 5082
    change pin 4071 to 5082
    pin 40715082
    mon code est 4071
    code secret : 4071
    mot de passe 4071
    mot\u00a0de\u00a0passe 4071
    le code reçu est 123456
    my otp 123456
    yes 4071
    oui 4071
    it's 4071
    4071 thanks
    thank you, 4071
    4071 go ahead
    i said 4071
    sorry 4071
    c'est bien 4071
    4071 merci beaucoup
    j'ai dit 4071
    4071 +
    send 5 to DEMO-000002 4071
    send 5 to 076123456 4071
    pay 5.50 to demo-000002, 4071 5082
    envoie 500 à la carte CARD-9 4071
    4\u200b0\u200b7\u200b1""".splitlines(),
)
def test_text_with_a_possible_pin_is_withheld(text: str) -> None:
    assert may_contain_pin(text.strip())


@each(
    "text",
    """send 1500 to +23276123456
    1500 le
    Le 1500
    1500 SLE
    1,500
    15.00
    1500 francs
    send 1500 to 076 123 456
    send 1500 to +232 76 12 3456
    send to CARD-123 1500
    envoie 2000 à la carte CARD-123
    envoyer 1500 au 076123456
    500
    12
    076123456
    +23276123456
    change my pin
    i forgot my code
    hello
    statement 2026-10-01 to 2026-10-31
    the pinch of 4071 grains was enough
    """.splitlines(),
)
def test_text_without_a_pin_is_kept(text: str) -> None:
    assert not may_contain_pin(text.strip())


@given(
    PINS,
    st.sampled_from(["", " ", "!", "...", "🙏", "?\n", " - "]),
    st.sampled_from(["", " ", "."]),
)
def test_pin_alone_is_withheld_with_any_decoration(pin: str, around: str, between: str) -> None:
    assert may_contain_pin(around + between.join(pin) + around)


@given(
    PINS,
    st.sampled_from(["pin", "PIN", "code", "secret", "mot de passe", "password", "OTP"]),
    st.text(alphabet="abc xyz,.!", max_size=30),
    st.sampled_from([" ", ": ", " is ", " est ", "=", "-"]),
)
def test_pin_next_to_a_word_for_pin_is_withheld(
    pin: str, word: str, before: str, separator: str
) -> None:
    for text in (f"{before} {word}{separator}{pin} {before}", f"{before} {pin} {word} {before}"):
        assert may_contain_pin(text)


@given(st.text(alphabet=st.characters(exclude_categories=["N"]), max_size=200))
def test_text_without_digits_is_kept(text: str) -> None:
    assert not may_contain_pin(text)


@given(PINS, st.text(max_size=200))
def test_oversized_text_ending_in_a_pin_is_withheld(pin: str, text: str) -> None:
    assert may_contain_pin(text + "a" * 4096 + pin)


@given(st.integers(1000, 9999), st.sampled_from(["le", "SLE", "leones", "francs", "FCFA"]))
def test_amounts_with_a_currency_are_kept(amount: int, currency: str) -> None:
    for text in (f"{amount} {currency}", f"send {amount} to +23276123456", f"{currency} {amount}"):
        assert not may_contain_pin(text)


def test_long_text_is_withheld_only_if_it_contains_digits() -> None:
    assert may_contain_pin("a" * 5000 + "1")
    assert not may_contain_pin("a" * 5000)
    assert may_contain_pin("pin " * 1000 + "4071")


def find_near_words(text: str) -> bool:
    """Model: compare every digit run with every word."""
    module: Any = secret_detection
    runs = [
        match.span()
        for match in module.DIGIT_RUN_PATTERN.finditer(text)
        if module.could_be_secret(match[0])
    ]
    words = [match.span() for match in module.SECRET_WORD_PATTERN.finditer(text)]
    return any(
        run[0] - word[1] <= module.MAX_DISTANCE and word[0] - run[1] <= module.MAX_DISTANCE
        for run in runs
        for word in words
    )


PARTS = st.sampled_from(["pin", "code", "4071", "123456", "12", "pinch", "x", " " * 25, "y " * 31])


@given(st.lists(PARTS, max_size=30))
def test_nearest_word_decides_as_all_words_would(parts: list[str]) -> None:
    text = " ".join(parts)
    assert secret_detection.has_digits_near_secret_word(text) == find_near_words(text)


def count_lines(text: str) -> int:
    """Return how many lines of the detection run for a text."""
    count = 0

    def trace(frame: FrameType, event: str, _argument: object) -> Any:
        nonlocal count
        if frame.f_code.co_filename != secret_detection.__file__:
            return None
        count += event == "line"
        return trace

    previous = sys.gettrace()
    sys.settrace(trace)
    try:
        assert not secret_detection.has_digits_near_secret_word(text)
    finally:
        sys.settrace(previous)
    return count


def test_work_grows_with_the_length_of_the_text() -> None:
    """Comparing all digits with all words would take four times the work for twice the length."""
    text = {size: "pin " * size + "x" * 100 + " 4071x" * size for size in (1000, 2000)}
    assert count_lines(text[2000]) < 2.2 * count_lines(text[1000])
