"""Numbers in words and short forms: `two hundred`, `deux cents`, `tu oondrɛd`, `20k`, `2.5k`.

`write_digits` replaces them by digits, so that the parsers of amounts read only digits. A number
that can be read in two ways ("two fifty", "five or six hundred") becomes a placeholder, which no
parser takes for an amount: the messenger asks. The words are in `numbers/`, one file per language.
"""

import re
from collections.abc import Iterator, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Final, NamedTuple

from tapgate.messenger.understanding.normalization import normalize_digits, normalize_text
from tapgate.messenger.understanding.word_lists import read_entries

#: Replaces an ambiguous number.
AMBIGUOUS_NUMBER: Final = "¤"
_FOLDER: Final = Path(__file__).parent / "numbers"
#: A number of at most three digits before the decimal mark, possibly with "k", or a word.
_TOKEN_PATTERN: Final = re.compile(
    r"(?<![\w.,'+-])([1-9][0-9]{0,2}(?:[.,][0-9]{1,2})?)( ?k)?\b(?![.,'][0-9])|([^\W\d_]+)",
    re.IGNORECASE,
)
_SEPARATOR_PATTERN: Final = re.compile(r"[ -]{0,2}")
_HUNDRED: Final = 100
_THOUSAND: Final = 1000
_MAX_NUMBER: Final = 10**9
#: A lone smaller number in words may be something else: "this one", "un ami".
_MIN_LONE_NUMBER: Final = 10


class _Lexicon(NamedTuple):
    """Number words, normalized, of languages that people mix in one number."""

    values: dict[str, int]
    #: Words that have a value only before hundred or thousand.
    prefixes: dict[str, int]
    joints: frozenset[str]
    unsure: frozenset[str]
    vague: frozenset[str]


def _load_lexicon(*languages: str) -> _Lexicon:
    entries = [entry for name in languages for entry in read_entries(_FOLDER / f"{name}.txt")]
    words = [(name, normalize_text(item)) for name, items in entries for item in items]
    return _Lexicon(
        {word: int(name) for name, word in words if name.isdigit()},
        {word: int(name.split()[1]) for name, word in words if name.startswith("prefix ")},
        *(
            frozenset(word for name, word in words if name == kind)
            for kind in ("and", "unsure", "vague")
        ),
    )


_LEXICONS: Final = (_load_lexicon("en", "kri"), _load_lexicon("fr"))
_VALUES: Final = {**_LEXICONS[0].values, **_LEXICONS[1].values}
_MULTIPLIERS: Final = frozenset(word for word, value in _VALUES.items() if value >= _HUNDRED)
_PREFIXES: Final = frozenset(word for lexicon in _LEXICONS for word in lexicon.prefixes)
_JOINTS: Final = frozenset.union(*(lexicon.joints for lexicon in _LEXICONS))
_UNSURE: Final = frozenset.union(*(lexicon.unsure for lexicon in _LEXICONS))
_VAGUE: Final = frozenset.union(*(lexicon.vague for lexicon in _LEXICONS))
_PHRASES: Final = frozenset(word for word in {*_VALUES, *_VAGUE} if " " in word)
#: Spellings that would otherwise equal a number word.
_NOT_NUMBERS: Final = frozenset(dict(read_entries(_FOLDER / "kri.txt"))["not a number"])


class _Token(NamedTuple):
    start: int
    end: int
    #: Normalized word; empty for a number in digits.
    word: str
    #: Factors of a number in digits: 20 and 1,000 for "20k".
    digits: tuple[Decimal, ...] = ()


def write_digits(text: str, *, is_answer: bool = False) -> str:
    """Replace the numbers in words: `"send two hundred"` becomes `"send 200"`.

    A lone number below ten is replaced only in the answer to a question for an amount.
    """
    plain = normalize_digits(text)
    parts, position = list[str](), 0
    for run in _split_into_runs(plain, _list_tokens(plain)):
        follows_digits = (
            plain[max(position, run[0].start - 3) : run[0].start].rstrip(" -")[-1:].isdigit()
        )
        number = None if follows_digits else _read_number(run)
        if number is not None and len(run) == 1 and number < _MIN_LONE_NUMBER and not is_answer:
            continue
        digits = AMBIGUOUS_NUMBER if number is None else str(number)
        parts += [plain[position : run[0].start], digits]
        position = run[-1].end
    return "".join([*parts, plain[position:]])


