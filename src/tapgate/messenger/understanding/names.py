"""Parsers for person names and list numbers."""

import re

from tapgate.messenger.understanding.normalization import normalize_digits
from tapgate_client.names import is_person_name

_FILLER_PATTERN = re.compile(
    r"^(?:my (?:full )?name is|name is|i am|i'm|im|it is|call me|mi name na|a name|je m'appelle"
    r"|je mappelle|mon nom est|mon nom c'est|je suis|c'est|moi c'est)\s+",
    re.IGNORECASE,
)
_NUMBER_PATTERN = re.compile(
    r"(?:no\.?|n°|number|numéro|numero|option|the|le|la|#)?\s*([0-9]{1,3})\s*[.)!]*", re.I
)
_NUMBER_WORDS = {
    word: number
    for number, words in enumerate(
        """one first un une premier première premiere|two second deux deuxième deuxieme
        |three third trois troisième troisieme|four fourth quatre quatrième quatrieme
        |five fifth cinq cinquième cinquieme|six sixth sixième sixieme|seven seventh sept septième
        |eight eighth huit huitième|nine ninth neuf neuvième|ten tenth dix dixième""".split("|"),
        start=1,
    )
    for word in words.split()
}


def parse_person_names(text: str) -> tuple[str, str] | None:
    """Split a full name: `"Aminata Bah Kamara"` becomes `("Aminata", "Bah Kamara")`.

    Return None unless the text consists of two to six words that the gateway accepts as a name.
    """
    words = _FILLER_PATTERN.sub("", normalize_digits(text)).strip(" .,!").split(" ")
    if not 2 <= len(words) <= 6 or not all(word[:1].isalpha() for word in words):
        return None
    first, last = words[0], " ".join(words[1:])
    return (first, last) if is_person_name(first) and is_person_name(last) else None


def parse_list_number(text: str) -> int | None:
    """Parse the number of a list item: `"2"`, `"2."`, `"number 2"` and `"deux"` are all 2."""
    message = normalize_digits(text).lower()
    match = _NUMBER_PATTERN.fullmatch(message)
    if match is not None:
        return int(match[1])
    words = message.strip(" .!").split()
    if words and words[0] in {"the", "number", "option", "le", "la", "numéro", "numero"}:
        words = words[1:]
    return _NUMBER_WORDS.get(words[0]) if len(words) == 1 else None
