"""What free text asks for: words and phrases taken literally first, then what it is most like."""

from collections.abc import Iterable
from typing import Final, NamedTuple

from tapgate.messenger.model.events import Meaning
from tapgate.messenger.model.kinds import Command, Language
from tapgate.messenger.understanding import caution, phrases
from tapgate.messenger.understanding.phrases import Phrase
from tapgate.messenger.understanding.similarity import Index
from tapgate.messenger.understanding.spelling import LONGEST, plain

#: As alike as this, and that much more than to anything else: it is meant.
ACT: Final = 0.5
MARGIN: Final = 0.07
#: As alike as this: it is asked whether it is meant.
ASK: Final = 0.3
#: Not asked when something else is so much more alike.
_FAR_BEHIND: Final = 0.22
_MOST_ASKED: Final = 3


class _Candidate(NamedTuple):
    score: float
    command: Command | None
    language: Language


class Resolver:
    """Made once: looking something up changes nothing."""

    def __init__(self, words: Iterable[Phrase], samples: Iterable[Phrase]) -> None:
        words = tuple(words)
        #: `yes` and `no` are said or they are not: nothing is like them.
        self._samples = tuple(
            phrase for phrase in (*words, *samples) if phrase.command not in {"yes", "no"}
        )
        spelled = [plain(phrase.text) for phrase in self._samples]
        self._index = Index(spelled)
        self._literal: dict[str, list[Phrase]] = {}
        for phrase in (*words, *self._samples):
            self._literal.setdefault(plain(phrase.text), []).append(phrase)

    def literal(self, text: str, language: Language | None) -> Meaning | None:
        """None: not one of the words and phrases that are known."""
        if len(text) > LONGEST:
            return None
        found = self._literal.get(plain(text))
        if found is None:
            return None
        spoken = {phrase.language for phrase in found}
        commands = tuple(dict.fromkeys(phrase.command for phrase in found))
        heard = language if language in spoken else _only(spoken)
        if "yes" in commands and "?" in text:
            return Meaning(language=heard)
        if len(commands) == 1:
            return Meaning(command=commands[0], language=heard)
        return Meaning(maybe=tuple(c for c in commands if c is not None), language=heard)

    def resolve(self, text: str, language: Language | None) -> Meaning:
        """What the text asks for. The language only decides between words that both have."""
        return self.literal(text, language) or self._likely(text)

    def _likely(self, text: str) -> Meaning:
        spelled = plain(text)
        ranked = self._ranked(spelled)
        if not ranked or ranked[0].score < ASK:
            return Meaning()
        best = ranked[0]
        ahead = best.score - (ranked[1].score if len(ranked) > 1 else 0.0)
        clear = best.score >= ACT and ahead >= MARGIN and len(text) <= LONGEST
        if clear and _may_act(best.command, spelled, asks="?" in text):
            return Meaning(command=best.command, language=best.language)
        if best.command is None and ahead >= MARGIN:
            return Meaning(language=best.language)
        asked = [
            candidate.command
            for candidate in ranked
            if candidate.command is not None
            and candidate.score >= max(ASK, best.score - _FAR_BEHIND)
        ]
        return Meaning(maybe=tuple(asked[:_MOST_ASKED]), language=best.language)

    def _ranked(self, spelled: str) -> list[_Candidate]:
        """The best for each command, best first."""
        best: dict[Command | None, _Candidate] = {}
        for score, phrase in zip(self._index.alike(spelled), self._samples, strict=True):
            known = best.get(phrase.command)
            if known is None or score > known.score:
                best[phrase.command] = _Candidate(score, phrase.command, phrase.language)
        return sorted(best.values(), key=lambda candidate: candidate.score, reverse=True)


def _may_act(command: Command | None, spelled: str, *, asks: bool) -> bool:
    if command == "send" and not caution.starts_a_transfer(spelled, asks=asks):
        return False
    return not caution.forbids(spelled, command)


def _only(spoken: set[Language]) -> Language | None:
    return next(iter(spoken)) if len(spoken) == 1 else None


_resolver = Resolver(phrases.WORDS, phrases.SAMPLES)
resolve = _resolver.resolve
literal = _resolver.literal
