"""Rejection of weak passwords and secrets."""

from hypothesis import given
from hypothesis import strategies as st

from cases import each
from tapgate.core.password_strength import is_weak_password, is_weak_secret

PERSONAL = ("ada.lovelace@analytical.example", "Ada Lovelace")


@each(
    "password",
    [
        "aaaaaaaaaaaa",
        "abcabcabcabc",
        "hunter2hunter2",
        "passwordpassword",
        "123456789012",
        "qwertyuiop12",
        "1qaz2wsx3edc",
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
        "ab" * 120,
    ],
)
def test_guessable_password_is_weak(password: str) -> None:
    assert is_weak_password(password, PERSONAL)


@each(
    "password",
    [
        "correct horse battery",
        "admin-password-of-mine",
        "kX9$mQ2vL7pR",
        "the wallet is blue",
        "Kamara walks 7 miles",
        "d\u0142ugie has\u0142o dla mnie",
        "\u975e\u5e38\u306b\u9577\u3044\u30d1\u30b9\u30ef\u30fc\u30c9\u3067\u3059",
    ],
)
def test_unrelated_words_and_random_characters_are_strong(password: str) -> None:
    assert not is_weak_password(password, PERSONAL)


@each("secret", ["secret", "x" * 64, "changeme" * 8, "password1234567890"])
def test_guessable_secret_is_weak(secret: str) -> None:
    assert is_weak_secret(secret)


@given(st.binary(min_size=16, max_size=48))
def test_random_secret_is_strong(secret: bytes) -> None:
    """Inputs with few different bytes are excluded, because they are not random."""
    assert is_weak_secret(secret.hex()) is False or len(set(secret)) < 14


@given(st.text(max_size=255), st.lists(st.text(max_size=20), max_size=3))
def test_any_text_can_be_checked(password: str, personal: list[str]) -> None:
    assert is_weak_password(password, personal) in (True, False)
