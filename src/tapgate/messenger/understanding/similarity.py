"""How alike texts are: the cosine of what they are made of, weighed by how rare it is (TF-IDF).

A text is made of its 2 to 4 letters in a row, of its words as they sound, and of the pairs of
those: letters forgive slips of the pen, sounds forgive a hurry, pairs keep some of the order.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Final

from tapgate.messenger.understanding.spelling import sound

_LETTERS: Final = 1.0
_SOUND: Final = 2.0
_PAIR: Final = 1.5


class Index:
    """Texts in `spelling.plain`, looked up by the place they were given in."""

    def __init__(self, texts: Sequence[str]) -> None:
        made_of = [_features(text) for text in texts]
        seen = Counter(feature for features in made_of for feature in features)
        self._rarity = {
            feature: math.log((1 + len(texts)) / (1 + count)) for feature, count in seen.items()
        }
        #: For a feature nobody has used: it counts against a text, but not for anything.
        self._unknown = math.log(1 + len(texts)) * 0.6
        self._size = len(texts)
        self._found: dict[str, list[tuple[int, float]]] = defaultdict(list)
        for place, features in enumerate(made_of):
            for feature, weight in self._unit(features):
                self._found[feature].append((place, weight))

    def alike(self, text: str) -> list[float]:
        """From 0 to 1 for each of the texts."""
        scores = [0.0] * self._size
        for feature, weight in self._unit(_features(text)):
            for place, other in self._found.get(feature, ()):
                scores[place] += weight * other
        return scores

    def _unit(self, features: dict[str, float]) -> Iterable[tuple[str, float]]:
        rarity, unknown = self._rarity, self._unknown
        weighed = [(f, w * rarity.get(f, unknown)) for f, w in features.items()]
        length = math.sqrt(sum(w * w for _, w in weighed)) or 1.0
        return [(f, w / length) for f, w in weighed]


def _features(text: str) -> dict[str, float]:
    words = text.split()
    counts: Counter[str] = Counter()
    for word in words:
        counts.update(_letters(word))
    features = {feature: _LETTERS * (1 + math.log(n)) for feature, n in counts.items()}
    sounds = [_sound(word) for word in words]
    features.update((f"={heard}", _SOUND) for heard in sounds)
    features.update((f"={a}+{b}", _PAIR) for a, b in _pairs(["", *sounds, ""]))
    return features


def _letters(word: str) -> Iterator[str]:
    """With its ends marked, because how a word begins and ends says most."""
    word = f" {word} "
    for size in (2, 3, 4):
        for start in range(len(word) - size + 1):
            yield word[start : start + size]


def _pairs(words: Sequence[str]) -> Iterator[tuple[str, str]]:
    return zip(words, words[1:], strict=False)


_sound = lru_cache(maxsize=4096)(sound)
