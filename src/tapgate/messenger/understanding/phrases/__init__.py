"""Phrases for each command, by language.

The keywords in `en.py` and `fr.py` work in any state and match literally after normalization. They
include all phrases for yes and no.

The samples in `en.txt` and `fr.txt` match literally too, and so do the Krio ones in `kri.txt`,
which count as English, because Krio is answered in English. Samples and keywords, except those for
yes and no, also serve as references for similarity. Samples under `[]` ask for nothing the
messenger can do. If a phrase is listed under two commands, the messenger asks which one the user
wants.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec

from tapgate.messenger.model import LANGUAGES, Command, Language
from tapgate.messenger.understanding.phrases import en, fr


class Phrase(NamedTuple):
    text: str
    #: None if the phrase asks for nothing the messenger can do.
    command: Command | None
    language: Language


def split_phrases(text: str) -> list[str]:
    """Split a text at semicolons and line breaks into phrases that are not blank."""
    return [phrase for part in re.split(r"[;\n]", text) if (phrase := part.strip())]


def _load_samples(name: str, language: Language) -> Iterator[Phrase]:
    command: Command | None = None
    for line in Path(__file__).with_name(f"{name}.txt").read_text("utf-8").splitlines():
        if line.startswith("["):
            command = msgspec.convert(line[1:-1] or None, Command | None)
        elif line:
            yield Phrase(line, command, language)


_KEYWORDS_BY_LANGUAGE: dict[Language, dict[Command, str]] = {"en": en.KEYWORDS, "fr": fr.KEYWORDS}
#: Phrases that are commands in any state.
KEYWORDS = tuple(
    Phrase(text, command, language)
    for language, keywords in _KEYWORDS_BY_LANGUAGE.items()
    for command, lines in keywords.items()
    for text in split_phrases(lines)
)
#: Phrases for literal and similarity matching.
SAMPLES = (
    *(phrase for language in LANGUAGES for phrase in _load_samples(language, language)),
    *_load_samples("kri", "en"),
)
