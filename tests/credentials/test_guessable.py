"""What is long and yet easy to guess is told from what is not."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tapgate.credentials.guessable import WORDS, is_guessable

OWN = ("ada.lovelace@analytical.example", "Ada Lovelace")


@pytest.mark.parametrize(
    "password",
    [
        "aaaaaaaaaaaa",
        "121212121212",
        "abcabcabcabc",
        "hunter2hunter2",
        "passwordpassword",
        "123456789012",
        "0987654321098",
        "qwertyuiop12",
        "QWERTYUIOPasdf",
        "1q2w3e4r5t6y",
        "1qaz2wsx3edc",
        "abcdefghijkl",
        "zyxwvutsrqpo",
        "Password1234",
        "P@ssw0rd2024!",
        "!!!Welcome!!!",
        "iloveyou2026",
        "administrator",
        "Admin_123456",
        "Tapgate-2026!",
        "t4pg4te-2026",
        "system_admin1",
        "Lovelace1815",
        "analytical123",
        "ada.lovelace@analytical.example",
        "ADA LOVELACE",
    ],
)
def test_what_is_tried_first(password: str) -> None:
    assert is_guessable(password, OWN)


@pytest.mark.parametrize(
    "password",
    [
        "correct horse battery",
        "a long pass phrase",
        "admin-password-of-mine",
        "Str0ngPassw0rd!",
        "kX9$mQ2vL7pR",
        "x7Kd-22Qm-pa9Z",
        "the wallet is blue",
        "Kamara walks 7 miles",
        "długie hasło dla mnie",
        "非常に長いパスワードです",
    ],
)
def test_what_is_not(password: str) -> None:
    assert not is_guessable(password, OWN)


@given(
    word=st.sampled_from(sorted(WORDS)),
    before=st.text("0123456789!#_ ", max_size=6),
    after=st.text("0123456789!#_ ", max_size=6),
)
def test_no_figures_around_a_word_help(word: str, before: str, after: str) -> None:
    assert is_guessable(f"{before}{word.title()}{after}", ())


@given(st.text(max_size=60), st.lists(st.text(max_size=20), max_size=3))
def test_any_text_is_judged(password: str, own: list[str]) -> None:
    assert is_guessable(password, own) in (True, False)
