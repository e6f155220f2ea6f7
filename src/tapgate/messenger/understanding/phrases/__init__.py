"""What people write for each command, by language."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from tapgate.messenger.model.kinds import Command, Language
from tapgate.messenger.understanding.phrases import en, fr


class Phrase(NamedTuple):
    text: str
    #: None: asks for nothing that the messenger could do.
    command: Command | None
    language: Language


def _lines(samples: str) -> Iterator[str]:
    return (line.strip() for line in samples.splitlines() if line.strip())


def _listed(words: str) -> Iterator[str]:
    return (word.strip() for line in _lines(words) for word in line.split(";"))


def _phrases(
    language: Language, words: Mapping[Command, str], samples: Mapping[Command, str], nothing: str
) -> tuple[tuple[Phrase, ...], tuple[Phrase, ...]]:
    return (
        tuple(Phrase(w, command, language) for command in words for w in _listed(words[command])),
        (
            *(
                Phrase(s, command, language)
                for command in samples
                for s in _lines(samples[command])
            ),
            *(Phrase(s, None, language) for s in _lines(nothing)),
        ),
    )


_EN_WORDS, _EN_SAMPLES = _phrases("en", en.WORDS, en.SAMPLES, en.NOTHING)
_FR_WORDS, _FR_SAMPLES = _phrases("fr", fr.WORDS, fr.SAMPLES, fr.NOTHING)

#: Taken literally.
WORDS = _EN_WORDS + _FR_WORDS
#: Taken literally, and compared with.
SAMPLES = _EN_SAMPLES + _FR_SAMPLES
