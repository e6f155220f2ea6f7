"""Texts of the chat and its forms, with one data file per language.

All languages have the same keys, and a text has the same placeholders in every language.
"""

import re
import unicodedata
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec

from tapgate.messenger.model import LANGUAGES, Language

TEXTS: Final[Mapping[Language, Mapping[str, str]]] = {
    language: msgspec.toml.decode(
        Path(__file__).with_name(f"{language}.toml").read_bytes(), type=dict[str, str]
    )
    for language in LANGUAGES
}
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
    return key in TEXTS["en"]