def _list_tokens(text: str) -> list[_Token]:
    tokens = list[_Token]()
    for match in _TOKEN_PATTERN.finditer(text):
        digits, thousands, word = match.groups()
        if digits is not None:
            factors = (Decimal(digits.replace(",", ".")), *([Decimal(1000)] if thousands else []))
            tokens.append(_Token(match.start(), match.end(), "", factors))
            continue
        name = "" if word.casefold() in _NOT_NUMBERS else normalize_text(word)
        phrase = f"{tokens[-1].word} {name}" if tokens else ""
        if phrase in _PHRASES and _are_adjacent(text, tokens[-1].end, match.start()):
            tokens[-1] = _Token(tokens[-1].start, match.end(), phrase)
        else:
            tokens.append(_Token(match.start(), match.end(), name))
    return tokens


def _are_adjacent(text: str, end: int, start: int) -> bool:
    return _SEPARATOR_PATTERN.fullmatch(text, end, start) is not None


def _split_into_runs(text: str, tokens: list[_Token]) -> Iterator[list[_Token]]:
    """Yield sequences of adjacent number words and short numbers, with at least one word or "k"."""
    run = list[_Token]()
    for position, token in enumerate(tokens):
        following = tokens[position + 1] if position + 1 < len(tokens) else None
        if following is not None and not _are_adjacent(text, token.end, following.start):
            following = None
        if _belongs_to_run(run, token, following):
            run.append(token)
        if following is None or run[-1:] != [token]:
            if any(part.word in _VALUES or len(part.digits) > 1 for part in run):
                yield run
            run = []


def _belongs_to_run(run: list[_Token], token: _Token, following: _Token | None) -> bool:
    word = token.word
    next_word = "" if following is None else following.word
    if token.digits or word in _VALUES or word in _VAGUE:
        return True
    if word in _PREFIXES:
        return next_word in _MULTIPLIERS or (bool(run) and word in _UNSURE)
    is_next_number = following is not None and (
        bool(following.digits) or next_word in _VALUES or next_word in _PREFIXES
    )
    return bool(run) and word in _JOINTS and is_next_number


def _read_number(run: list[_Token]) -> int | None:
    """Return the number, or None if no language or several ones read it differently."""
    numbers = {number for lexicon in _LEXICONS if (number := _read_in(lexicon, run)) is not None}
    return numbers.pop() if len(numbers) == 1 else None


def _read_in(lexicon: _Lexicon, run: list[_Token]) -> int | None:
    parts = list[Decimal]()
    for position, token in enumerate(run):
        is_last = position == len(run) - 1
        if token.digits:
            if not _may_be_digits(parts, run[position + 1 :], token):
                return None
            parts += token.digits
        elif token.word in lexicon.values:
            parts.append(Decimal(lexicon.values[token.word]))
        elif token.word in lexicon.prefixes and not is_last:
            parts.append(Decimal(lexicon.prefixes[token.word]))
        elif token.word not in lexicon.joints or is_last:
            return None
    return _combine(parts)


def _may_be_digits(before: list[Decimal], after: list[_Token], token: _Token) -> bool:
    """Return whether digits fit here: "20k", "2 thousand" and "2 thousand 500", not "fifty 2"."""
    if before:
        return before[-1] >= _THOUSAND and len(token.digits) == 1 and token.digits[0] >= 10
    return len(token.digits) > 1 or (bool(after) and after[0].word in _MULTIPLIERS)


def _combine(parts: Sequence[Decimal]) -> int | None:
    """Return 1,500 for 1, 1000, 5, 100; None if the parts do not form one number."""
    total, current, scale = Decimal(0), Decimal(0), Decimal(_MAX_NUMBER)
    for part in parts:
        if part >= _THOUSAND:
            if part >= scale or current >= _THOUSAND:
                return None
            total, current, scale = total + (current or 1) * part, Decimal(0), part
        elif part == _HUNDRED and 0 <= current < 20 and current != 10:
            current = (current or 1) * part
        elif current == 0 or (part < _HUNDRED and _can_add(current, part)):
            current += part
        else:
            return None
    number = total + current
    return int(number) if number == int(number) and number < _MAX_NUMBER else None


def _can_add(current: Decimal, part: Decimal) -> bool:
    """Return whether a part below 100 continues the number: 20 and 5, 200 and 50, 80 and 17."""
    tens = current % _HUNDRED
    if tens == 0:
        return True
    if tens in {60, 80}:
        return part < 20
    return tens >= 20 and tens % 10 == 0 and part < 10
