"""How alike texts are: the cosine of what they are made of, weighed by how much it says (TF-IDF).

A text is made of its 2 to 4 letters in a row, of its words as they sound, and of the pairs of
those: letters forgive slips of the pen, sounds forgive a hurry, pairs keep some of the order. What
is rare says more; what is said for many subjects ("I want to") says little of any.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterator, Sequence
from functools import lru_cache
from heapq import nlargest
from itertools import pairwise
from typing import Final, NamedTuple, TypeAlias

from tapgate.messenger.understanding.normalization import to_phonetic

Subject: TypeAlias = Hashable

_NGRAM_WEIGHT: Final = 1.0
_SOUND_WEIGHT: Final = 2.0
_PAIR_WEIGHT: Final = 1.5
#: What is left of the weight of a feature that all subjects share.
_MIN_SPECIFICITY: Final = 0.3
#: What a feature that no text has weighs: it speaks against all of them.
_UNKNOWN_FACTOR: Final = 0.35
#: What weighs less is found in so many texts that it only costs time.
_MIN_WEIGHT: Final = 1.2
#: How many texts besides the best one are looked at.
_TOP_COUNT: Final = 3


class SubjectMatch(NamedTuple):
    score: float
    subject: Subject
    #: The text of that subject that is most alike, by the place it was given in.
    position: int


class SimilarityIndex:
    """Texts in `spelling.plain`, each with its subject."""

    def __init__(self, texts: Sequence[tuple[str, Subject]]) -> None:
        made_of = [_extract_features(text) for text, _ in texts]
        self._positions: dict[Subject, list[int]] = defaultdict(list)
        for place, (_, subject) in enumerate(texts):
            self._positions[subject].append(place)
        self._size = len(texts)
        self._weights = self._compute_weights(made_of, [subject for _, subject in texts])
        self._unknown_weight = math.log(1 + self._size) * _UNKNOWN_FACTOR
        self._inverted_index: dict[str, list[tuple[int, float]]] = defaultdict(list)
        for place, features in enumerate(made_of):
            for feature, weight in self._normalize(features):
                self._inverted_index[feature].append((place, weight))
        self._norms = self._compute_norms()

    def rank_subjects(self, text: str) -> list[SubjectMatch]:
        """Each subject, from 0 to 1, the most alike first.

        One text may be alike by chance, so a few, and all of them together, have a say.
        """
        alike = [0.0] * self._size
        for feature, weight in self._normalize(_extract_features(text)):
            for place, other in self._inverted_index.get(feature, ()):
                alike[place] += weight * other
        found = []
        for subject, places in self._positions.items():
            scores = [alike[place] for place in places]
            few = nlargest(_TOP_COUNT, scores)
            together = sum(scores) / self._norms[subject]
            score = 0.4 * few[0] + 0.3 * sum(few) / _TOP_COUNT + 0.3 * together
            found.append(SubjectMatch(score, subject, places[scores.index(few[0])]))
        return sorted(found, key=lambda likeness: likeness.score, reverse=True)

    def _compute_weights(
        self, made_of: list[dict[str, float]], subjects: list[Subject]
    ) -> dict[str, float]:
        used: dict[str, Counter[Subject]] = defaultdict(Counter)
        for features, subject in zip(made_of, subjects, strict=True):
            for feature in features:
                used[feature][subject] += 1
        sizes = Counter(subjects)
        weights = {
            feature: math.log((1 + self._size) / (1 + by_subject.total()))
            * _compute_specificity(by_subject, sizes)
            for feature, by_subject in used.items()
        }
        return {f: weight if weight >= _MIN_WEIGHT else 0.0 for f, weight in weights.items()}

    def _normalize(self, features: dict[str, float]) -> list[tuple[str, float]]:
        weights, unknown = self._weights, self._unknown_weight
        weighed = [(f, w * weights.get(f, unknown)) for f, w in features.items()]
        length = math.sqrt(sum(w * w for _, w in weighed)) or 1.0
        return [(f, w / length) for f, w in weighed if w]

    def _compute_norms(self) -> dict[Subject, float]:
        """How long the sum of a subject's texts is: what makes the sum of their likenesses the
        likeness of their sum."""
        subject_of = {place: s for s, places in self._positions.items() for place in places}
        squares: dict[Subject, float] = defaultdict(float)
        for postings in self._inverted_index.values():
            sums: dict[Subject, float] = defaultdict(float)
            for place, weight in postings:
                sums[subject_of[place]] += weight
            for subject, weight in sums.items():
                squares[subject] += weight * weight
        return {subject: math.sqrt(squares[subject]) or 1.0 for subject in self._positions}


def _compute_specificity(by_subject: Counter[Subject], sizes: Counter[Subject]) -> float:
    """1 for what only one subject has, less the more evenly the subjects share it."""
    if len(sizes) < 2:
        return 1.0
    shares = [count / sizes[subject] for subject, count in by_subject.items()]
    whole = sum(shares)
    spread = -sum(share / whole * math.log(share / whole) for share in shares)
    return 1.0 - (1.0 - _MIN_SPECIFICITY) * spread / math.log(len(sizes))


def _extract_features(text: str) -> dict[str, float]:
    words = text.split()
    counts: Counter[str] = Counter()
    for word in words:
        counts.update(_iterate_ngrams(word))
    features = {feature: _NGRAM_WEIGHT * (1 + math.log(n)) for feature, n in counts.items()}
    sounds = [_to_phonetic(word) for word in words]
    features.update((f"={heard}", _SOUND_WEIGHT) for heard in sounds)
    features.update((f"={a}+{b}", _PAIR_WEIGHT) for a, b in _iterate_pairs(["", *sounds, ""]))
    return features


def _iterate_ngrams(word: str) -> Iterator[str]:
    """With its ends marked, because how a word begins and ends says most."""
    word = f" {word} "
    for size in (2, 3, 4):
        for start in range(len(word) - size + 1):
            yield word[start : start + size]


def _iterate_pairs(words: Sequence[str]) -> Iterator[tuple[str, str]]:
    return pairwise(words)


_to_phonetic = lru_cache(maxsize=4096)(to_phonetic)
