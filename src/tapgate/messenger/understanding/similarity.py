"""Text similarity: cosine of TF-IDF feature vectors.

The features are character n-grams of length 2 to 4, phonetic word keys, and pairs of those
keys. N-grams tolerate typos, phonetic keys tolerate abbreviations, and pairs retain some word
order. Rare features weigh more, and features shared by many subjects ("I want to") weigh less.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Hashable, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Final, TypeAlias

from tapgate.messenger.understanding.normalization import to_phonetic

Subject: TypeAlias = Hashable

_NGRAM_WEIGHT: Final = 1.0
_SOUND_WEIGHT: Final = 2.0
_PAIR_WEIGHT: Final = 1.5
#: Fraction of its weight that a feature shared evenly by all subjects retains.
_MIN_SPECIFICITY: Final = 0.3
#: Weight factor for features that no indexed text has. They lower every subject's score.
_UNKNOWN_FACTOR: Final = 0.35
#: Features below this weight are dropped: they occur in so many texts that they only cost time.
_MIN_WEIGHT: Final = 1.2
#: Number of best-scoring texts per subject that are averaged.
_TOP_COUNT: Final = 3


class SimilarityIndex:
    """Index of normalized texts (see `normalize_text`), each with a subject."""

    def __init__(self, texts: Sequence[tuple[str, Subject]]) -> None:
        feature_sets = [_extract_features(text) for text, _ in texts]
        self._positions: dict[Subject, list[int]] = defaultdict(list)
        for position, (_, subject) in enumerate(texts):
            self._positions[subject].append(position)
        self._size = len(texts)
        self._weights = self._compute_weights(feature_sets, [subject for _, subject in texts])
        self._unknown_weight = math.log(1 + self._size) * _UNKNOWN_FACTOR
        self._inverted_index: dict[str, list[tuple[int, float]]] = defaultdict(list)
        for position, features in enumerate(feature_sets):
            for feature, weight in self._normalize(features):
                self._inverted_index[feature].append((position, weight))
        self._norms = self._compute_norms()

    def rank_subjects(self, text: str) -> list[tuple[float, int]]:
        """Return a score from 0 to 1 and the closest text's position per subject, best first.

        A single text may match by chance, so a subject's score combines its best text, the
        average of its best three texts, and all of its texts together.
        """
        similarities = [0.0] * self._size
        for feature, weight in self._normalize(_extract_features(text)):
            for position, other in self._inverted_index.get(feature, ()):
                similarities[position] += weight * other
        matches = []
        for subject, positions in self._positions.items():
            scores = [similarities[position] for position in positions]
            top_scores = sorted(scores, reverse=True)[:_TOP_COUNT]
            overall = sum(scores) / self._norms[subject]
            score = 0.4 * top_scores[0] + 0.3 * sum(top_scores) / _TOP_COUNT + 0.3 * overall
            matches.append((score, positions[scores.index(top_scores[0])]))
        return sorted(matches, key=lambda match: match[0], reverse=True)

    def _compute_weights(
        self, feature_sets: list[dict[str, float]], subjects: list[Subject]
    ) -> dict[str, float]:
        usage: dict[str, dict[Subject, int]] = defaultdict(dict)
        for features, subject in zip(feature_sets, subjects, strict=True):
            for feature in features:
                by_subject = usage[feature]
                by_subject[subject] = by_subject.get(subject, 0) + 1
        sizes = Counter(subjects)
        weights = {
            feature: math.log((1 + self._size) / (1 + sum(by_subject.values())))
            * _compute_specificity(by_subject, sizes)
            for feature, by_subject in usage.items()
        }
        return {f: weight if weight >= _MIN_WEIGHT else 0.0 for f, weight in weights.items()}

    def _normalize(self, features: dict[str, float]) -> list[tuple[str, float]]:
        weights, unknown = self._weights, self._unknown_weight
        weighted = [(f, w * weights.get(f, unknown)) for f, w in features.items()]
        length = math.sqrt(sum(w * w for _, w in weighted)) or 1.0
        return [(f, w / length) for f, w in weighted if w]

    def _compute_norms(self) -> dict[Subject, float]:
        """Return the norm of each subject's summed text vectors.

        The summed similarities of a subject's texts, divided by this norm, are the similarity to
        the summed vector.
        """
        subject_of = {
            position: s for s, positions in self._positions.items() for position in positions
        }
        squares: dict[Subject, float] = defaultdict(float)
        for postings in self._inverted_index.values():
            sums: dict[Subject, float] = defaultdict(float)
            for position, weight in postings:
                sums[subject_of[position]] += weight
            for subject, weight in sums.items():
                squares[subject] += weight * weight
        return {subject: math.sqrt(squares[subject]) or 1.0 for subject in self._positions}


def _compute_specificity(by_subject: dict[Subject, int], sizes: Counter[Subject]) -> float:
    """Return 1 for a feature of one subject, and less the more evenly subjects share a feature."""
    if len(by_subject) == 1:
        return 1.0
    shares = [count / sizes[subject] for subject, count in by_subject.items()]
    total = sum(shares)
    entropy = -sum(share / total * math.log(share / total) for share in shares)
    return 1.0 - (1.0 - _MIN_SPECIFICITY) * entropy / math.log(len(sizes))


def _extract_features(text: str) -> dict[str, float]:
    words = text.split()
    counts = Counter([ngram for word in words for ngram in _list_ngrams(word)])
    features = {feature: _NGRAM_WEIGHT * (1 + math.log(n)) for feature, n in counts.items()}
    phonetic_keys = [to_phonetic(word) for word in words]
    features.update((f"={key}", _SOUND_WEIGHT) for key in phonetic_keys)
    features.update((f"={a}+{b}", _PAIR_WEIGHT) for a, b in pairwise(["", *phonetic_keys, ""]))
    return features


@lru_cache(maxsize=4096)
def _list_ngrams(word: str) -> list[str]:
    """Return n-grams with word boundaries marked: the start and end of a word carry most meaning.

    Most words occur in several phrases.
    """
    word = f" {word} "
    return [
        word[start : start + size] for size in (2, 3, 4) for start in range(len(word) - size + 1)
    ]
