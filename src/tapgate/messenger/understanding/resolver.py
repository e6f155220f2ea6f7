"""Intent resolution for free text: literal phrases first, then similarity."""

from collections.abc import Iterable
from functools import cache
from typing import Final, NamedTuple

from tapgate.messenger.model import Command, Intent, Language
from tapgate.messenger.understanding import phrases, safeguards, word_patterns
from tapgate.messenger.understanding.languages import detect_language
from tapgate.messenger.understanding.normalization import (
    MAX_LENGTH,
    NUMBER_PLACEHOLDER,
    normalize_text,
)
from tapgate.messenger.understanding.number_words import write_digits
from tapgate.messenger.understanding.phrases import Phrase
from tapgate.messenger.understanding.similarity import SimilarityIndex
from tapgate.messenger.understanding.word_patterns import classify_small_talk

#: Minimum score, and minimum lead over the next candidate, to act on a command.
ACT_THRESHOLD: Final = 0.3
MIN_MARGIN: Final = 0.08
#: Minimum lead of a transfer over the next command.
MIN_TRANSFER_MARGIN: Final = 0.1
#: Minimum score to start a transfer when the text does not mention money. If it does,
#: `SUGGEST_THRESHOLD` is enough.
TRANSFER_THRESHOLD: Final = 0.5
#: Minimum score for a single misspelled word to determine the language.
_LANGUAGE_THRESHOLD: Final = 0.6
#: Minimum score to suggest a command.
SUGGEST_THRESHOLD: Final = 0.2
#: Candidates that score lower than the best by more than this are not suggested.
_MAX_SCORE_GAP: Final = 0.15
_MAX_CANDIDATES: Final = 3


class _Candidate(NamedTuple):
    score: float
    command: Command | None
    language: Language | None


class Resolver:
    """Intent resolver over a fixed set of phrases. Immutable after construction."""

    def __init__(self, keywords: Iterable[Phrase], samples: Iterable[Phrase]) -> None:
        literal = [(normalize_text(phrase.text), phrase) for phrase in keywords]
        others = [(normalize_text(phrase.text), phrase) for phrase in samples]
        #: `yes` and `no` match only literally, never by similarity.
        similar = [item for item in (*literal, *others) if item[1].command not in {"yes", "no"}]
        self._samples = tuple(phrase for _, phrase in similar)
        self._index = SimilarityIndex([(text, phrase.command) for text, phrase in similar])
        self._keywords = {text for text, _ in literal}
        self._phrases_by_text: dict[str, list[Phrase]] = {}
        for text, phrase in (*literal, *similar):
            self._phrases_by_text.setdefault(text, []).append(phrase)

    def match_literal(self, text: str, language: Language | None) -> Intent | None:
        """Return the intent for a known keyword or phrase, or None if the text is neither."""
        if len(text) > MAX_LENGTH:
            return None
        normalized = normalize_text(text)
        found = self._phrases_by_text.get(normalized)
        if found is None or normalized == NUMBER_PLACEHOLDER:
            return None
        languages = {phrase.language for phrase in found}
        commands = tuple(dict.fromkeys(phrase.command for phrase in found))
        detected = language if language in languages else _get_single_language(languages)
        if commands == (None,) and _is_one_word(normalized) and classify_small_talk(text) is None:
            return Intent()  # "lol" does not determine a language
        if "yes" in commands and "?" in text:
            return Intent(language=detected)
        if len(commands) == 1:
            is_exact = commands[0] is not None and normalized in self._keywords
            return Intent(command=commands[0], is_exact=is_exact, language=detected)
        return Intent(candidates=tuple(c for c in commands if c is not None), language=detected)

    def resolve(self, text: str, language: Language | None) -> Intent:
        """Return a text's intent. `language` decides for phrases that both languages have."""
        known = self.match_literal(text, language)
        if known is not None:
            return known
        normalized = normalize_text(write_digits(text) or text)
        core = word_patterns.strip_courtesies(normalized) or normalized
        known = self.match_literal(core, language) if core != normalized else None
        if known is not None and len(text) <= MAX_LENGTH and known.command not in {"yes", "no"}:
            return known
        intent = self._resolve_by_rule(core, text) or self._resolve_by_similarity(core, text)
        if intent.command is not None or core == normalized:
            return intent
        whole = self._resolve_by_similarity(normalized, text)
        if not intent.candidates or whole.command is None or whole.command in intent.candidates:
            return whole
        return Intent(
            candidates=(*intent.candidates, whole.command)[-_MAX_CANDIDATES:],
            language=intent.language,
        )

    def _resolve_by_rule(self, normalized: str, text: str) -> Intent | None:
        """Return the intent that the rules find, or None."""
        if len(text) > MAX_LENGTH or _is_one_word(normalized):
            return None
        language = detect_language(text)
        wish = word_patterns.extract_transfer_wish(normalized)
        if (
            wish is not None
            and safeguards.mentions_money(wish)
            and safeguards.is_transfer_request(wish, is_question="?" in text)
        ):
            return Intent(command="send", language=language)
        commands = word_patterns.match_rules(normalized)
        if not commands:
            return None
        if len(commands) > 1 or safeguards.is_prohibition(normalized, commands[0]):
            return Intent(candidates=commands, language=language)
        return Intent(command=commands[0], language=language)

    def _resolve_by_similarity(self, normalized: str, text: str) -> Intent:
        ranked = self._rank_commands(normalized)
        if not ranked or ranked[0].score < SUGGEST_THRESHOLD:
            return Intent()
        best = ranked[0]
        if _is_one_word(normalized) and (best.command is None or best.score < _LANGUAGE_THRESHOLD):
            # A single word may resemble a word of either language by chance.
            ranked[0] = best = best._replace(language=None)
        if (
            best.command == "send"
            and safeguards.is_prohibition(normalized, "send")
            and len(text) <= MAX_LENGTH
        ):
            return Intent(command="cancel", language=best.language)
        if len(text) <= MAX_LENGTH and _is_confident(ranked, normalized, is_question="?" in text):
            return Intent(command=best.command, language=best.language)
        if best.command is None and _get_lead(ranked) >= MIN_MARGIN:
            return Intent(language=best.language)
        suggested = [
            candidate.command
            for candidate in ranked
            if candidate.command is not None
            and candidate.score >= max(SUGGEST_THRESHOLD, best.score - _MAX_SCORE_GAP)
        ]
        return Intent(candidates=tuple(suggested[:_MAX_CANDIDATES]), language=best.language)

    def _rank_commands(self, normalized: str) -> list[_Candidate]:
        """Return the commands by similarity, best first; None means no command."""
        return [
            _Candidate(score, self._samples[position].command, self._samples[position].language)
            for score, position in self._index.rank_subjects(normalized)
        ]


