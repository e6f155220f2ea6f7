"""Splits a text with two wishes: `check my balance and send 50 to 076123456`."""

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from tapgate.messenger.model import Command, Language
from tapgate.messenger.understanding import resolver
from tapgate.messenger.understanding.normalization import MAX_LENGTH, normalize_text
from tapgate.messenger.understanding.number_words import write_digits
from tapgate.messenger.understanding.word_lists import WORDS, compile_rules
from tapgate.messenger.understanding.word_patterns import strip_courtesies

#: Commands that are wishes of their own. Greetings and answers are not.
_NO_WISHES: Final = frozenset({"menu", "help", "yes", "no", "cancel", "language", "register"})
#: Words between two wishes, as written.
_CONNECTORS: Final = (
    r"(?:(?:and )?(?:then|also)|and|plus|(?:et )?(?:puis|ensuite|aussi)|et|(?:ɛn )?dɔn|ɛn|en)\s+"
)
_CONNECTOR_PATTERN: Final = re.compile(
    rf"(?:(?<=[.!?;])|,)\s+(?:{_CONNECTORS})?|,?\s+{_CONNECTORS}", re.IGNORECASE
)
_MAX_CONNECTORS: Final = 4
_REQUEST_PATTERN: Final = re.compile("(?:{wish_start})(?!\\S)".format_map(WORDS))
#: Words that report something. A report often has two parts but asks for one thing.
_REPORT_PATTERN: Final = compile_rules(["absent", "report"])


class Wish(NamedTuple):
    command: Command
    text: str


def split_wishes(text: str, language: Language | None) -> tuple[Wish, Wish] | None:
    """Return the two wishes in a text, in order, or None unless it clearly has two."""
    if len(text) > MAX_LENGTH:
        return None
    for first, second in _iterate_halves(text):
        if not (_is_request(first) and _is_request(second)):
            continue
        commands = [resolver.resolve(half, language).command for half in (first, second)]
        wishes = [Wish(c, half) for c, half in zip(commands, (first, second), strict=True) if c]
        if len(wishes) == 2 and _are_separate(*wishes):
            return wishes[0], wishes[1]
    return None


def _iterate_halves(text: str) -> Iterator[tuple[str, str]]:
    for count, match in enumerate(_CONNECTOR_PATTERN.finditer(text)):
        if count == _MAX_CONNECTORS:
            return
        yield text[: match.start()].strip(), text[match.end() :].strip()


def _is_request(half: str) -> bool:
    normalized = strip_courtesies(normalize_text(write_digits(half) or half))
    return (
        _REQUEST_PATTERN.match(normalized) is not None
        and _REPORT_PATTERN.search(normalized) is None
    )


def _are_separate(first: Wish, second: Wish) -> bool:
    if {first.command, second.command} & _NO_WISHES:
        return False
    return first.command != second.command or first.command == "send"
