"""Detection of the language of a sentence by its most common words."""

from typing import Final

from tapgate.messenger.model import Language
from tapgate.messenger.understanding.normalization import normalize_text

_MIN_WORDS: Final = 3
_MIN_MARKERS: Final = 2


def _normalize_words(text: str) -> frozenset[str]:
    return frozenset(normalize_text(word) for word in text.split())


#: Words of one language only. Krio words count as English, in which Krio is answered.
_ENGLISH: Final = _normalize_words(
    """i my you your the is are was do does did how much what where when why who which can could
    want need have send money to for with from show please check tell me it this that and not
    don't i'm
    card balance payment account wallet today would like there any if was wrong number at of in
    mi yu una wan wetin omos usay usai udat moni sɛn sen na dɛn den dis dat fɔ aw de dɔn nɔ kad ɛp
    duya abeg get gɛt lɛf lef tɛl wit insay bin tide akawnt walet"""
)
_FRENCH: Final = _normalize_words(
    """je tu il nous vous mon ma mes votre vos le la les un une des du est sont veux voudrais peux
    puis combien comment où quand pourquoi quel quelle quels quelles qui que avec pour dans sur et
    pas ne ai avez envoyer envoie argent solde compte carte s'il plaît moi ce cette ça mais au aux
    j'ai c'est bonjour merci faire svp stp jai jveux"""
) - {"a", "i", "me"}
_SHARED: Final = _ENGLISH & _FRENCH


def detect_language(text: str) -> Language | None:
    """Return the language of a sentence that is clearly in one language, or None."""
    words = normalize_text(text).split()
    if len(words) < _MIN_WORDS:
        return None
    english = sum(word in _ENGLISH and word not in _SHARED for word in words)
    french = sum(word in _FRENCH and word not in _SHARED for word in words)
    if english >= _MIN_MARKERS and english >= 3 * french:
        return "en"
    if french >= _MIN_MARKERS and french >= 3 * english:
        return "fr"
    return None