def _is_confident(ranked: list[_Candidate], normalized: str, *, is_question: bool) -> bool:
    best = ranked[0]
    if safeguards.is_prohibition(normalized, best.command):
        return False
    if best.command == "send":
        if not safeguards.is_transfer_request(normalized, is_question=is_question):
            return False
        # is_transfer_request has excluded small talk, so ignore the samples without a command.
        commands = [candidate for candidate in ranked if candidate.command is not None]
        threshold = (
            SUGGEST_THRESHOLD if safeguards.mentions_money(normalized) else TRANSFER_THRESHOLD
        )
        return best.score >= threshold and _get_lead(commands) >= MIN_TRANSFER_MARGIN
    return best.score >= ACT_THRESHOLD and _get_lead(ranked) >= MIN_MARGIN


def _is_one_word(normalized: str) -> bool:
    return " " not in normalized


def _get_lead(ranked: list[_Candidate]) -> float:
    return ranked[0].score - (ranked[1].score if len(ranked) > 1 else 0.0)


def _get_single_language(languages: set[Language]) -> Language | None:
    return next(iter(languages)) if len(languages) == 1 else None


@cache
def get_resolver() -> Resolver:
    """Return the resolver over all phrases. Building it takes some tenths of a second."""
    return Resolver(phrases.KEYWORDS, phrases.SAMPLES)


def resolve(text: str, language: Language | None) -> Intent:
    return get_resolver().resolve(text, language)


def match_literal(text: str, language: Language | None) -> Intent | None:
    return get_resolver().match_literal(text, language)


def match_command(text: str) -> Command | None:
    """Return the command that the whole text names, or None. It applies in any state.

    A text with a digit never matches, because it may be an answer.
    """
    if any(char.isdigit() for char in text):
        return None
    known = match_literal(text, None)
    return known.command if known is not None and known.is_exact else None
