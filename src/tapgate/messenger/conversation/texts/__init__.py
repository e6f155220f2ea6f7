"""Message catalogs by language. All languages have the same keys and placeholders."""

import re
import unicodedata
from collections.abc import Mapping
from typing import Final

from tapgate.messenger.conversation.texts import en, fr
from tapgate.messenger.model import Language

TEXTS: Final[Mapping[Language, Mapping[str, str]]] = {"en": en.TEXTS, "fr": fr.TEXTS}
#: French "de" becomes "d'" before a vowel.
_ELIDABLE: Final = re.compile(r"\bde (?=\{(\w+)\})")


def translate(language: Language, key: str, **values: object) -> str:
    text = TEXTS[language][key]
    if language == "fr":
        text = _ELIDABLE.sub(lambda match: _get_preposition(str(values[match[1]])), text)
    return text.format_map(values)


def _get_preposition(name: str) -> str:
    first = unicodedata.normalize("NFD", name)[:1].lower()
    return "d'" if first and first in "aeiouœæ" else "de "


def has_text(key: str) -> bool:
    return key in en.TEXTS
