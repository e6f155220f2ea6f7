"""The secrets that were heard, and what each of them may look like where it must not be."""

import base64
import json
import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple
from urllib.parse import quote, quote_plus

#: Digits or a short word that stand alone: not a part of an id, an amount or a time.
_STANDALONE_PATTERN = rb"(?<![0-9A-Za-z+_-])(?<![0-9]\.)(?:%b)(?![0-9A-Za-z_-])(?!\.[0-9])"
#: Codes are drawn by chance and so may be some amount of a table, which is a bare number there.
_NOT_JSON_NUMBER = rb'(?<!":)'
_PIN_DIGITS = 4
_MIN_SECRET_LENGTH = 4
#: From here on a text is itself wherever it stands.
_MIN_LONG_SECRET_LENGTH = 8
#: From here on one half of it is as good as all, since logs like to cut what is long.
_MIN_HALVED_LENGTH = 32
_CONTEXT_BYTES = 60


class Leak(NamedTuple):
    source: str
    kind: str
    context: str


class SecretSet:
    def __init__(self) -> None:
        self._short: dict[str, str] = {}
        self._long: dict[str, str] = {}
        self._encoded: dict[bytes, str] = {}

    def __contains__(self, value: str) -> bool:
        return value in self._short or value in self._long

    @property
    def kinds(self) -> set[str]:
        return {*self._short.values(), *self._long.values()}

    def add(self, what: str, value: object) -> None:
        """Whatever is not a text, or too short to be told from anything else, is no secret."""
        if not isinstance(value, str) or len(value) < _MIN_SECRET_LENGTH or value in self:
            return
        if len(value) < _MIN_LONG_SECRET_LENGTH:
            self._short[value] = what
            return
        self._long[value] = what
        for part in _identifying_parts(value):
            self._encoded |= dict.fromkeys(encode_variants(part), what)

    def filter_by_suffix(self, word: str) -> "SecretSet":
        """Those whose kind ends with it: people may be told their codes, never a PIN."""
        some = SecretSet()
        for value, what in (self._short | self._long).items():
            if what.endswith(word):
                some.add(what, value)
        return some

    def find_leaks(self, place: str, data: bytes, *, digits: bool = True) -> list[Leak]:
        """`digits` is False for what is random bytes anyway."""
        spans = [
            (what, start, start + len(needle))
            for needle, what in self._encoded.items()
            for start in _find_all(data, needle)
        ]
        if digits:
            spans += self._find_short_secrets(data)
        return [
            Leak(
                place,
                what,
                data[max(0, start - _CONTEXT_BYTES) : end + _CONTEXT_BYTES].decode("latin-1"),
            )
            for what, start, end in spans
        ]

    def _find_short_secrets(self, data: bytes) -> Iterator[tuple[str, int, int]]:
        drawn = {value for value in self._short if value.isdigit() and len(value) != _PIN_DIGITS}
        for values, before in ((self._short.keys() - drawn, b""), (drawn, _NOT_JSON_NUMBER)):
            if values:
                pattern = before + _STANDALONE_PATTERN % b"|".join(
                    re.escape(one.encode()) for one in values
                )
                for match in re.finditer(pattern, data):
                    yield self._short[match[0].decode()], match.start(), match.end()


def _identifying_parts(value: str) -> list[str]:
    """Each is enough to know it by. What comes before the signature of an access token is public;
    a key in PEM has one secret per line."""
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
    """A long secret as it is, and as careless code may have it."""
    raw = value.encode()
    texts = {value, value.lower(), value.upper(), value[::-1], repr(value)[1:-1]}
    texts |= {json.dumps(value, ensure_ascii=is_ascii)[1:-1] for is_ascii in (True, False)}
    texts |= {quote(value), quote(value, safe=""), quote_plus(value)}
    texts |= {raw.hex(), raw.hex().upper()}
    found = {text.encode() for text in texts}
    found |= {value.encode("utf-16-le"), value.encode("utf-16-be")}
    return found | set(_base64_variants(raw))


def _base64_variants(raw: bytes) -> Iterable[bytes]:
    """The middle of it, which is the same whatever comes before and after."""
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
