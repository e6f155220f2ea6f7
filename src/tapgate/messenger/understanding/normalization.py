"""Texts brought to one spelling, so that they can be compared.

Accents, case, punctuation, emoji and letters written twice do not count; what holds a digit is
only that, `#`.
"""

import re
import unicodedata

#: More than this of a text is not looked at: it only costs time.
MAX_LENGTH = 320

NUMBER_PLACEHOLDER = "#"
#: Stands for words in other letters: they may say anything, so they must not go unseen.
_FOREIGN_PLACEHOLDER = "¤"

_APOSTROPHES = str.maketrans(dict.fromkeys("’‘`´ʼ＇", "'"))
_ELISION_PATTERN = re.compile(r"\b(qu|[cdjlmnst])'", re.ASCII)
_LIGATURES = str.maketrans({"œ": "oe", "æ": "ae", "ß": "ss", "ɔ": "o", "ɛ": "e", "ŋ": "n"})
_DIGIT_WORD_PATTERN = re.compile(r"\S*\d\S*")
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
    """`"Été, j'envoie 1 500 F!!"` -> `"ete j envoie # f"`"""
    text = text[:MAX_LENGTH].translate(_APOSTROPHES).lower().translate(_LIGATURES)
    letters = "".join(
        sign for sign in unicodedata.normalize("NFKD", text) if not unicodedata.combining(sign)
    )
    letters = _ELISION_PATTERN.sub(r"\1 ", letters[:MAX_LENGTH]).replace("'", "")
    letters = _DIGIT_WORD_PATTERN.sub(f" {NUMBER_PLACEHOLDER} ", letters.replace("#", " "))
    letters = _FOREIGN_LETTERS_PATTERN.sub(
        f" {_FOREIGN_PLACEHOLDER} ", letters.replace(_FOREIGN_PLACEHOLDER, " ")
    )
    words = _NON_LETTER_PATTERN.sub(" ", letters).strip()
    return _REPEATED_NUMBER_PATTERN.sub(
        NUMBER_PLACEHOLDER, _REPEATED_LETTER_PATTERN.sub(r"\1", words)
    )


def to_phonetic(word: str) -> str:
    """What stays of a word in a hurry: `balance`, `balans` and `blnce` are all `blns`."""
    for spelling, heard in _PHONETIC_RULES:
        word = spelling.sub(heard, word)
    return word
