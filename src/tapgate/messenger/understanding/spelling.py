"""Texts brought to one spelling, so that they can be compared.

Accents, case, punctuation, emoji and letters written twice do not count; what holds a digit is
only that, `#`.
"""

import re
import unicodedata

#: More than this of a text is not looked at: it only costs time.
LONGEST = 320

NUMBER = "#"
#: Stands for words in other letters: they may say anything, so they must not go unseen.
_FOREIGN = "¤"

_APOSTROPHES = str.maketrans(dict.fromkeys("’‘`´ʼ＇", "'"))
_ELISION = re.compile(r"\b(qu|[cdjlmnst])'", re.ASCII)
_LIGATURES = str.maketrans({"œ": "oe", "æ": "ae", "ß": "ss", "ɔ": "o", "ɛ": "e", "ŋ": "n"})
_HOLDS_A_DIGIT = re.compile(r"\S*\d\S*")
_OTHER_LETTERS = re.compile(r"[^\W\d_a-z]+")
_NOT_A_LETTER = re.compile(r"[^a-z#¤]+")
_REPEATED = re.compile(r"([a-z])\1+")
_NUMBERS = re.compile(r"#(?: #)+")

_SOUNDS = (
    (re.compile("ph"), "f"),
    (re.compile("c(?=[eiy])"), "s"),
    (re.compile("qu?|c(?!h)|ck"), "k"),
    (re.compile("z"), "s"),
    (re.compile("(?<=.)[aeiouyhw]"), ""),
    (re.compile(r"(.)\1+"), r"\1"),
)


def plain(text: str) -> str:
    """`"Été, j'envoie 1 500 F!!"` -> `"ete j envoie # f"`"""
    text = text[:LONGEST].translate(_APOSTROPHES).lower().translate(_LIGATURES)
    letters = "".join(
        sign for sign in unicodedata.normalize("NFKD", text) if not unicodedata.combining(sign)
    )
    letters = _ELISION.sub(r"\1 ", letters[:LONGEST]).replace("'", "")
    letters = _HOLDS_A_DIGIT.sub(f" {NUMBER} ", letters.replace("#", " "))
    letters = _OTHER_LETTERS.sub(f" {_FOREIGN} ", letters.replace(_FOREIGN, " "))
    words = _NOT_A_LETTER.sub(" ", letters).strip()
    return _NUMBERS.sub(NUMBER, _REPEATED.sub(r"\1", words))


def sound(word: str) -> str:
    """What stays of a word in a hurry: `balance`, `balans` and `blnce` are all `blns`."""
    for spelling, heard in _SOUNDS:
        word = spelling.sub(heard, word)
    return word
