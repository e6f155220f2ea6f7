"""What free text asks for: words and phrases taken literally first, then what it is most like."""

import re
from collections.abc import Iterable
from typing import Final, NamedTuple

from tapgate.messenger.model.events import Meaning
from tapgate.messenger.model.kinds import Command, Language
from tapgate.messenger.understanding import caution, phrases
from tapgate.messenger.understanding.phrases import Phrase
from tapgate.messenger.understanding.remarks import remark
from tapgate.messenger.understanding.similarity import Index
from tapgate.messenger.understanding.spelling import LONGEST, NUMBER, plain

#: As alike as this, and that much more than to anything else: it is meant.
ACT: Final = 0.32
MARGIN: Final = 0.1
#: As alike as this even to begin a transfer without a word for money.
PLAIN: Final = 0.5
#: As alike as this, and a single misspelled word still tells the language.
_SURE: Final = 0.6
#: As alike as this: it is asked whether it is meant.
ASK: Final = 0.2
#: Not asked when something else is so much more alike.
_FAR_BEHIND: Final = 0.15
_MOST_ASKED: Final = 3
_CIVILITIES = re.compile(
    r"^(?:(?:hi|hello|helo|hey|god (?:morning|afternon|evening|day)|kushe|please|pls|plz|abeg|sir|"
    r"madam|bonjour|bonsoir|salut|slt|bjr|monsieur|madame|svp|stp|sil vous plait) )+"
    r"|(?: (?:please|pls|plz|abeg|svp|stp|sil (?:vous|te) plait|s il (?:vous|te) plait|thanks"
    r"|thank you|merci))+$"
)


class _Candidate(NamedTuple):
    score: float
    command: Command | None
    language: Language | None


class Resolver:
    """Made once: looking something up changes nothing."""

    def __init__(self, words: Iterable[Phrase], samples: Iterable[Phrase]) -> None:
        words = tuple(words)
        #: `yes` and `no` are said or they are not: nothing is like them.
        self._samples = tuple(
            phrase for phrase in (*words, *samples) if phrase.command not in {"yes", "no"}
        )
        self._index = Index([(plain(phrase.text), phrase.command) for phrase in self._samples])
        self._words = {plain(phrase.text) for phrase in words}
        self._literal: dict[str, list[Phrase]] = {}
        for phrase in (*words, *self._samples):
            self._literal.setdefault(plain(phrase.text), []).append(phrase)

    def literal(self, text: str, language: Language | None) -> Meaning | None:
        """None: not one of the words and phrases that are known."""
        if len(text) > LONGEST:
            return None
        spelled = plain(text)
        found = self._literal.get(spelled)
        if found is None or spelled == NUMBER:
            return None
        spoken = {phrase.language for phrase in found}
        commands = tuple(dict.fromkeys(phrase.command for phrase in found))
        heard = language if language in spoken else _only(spoken)
        if commands == (None,) and _is_one_word(spelled) and remark(text) is None:
            return Meaning()  # "lol" is no sign of a language
        if "yes" in commands and "?" in text:
            return Meaning(language=heard)
        if len(commands) == 1:
            exact = commands[0] is not None and spelled in self._words
            return Meaning(command=commands[0], exact=exact, language=heard)
        return Meaning(maybe=tuple(c for c in commands if c is not None), language=heard)

    def resolve(self, text: str, language: Language | None) -> Meaning:
        """What the text asks for. The language only decides between words that both have."""
        known = self.literal(text, language)
        if known is not None:
            return known
        spelled = plain(text)
        core = _CIVILITIES.sub("", spelled).strip()
        if core and core != spelled:
            # "Hello, my balance please": only without its civilities it is what it asks for.
            meaning = self._core(core, text, language)
            if meaning.command is not None:
                return meaning
        return self._likely(spelled, text)

    def _core(self, core: str, text: str, language: Language | None) -> Meaning:
        known = self.literal(core, language) if len(text) <= LONGEST else None
        if known is not None and known.command not in {"yes", "no"}:
            return known
        return self._likely(core, text)

    def _likely(self, spelled: str, text: str) -> Meaning:
        ranked = self._ranked(spelled)
        if not ranked or ranked[0].score < ASK:
            return Meaning()
        best = ranked[0]
        if _is_one_word(spelled) and (best.command is None or best.score < _SURE):
            # One word is like some word of either language by chance.
            ranked[0] = best = best._replace(language=None)
        if best.command == "send" and caution.forbids(spelled, "send") and len(text) <= LONGEST:
            return Meaning(command="cancel", language=best.language)
        if len(text) <= LONGEST and _is_meant(ranked, spelled, asks="?" in text):
            return Meaning(command=best.command, language=best.language)
        if best.command is None and _ahead(ranked) >= MARGIN:
            return Meaning(language=best.language)
        asked = [
            candidate.command
            for candidate in ranked
            if candidate.command is not None
            and candidate.score >= max(ASK, best.score - _FAR_BEHIND)
        ]
        return Meaning(maybe=tuple(asked[:_MOST_ASKED]), language=best.language)

    def _ranked(self, spelled: str) -> list[_Candidate]:
        """The commands, the most alike first."""
        closest = (
            (score, self._samples[place]) for score, _, place in self._index.closest(spelled)
        )
        return [_Candidate(score, sample.command, sample.language) for score, sample in closest]


def _is_meant(ranked: list[_Candidate], spelled: str, *, asks: bool) -> bool:
    best = ranked[0]
    if caution.forbids(spelled, best.command):
        return False
    if best.command == "send":
        if not caution.starts_a_transfer(spelled, asks=asks):
            return False
        # Small talk about sending was told apart already.
        named = [candidate for candidate in ranked if candidate.command is not None]
        least = ASK if caution.names_money(spelled) else PLAIN
        return best.score >= least and _ahead(named) >= MARGIN
    return best.score >= ACT and _ahead(ranked) >= MARGIN


def _is_one_word(spelled: str) -> bool:
    return " " not in spelled


def _ahead(ranked: list[_Candidate]) -> float:
    return ranked[0].score - (ranked[1].score if len(ranked) > 1 else 0.0)


def _only(spoken: set[Language]) -> Language | None:
    return next(iter(spoken)) if len(spoken) == 1 else None


_resolver = Resolver(phrases.WORDS, phrases.SAMPLES)
resolve = _resolver.resolve
literal = _resolver.literal
