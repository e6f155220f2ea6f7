"""People's names, and the number of something in a list."""

import re

from tapgate.messenger.understanding.reading.digits import tidy

_ASIDE = re.compile(
    r"^(?:my (?:full )?name is|name is|i am|i'm|im|it is|call me|mi name na|a name|je m'appelle"
    r"|je mappelle|mon nom est|mon nom c'est|je suis|c'est|moi c'est)\s+",
    re.IGNORECASE,
)
_LONGEST_NAME = 60
_NUMBER = re.compile(
    r"(?:no\.?|n°|number|numéro|numero|option|the|le|la|#)?\s*([0-9]{1,3})\s*[.)!]*", re.I
)
_IN_WORDS = {
    word: figure
    for figure, words in enumerate(
        """one first un une premier première premiere|two second deux deuxième deuxieme
        |three third trois troisième troisieme|four fourth quatre quatrième quatrieme
        |five fifth cinq cinquième cinquieme|six sixth sixième sixieme|seven seventh sept septième
        |eight eighth huit huitième|nine ninth neuf neuvième|ten tenth dix dixième""".split("|"),
        start=1,
    )
    for word in words.split()
}


def person_names(text: str) -> tuple[str, str] | None:
    """`"Aminata Bah Kamara"` -> `("Aminata", "Bah Kamara")`"""
    words = _ASIDE.sub("", tidy(text)).strip(" .,!").split(" ")
    if not 2 <= len(words) <= 6 or not all(map(_is_name, words)):
        return None
    first, last = words[0], " ".join(words[1:])
    return (first, last) if max(len(first), len(last)) <= _LONGEST_NAME else None


def _is_name(word: str) -> bool:
    letters = word.replace("-", "").replace("'", "").replace(".", "")
    return letters.isalpha() and word[0].isalpha()


def number(text: str) -> int | None:
    """`"2"`, `"2."`, `"number 2"`, `"deux"` -> 2"""
    said = tidy(text).lower()
    match = _NUMBER.fullmatch(said)
    if match is not None:
        return int(match[1])
    words = said.strip(" .!").split()
    if words and words[0] in {"the", "number", "option", "le", "la", "numéro", "numero"}:
        words = words[1:]
    return _IN_WORDS.get(words[0]) if len(words) == 1 else None
