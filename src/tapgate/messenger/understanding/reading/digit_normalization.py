"""Texts with their digits and spaces in one form."""

import unicodedata

#: What people are asked for is short; more is not read.
MAX_LENGTH = 300


def normalize_digits(text: str) -> str:
    """`"１ ５００"` -> `"1 500"`: NFKC, and one plain space for each run of them."""
    if len(text) > MAX_LENGTH:
        return ""
    plain = unicodedata.normalize("NFKC", text)
    digits = "".join(str(unicodedata.digit(sign, sign)) for sign in plain)
    return " ".join(digits.replace("’", "'").split())
