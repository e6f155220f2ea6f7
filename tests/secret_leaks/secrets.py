"""A test's secrets, and the encodings in which each may leak."""

import base64
import json
import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple
from urllib.parse import quote, quote_plus

#: Standalone digits or short words are matched, not parts of an ID, an amount, or a time. What
#: precedes them is checked afterwards: a pattern that begins with it would be slow.
_STANDALONE_PATTERN = rb"(?:%b)(?![0-9A-Za-z_-])(?!\.[0-9])"
_NOT_STANDALONE = re.compile(rb"(?:[0-9A-Za-z+_-]|[0-9]\.)\Z")
#: One-time codes are not matched as bare JSON numbers, which may be amounts in a table.
_JSON_NUMBER = b'":'
_WORD = re.compile(rb"[^\s\"',:;=&?(){}\[\]]+")
_PIN_DIGITS = 4
_MIN_SECRET_LENGTH = 4
#: Minimum length for secrets that are matched anywhere, not only as standalone words.
_MIN_LONG_SECRET_LENGTH = 8
#: Minimum length for secrets that are searched for by halves, because logs truncate long values.
_MIN_HALVED_LENGTH = 32
_CONTEXT_BYTES = 60


class Leak(NamedTuple):
    source: str
    kind: str
    context: str


class SecretSet:
    def __init__(self) -> None:
        self.short: dict[str, str] = {}
        self._long: dict[str, str] = {}
        self.encoded: dict[bytes, str] = {}

    def __contains__(self, value: str) -> bool:
        return value in self.short or value in self._long

    @property
    def kinds(self) -> set[str]:
        return {*self.short.values(), *self._long.values()}

    def add(self, kind: str, value: object) -> None:
        """Add a secret; ignore values that are too short to be distinctive or not strings."""
        if not isinstance(value, str) or len(value) < _MIN_SECRET_LENGTH or value in self:
            return
        if len(value) < _MIN_LONG_SECRET_LENGTH:
            self.short[value] = kind
            return
        self._long[value] = kind
        for part in _list_identifying_parts(value):
            self.encoded |= dict.fromkeys(encode_variants(part), kind)

    def filter_by_suffix(self, word: str) -> "SecretSet":
        """Return the secrets whose kind ends with the word.

        Messages to subscribers are searched only for PINs, because they may contain codes.
        """
        matching = SecretSet()
        for value, kind in (self.short | self._long).items():
            if kind.endswith(word):
                matching.add(kind, value)
        return matching

    def select_present(self, data: bytes) -> "SecretSet":
        """Return all short secrets, and the encodings of long ones that occur in the data."""
        present = SecretSet()
        present.short = self.short
        # Most words in logs are repeated, so each word is searched only once.
        words = b"\n".join({*_WORD.findall(data)})
        longest_words = {needle: max(_WORD.findall(needle), key=len) for needle in self.encoded}
        starts = {word[:_MIN_LONG_SECRET_LENGTH] for word in longest_words.values()}
        # One pass over the words is faster than a search for each of thousands of encodings.
        present_starts = starts.intersection(
            words[position : position + _MIN_LONG_SECRET_LENGTH] for position in range(len(words))
        )
        present.encoded = {
            needle: self.encoded[needle]
            for needle, word in longest_words.items()
            if (
                len(word) < _MIN_LONG_SECRET_LENGTH
                or word[:_MIN_LONG_SECRET_LENGTH] in present_starts
            )
            and needle in data
        }
        return present

    def find_leaks(self, source: str, data: bytes, *, digits: bool = True) -> list[Leak]:
        """Search for all secrets, or only for long ones if `digits` is False (random bytes)."""
        spans = [
            (kind, start, start + len(needle))
            for needle, kind in self.encoded.items()
            for start in _find_all(data, needle)
        ]
        if digits:
            spans += self._find_short_secrets(data)
        return [
            Leak(
                source,
                kind,
                data[max(0, start - _CONTEXT_BYTES) : end + _CONTEXT_BYTES].decode("latin-1"),
            )
            for kind, start, end in spans
        ]

    def _find_short_secrets(self, data: bytes) -> Iterator[tuple[str, int, int]]:
        codes = {value for value in self.short if value.isdigit() and len(value) != _PIN_DIGITS}
        for values, are_codes in ((self.short.keys() - codes, False), (codes, True)):
            if values:
                pattern = _STANDALONE_PATTERN % b"|".join(
                    re.escape(item.encode()) for item in values
                )
                for match in re.finditer(pattern, data):
                    before = data[max(0, match.start() - 2) : match.start()]
                    is_number = are_codes and before == _JSON_NUMBER
                    if not is_number and not _NOT_STANDALONE.search(before):
                        yield self.short[match[0].decode()], match.start(), match.end()


def _list_identifying_parts(value: str) -> list[str]:
    """Return the parts of a secret that each identify it.

    An access token's header and claims are public, so only its signature counts. Each line of a
    PEM key is secret.
    """
    if value.startswith("-----BEGIN"):
        return [
            line
            for line in value.splitlines()
            if len(line) >= _MIN_HALVED_LENGTH and "-" not in line
        ]
    if value.startswith("eyJ") and value.count(".") == 2:
        value = value.rpartition(".")[2]
    if len(value) < _MIN_HALVED_LENGTH:
        return [value]
    middle = len(value) // 2
    return [value[:middle], value[middle:]]


def encode_variants(value: str) -> set[bytes]:
    """Return a long secret in all encodings in which careless code might write it."""
    raw = value.encode()
    texts = {value, value.lower(), value.upper(), value[::-1], repr(value)[1:-1]}
    texts |= {json.dumps(value, ensure_ascii=is_ascii)[1:-1] for is_ascii in (True, False)}
    texts |= {quote(value), quote(value, safe=""), quote_plus(value)}
    texts |= {raw.hex(), raw.hex().upper()}
    found = {text.encode() for text in texts}
    found |= {value.encode("utf-16-le"), value.encode("utf-16-be")}
    return found | set(_list_base64_variants(raw))


def _list_base64_variants(raw: bytes) -> Iterable[bytes]:
    """Yield the base64 characters that do not depend on the bytes before and after the secret."""
    for shift in range(3):
        coded = base64.b64encode(bytes(shift) + raw)
        middle = coded[4 if shift else 0 : len(coded) // 4 * 4 - 4]
        yield middle
        yield middle.translate(bytes.maketrans(b"+/", b"-_"))


def _find_all(data: bytes, needle: bytes) -> Iterator[int]:
    start = data.find(needle)
    while start >= 0:
        yield start
        start = data.find(needle, start + len(needle))
