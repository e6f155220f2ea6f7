"""Synonyms for option titles in English and French, and the matching of text to options."""

import re
from collections.abc import Iterable
from typing import Final

from tapgate.messenger.model import Option, OptionList
from tapgate.messenger.understanding.normalization import NUMBER_PLACEHOLDER, normalize_text

#: Synonyms by option value. A single-word synonym can also match inside a sentence.
_SYNONYMS: Final = {
    "lost": """lost; loss; missing; misplaced; dropped; i lost it; cannot find it; cant find it
        perdu; perdue; égarée; égaré; je l'ai perdue""",
    "stolen": """stolen; stole; thief; theft; robbed; tief; they stole it; somebody took it
        volé; volée; vol; on me l'a volée; voleur""",
    "damaged": """damaged; broken; it is broken; does not work; abîmée; abîmé; cassée; cassé
        endommagée; elle ne marche plus""",
    "customer_request": """just block it; for now; for a while; temporary; temporarily; other
        block for now; just for now; pour un temps; temporaire; temporairement; autre
        bloquer pour un temps""",
    "id_front": """id; id front; front; front side; identity; passport; national id; voter id
        identité; pièce d'identité; passeport; cni; recto; devant""",
    "id_back": "id back; back side; back of id; other side; verso; dos; arrière; autre côté",
    "selfie": "selfie; picture of me; my face; photo of me; visage; photo de moi; mon visage",
    "proof_of_address": """proof of address; address; bill; utility bill; letter
        preuve d'adresse; adresse; facture; justificatif; justificatif de domicile; domicile""",
    "enough": """enough; done; finished; that is all; thats all; no more; nothing else
        assez; fini; terminé; c'est tout; rien d'autre""",
    "again": "again; retry; try again; encore; réessayer; réessaye",
    "code": "new code; send again; another code; send a new code; nouveau code; renvoyer",
    "phone": "other number; wrong number; another number; autre numéro; mauvais numéro",
    "keep": """keep; save; keep it; save it; keep recipient
        garder; garde; enregistrer; garder le contact""",
}
#: Option values that match when a sentence mentions one of their single-word synonyms.
_VALUES_MATCHED_IN_SENTENCES: Final = frozenset(
    {"lost", "stolen", "damaged", "id_front", "selfie", "proof_of_address"}
)
#: Words that name an option when used alone, but the whole topic inside a sentence.
_AMBIGUOUS_WORDS: Final = frozenset({"id", "identity", "identite"})
_FILLER_WORDS: Final = frozenset(
    normalize_text(word)
    for word in """it is was has been my the a an of i have card kard please pls this its
        la le ma mon elle il est a été c l d de du j ai carte un une s'il vous plaît svp""".split()
)
_NEGATION_WORDS: Final = frozenset("not nt never no nor isnt wasnt ne n pas jamais".split())


def _extract_words(text: str) -> frozenset[str]:
    return frozenset(normalize_text(text).split()) - _FILLER_WORDS


_SYNONYM_WORDS: Final = {
    value: {_extract_words(name) for name in re.split(r"[;\n]", names)} - {frozenset()}
    for value, names in _SYNONYMS.items()
}


def match_option(options: OptionList, text: str) -> Option | None:
    """Return the option that the text names, or None if none or several match."""
    matches = [option for option in options.options if option.title.casefold() == text.casefold()]
    if not matches and NUMBER_PLACEHOLDER not in normalize_text(text):
        message = _extract_words(text)
        matches = [
            option for option in options.options if message and message in _get_synonyms(option)
        ]
    if not matches:
        values = {option.id.rpartition("#")[0]: option for option in options.options}
        value = find_mentioned_value(text, _VALUES_MATCHED_IN_SENTENCES & values.keys())
        return None if value is None else values[value]
    return matches[0] if len(matches) == 1 else None


def find_mentioned_value(text: str, values: Iterable[str]) -> str | None:
    """Return the only value that the sentence mentions, or None. Negated sentences never match."""
    words = _extract_words(text) - _AMBIGUOUS_WORDS
    if words & _NEGATION_WORDS:
        return None
    found = [
        value
        for value in values
        if any(len(name) == 1 and name <= words for name in _SYNONYM_WORDS[value])
    ]
    return found[0] if len(found) == 1 else None


def _get_synonyms(option: Option) -> set[frozenset[str]]:
    value = option.id.rpartition("#")[0]
    if not value:
        # A command option: only the resolver has synonyms for commands.
        return set()
    own = {
        name
        for name in (option.title, value.replace("_", " "))
        if NUMBER_PLACEHOLDER not in normalize_text(name)
    }
    return {*map(_extract_words, own), *_SYNONYM_WORDS.get(value, ())}
