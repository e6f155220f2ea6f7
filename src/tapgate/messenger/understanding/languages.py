"""Detects a sentence's language by its most common words."""

from typing import Final, NamedTuple

from tapgate.messenger.model import Language
from tapgate.messenger.understanding.normalization import normalize_text

_MIN_WORDS: Final = 3
_MIN_MARKERS: Final = 2


def _normalize_words(text: str) -> frozenset[str]:
    return frozenset(normalize_text(word) for word in text.split())


class _Markers(NamedTuple):
    """Words of one language only. A command's text may have only `topics`."""

    grammar: frozenset[str]
    topics: frozenset[str]


#: Krio words count as English, in which Krio is answered.
_ENGLISH: Final = _Markers(
    _normalize_words(
        """i my you your the is are was do does did how much what where when why who which can could
        want need have please me it this that and not don't i'm would like there any if
        mi yu una wan wetin omos usay usai udat na dɛn den dis dat fɔ aw de dɔn nɔ duya abeg get gɛt
        lɛf lef wit insay bin"""
    ),
    _normalize_words(
        """send money to for with from show check tell card balance payment account wallet today
        wrong number at of in sɛn sen moni kad ɛp tɛl tide akawnt walet"""
    ),
)
_FRENCH: Final = _Markers(
    _normalize_words(
        """je tu il nous vous mon ma mes votre vos le la les un une des du est sont veux voudrais
        peux puis combien comment où quand pourquoi quel quelle quels quelles qui que avec pour dans
        sur et pas ne ai avez s'il plaît moi ce cette ça mais au aux j'ai c'est svp stp jai jveux"""
    )
    - {"a", "i", "me"},
    _normalize_words("envoyer envoie argent solde compte carte bonjour merci faire"),
)
_SHARED: Final = frozenset.union(*_ENGLISH) & frozenset.union(*_FRENCH)


def detect_language(text: str, *, is_sentence: bool = False) -> Language | None:
    """Return the language if the text is clearly in one language, or None.

    With `is_sentence`, topic words as in the command "send 5 to AM-1001" do not suffice.
    """
    words = normalize_text(text).split()
    if len(words) < _MIN_WORDS:
        return None
    if _is_mostly(_ENGLISH, _FRENCH, words, is_sentence=is_sentence):
        return "en"
    return "fr" if _is_mostly(_FRENCH, _ENGLISH, words, is_sentence=is_sentence) else None


def _is_mostly(own: _Markers, other: _Markers, words: list[str], *, is_sentence: bool) -> bool:
    grammar, topics = _count(words, own.grammar), _count(words, own.topics)
    markers = grammar if is_sentence else grammar + topics
    others = _count(words, other.grammar | other.topics)
    return markers >= _MIN_MARKERS and grammar + topics >= 3 * others


def _count(words: list[str], markers: frozenset[str]) -> int:
    return sum(word in markers and word not in _SHARED for word in words)
