"""Text normalization for comparison.

It drops accents, case, punctuation, emoji and repeated letters. Consecutive words that contain a
digit become one `#`, and a word in another script becomes `¤`.
"""

import re
import unicodedata
from functools import lru_cache

#: Longer texts are truncated to bound the processing time.
MAX_LENGTH = 320

#: Answers are short. Longer texts are not parsed.
_MAX_ANSWER_LENGTH = 300
NUMBER_PLACEHOLDER = "#"
#: Replaces words in other scripts. They may mean anything, so they must not be dropped.
_FOREIGN_PLACEHOLDER = "¤"

_APOSTROPHES = str.maketrans(dict.fromkeys("’‘`´ʼ＇", "'"))
_WOULD_PATTERN = re.compile(r"\bi'd\b", re.ASCII)
_ELISION_PATTERN = re.compile(r"\b(qu|[cdjlmnst])'", re.ASCII)
_LIGATURES = str.maketrans({"œ": "oe", "æ": "ae", "ß": "ss", "ɔ": "o", "ɛ": "e", "ŋ": "ng"})
_DIGIT_PATTERN = re.compile(r"\d")
_FOREIGN_LETTERS_PATTERN = re.compile(r"[^\W\d_a-z]+")
_NON_LETTER_PATTERN = re.compile(r"[^a-z#¤]+")
_REPEATED_LETTER_PATTERN = re.compile(r"([a-z])\1+")
_REPEATED_NUMBER_PATTERN = re.compile(r"#(?: #)+")

_PHONETIC_RULES = (
    (re.compile("ph"), "f"),
    (re.compile("c(?=[eiy])"), "s"),
    (re.compile("qu?|c(?!h)|ck"), "k"),
    (re.compile("z"), "s"),
    (re.compile("(?<=.)[aeiouyhw]"), ""),
    (re.compile(r"(.)\1+"), r"\1"),
)


def normalize_text(text: str) -> str:
    """Normalize a text: `"Été, j'envoie 1 500 F!!"` becomes `"ete j envoie # f"`."""
    text = text[:MAX_LENGTH].translate(_APOSTROPHES).lower().translate(_LIGATURES)
    letters = "".join(
        char for char in unicodedata.normalize("NFKD", text) if not unicodedata.combining(char)
    )
    letters = _WOULD_PATTERN.sub("i would", letters[:MAX_LENGTH])
    letters = _ELISION_PATTERN.sub(r"\1 ", letters).replace("'", "")
    letters = " ".join(
        NUMBER_PLACEHOLDER if _DIGIT_PATTERN.search(word) else word
        for word in letters.replace(NUMBER_PLACEHOLDER, " ").split()
    )
    letters = _FOREIGN_LETTERS_PATTERN.sub(
        f" {_FOREIGN_PLACEHOLDER} ", letters.replace(_FOREIGN_PLACEHOLDER, " ")
    )
    words = _NON_LETTER_PATTERN.sub(" ", letters).strip()
    return _REPEATED_NUMBER_PATTERN.sub(
        NUMBER_PLACEHOLDER, _REPEATED_LETTER_PATTERN.sub(r"\1", words)
    )


@lru_cache(maxsize=4096)
def to_phonetic(word: str) -> str:
    """Return a word's phonetic key: `balance`, `balans` and `blnce` all become `blns`."""
    for pattern, replacement in _PHONETIC_RULES:
        word = pattern.sub(replacement, word)
    return word


def normalize_digits(text: str) -> str:
    """Apply NFKC, convert digits to ASCII and collapse spaces: `"１ ５００"` becomes `"1 500"`.

    A text that is too long becomes empty.
    """
    if len(text) > _MAX_ANSWER_LENGTH:
        return ""
    plain = unicodedata.normalize("NFKC", text)
    if len(plain) > _MAX_ANSWER_LENGTH:  # some characters expand to a sentence
        return ""
    digits = "".join(str(unicodedata.digit(char, char)) for char in plain)
    return " ".join(digits.replace("’", "'").split())
