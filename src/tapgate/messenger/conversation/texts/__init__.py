"""Message catalogs by language. All languages have the same keys and placeholders."""

from collections.abc import Mapping
from typing import Final

from tapgate.messenger.conversation.texts import en, fr
from tapgate.messenger.model import Language

TEXTS: Final[Mapping[Language, Mapping[str, str]]] = {"en": en.TEXTS, "fr": fr.TEXTS}


def translate(language: Language, key: str, **values: object) -> str:
    return TEXTS[language][key].format_map(values)


def has_text(key: str) -> bool:
    return key in en.TEXTS
