"""Phrases for each command, by language.

`keywords/` has texts that are commands in any state, and all phrases for yes and no. `samples/` has
further texts for each command; those under `[]` ask for nothing the messenger can do. Both match
word for word after normalization and, except for yes and no, serve as references for similarity. If
a phrase is listed under two commands, the messenger asks which one the person wants. Krio phrases
count as English, because Krio is answered in English.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from tapgate.messenger.model import LANGUAGES, Command, Language
from tapgate.messenger.understanding.normalization import normalize_text
from tapgate.messenger.understanding.word_lists import read_entries

_FOLDER: Final = Path(__file__).parent
_KEYWORDS: Final = {
    language: dict(read_entries(_FOLDER / f"keywords/{language}.txt")) for language in LANGUAGES
}


class Phrase(NamedTuple):
    text: str
    #: None if the phrase asks for nothing the messenger can do.
    command: Command | None
    language: Language


def _load_keywords(language: Language) -> Iterator[Phrase]:
    for name, texts in _KEYWORDS[language].items():
        if name != "farewell":
            command = msgspec.convert("menu" if name == "greeting" else name, Command)
            yield from (Phrase(text, command, language) for text in texts)


def _load_samples(name: str, language: Language) -> Iterator[Phrase]:
    command: Command | None = None
    for line in (_FOLDER / f"samples/{name}.txt").read_text("utf-8").splitlines():
        if line.startswith("["):
            command = msgspec.convert(line[1:-1] or None, Command | None)
        elif line:
            yield Phrase(line, command, language)


def _normalize_keywords(name: str) -> frozenset[str]:
    return frozenset(normalize_text(text) for texts in _KEYWORDS.values() for text in texts[name])


#: Normalized texts that are small talk.
GREETINGS: Final = _normalize_keywords("greeting")
FAREWELLS: Final = _normalize_keywords("farewell")
#: Phrases that are commands in any state.
KEYWORDS: Final = tuple(phrase for language in LANGUAGES for phrase in _load_keywords(language))
#: Phrases for literal and similarity matching.
SAMPLES: Final = (
    *(phrase for language in LANGUAGES for phrase in _load_samples(language, language)),
    *_load_samples("kri", "en"),
)
