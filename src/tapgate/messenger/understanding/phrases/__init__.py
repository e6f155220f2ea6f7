"""What people write for each command, by language.

The words of `en.py` and `fr.py` are taken literally and nothing else is (but for their spelling):
those that work anywhere, and everything that says yes or no. The samples of `en.txt` and `fr.txt`
are also what other texts are compared with; those under `[]` ask for nothing that the messenger
could do. A phrase that stands under two commands makes the messenger ask which one was meant.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec

from tapgate.messenger.model.common import LANGUAGES, Command, Language
from tapgate.messenger.understanding.phrases import en, fr


class Phrase(NamedTuple):
    text: str
    #: None: asks for nothing that the messenger could do.
    command: Command | None
    language: Language


def _iterate_keywords(language: Language, words: dict[Command, str]) -> Iterator[Phrase]:
    for command, listed in words.items():
        for line in listed.strip().splitlines():
            for word in line.split(";"):
                if word.strip():
                    yield Phrase(word.strip(), command, language)


def _load_samples(language: Language) -> Iterator[Phrase]:
    command: Command | None = None
    for line in Path(__file__).with_name(f"{language}.txt").read_text("utf-8").splitlines():
        if line.startswith("["):
            command = msgspec.convert(line[1:-1] or None, Command | None)
        elif line:
            yield Phrase(line, command, language)


#: Taken literally.
KEYWORDS = (*_iterate_keywords("en", en.KEYWORDS), *_iterate_keywords("fr", fr.KEYWORDS))
#: Taken literally, and compared with.
SAMPLES = tuple(phrase for language in LANGUAGES for phrase in _load_samples(language))
