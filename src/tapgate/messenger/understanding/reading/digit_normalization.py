"""Normalization of digits and whitespace."""

import unicodedata

#: Answers are short. Longer texts are not parsed.
MAX_LENGTH = 300


def normalize_digits(text: str) -> str:
    """Apply NFKC, convert digits to ASCII and collapse spaces: `"１ ５００"` becomes `"1 500"`.

    A text that is too long becomes empty.
    """
    if len(text) > MAX_LENGTH:
        return ""
    plain = unicodedata.normalize("NFKC", text)
    digits = "".join(str(unicodedata.digit(char, char)) for char in plain)
    return " ".join(digits.replace("’", "'").split())
