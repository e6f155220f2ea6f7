"""Detects PINs, one-time codes and card links in a text, based on the text alone.

A text that may contain a secret is kept out of the database and the logs, so ambiguous texts count
as secrets. Texts that are clearly amounts or transfer requests do not.
"""

import re
import unicodedata
from functools import lru_cache

from tapgate_client.schemas.card_proofs import parse_tap_url

_MAX_LENGTH = 4096

#: A word for a secret, but not the start of a longer word such as "pinch".
SECRET_WORD_PATTERN = re.compile(
    r"(?<![a-z])(?:my|mon)?(?:p[\W_]{0,2}[i1][\W_]{0,2}n(?:s|code|kod|number|no)?|codes?|kod"
    r"|passwords?|passcodes?|pwd|pw|otp|secrets?|secrete|mdp|mots?\W{0,3}de\W{0,3}passe?|passe|cvv"
    r")(?![a-z])"
)
#: Digits, possibly with separators between them.
DIGIT_RUN_PATTERN = re.compile(r"[0-9](?:[^0-9a-z]{0,6}[0-9])*")
_DIGITS_PATTERN = re.compile(r"[0-9]+")
_WORD_PATTERN = re.compile(r"[a-z]+")
_AMOUNT_PATTERN = re.compile(r"[^0-9]*(?:[0-9]+[.,][0-9]{1,2}|[0-9][.,'][0-9]{3})[^0-9]*")
#: Words that may accompany a bare PIN. Any other word means that the text is more than a PIN.
_FILLER_WORDS = frozenset(
    """my mi the is its it old new pin pins code codes number no from to then and now here enter
    this am na yes otp reset ok okay confirm please pls sir hi hello for with use try again
    s that was i said sorry right correct go ahead thanks thank you thx tenki
    mon ma est c cest voici ancien nouveau et puis de du a oui svp merci bonjour numero pour avec
    voila essaie encore j ai dit je bien beaucoup pardon desole""".split()
)
#: An amount, a preposition, and a payee: a phone number or a card serial.
_TRANSFER_PATTERN = re.compile(
    r"(?=(?<![0-9a-z.,-])[0-9][0-9.,']{0,12} ?[a-z]{0,8}\s{1,3}"
    r"(?:to|for|au|a|vers|sur|pour|na)\s{1,3}(?:[a-z]{1,10}\s{1,3}){0,2}"
    r"(\+?[0-9]{8,15}|(?=[a-z-]{0,31}[0-9])(?=[0-9-]{0,31}[a-z])[a-z0-9-]{3,32})(?![0-9a-z-]))"
)
_FOUR_DIGITS_PATTERN = re.compile(r"(?<![0-9a-z-])[0-9]{4}(?![0-9a-z-])")
#: Maximum distance in characters between a secret and the word that names it.
MAX_DISTANCE = 60

#: Card link, which contains a tapped card's proof.
_TAP_URL_PATTERN = re.compile(
    r"https?://[a-z0-9.:\[\]-]{1,255}(?:/[a-z0-9._~-]{1,64}){1,4}\?"
    r"(?:picc_data=[0-9a-f]{32}&cmac=[0-9a-f]{16}|cmac=[0-9a-f]{16}&picc_data=[0-9a-f]{32})"
    r"(?![0-9a-z])",
    re.IGNORECASE,
)


def may_contain_pin(text: str) -> bool:
    normalized = _normalize(text)
    if len(normalized) > _MAX_LENGTH:
        return _DIGITS_PATTERN.search(normalized) is not None
    return (
        _is_bare_pin(normalized)
        or has_digits_near_secret_word(normalized)
        or _has_digits_after_transfer(normalized)
    )


def may_contain_code(text: str) -> bool:
    """Return whether the text is only a six-digit code, apart from filler words.

    The code may be written in groups. An amount of six digits looks the same.
    """
    normalized = _normalize(text[:_MAX_LENGTH])
    groups = [len(group) for group in _DIGITS_PATTERN.findall(normalized)]
    if groups not in ([6], [3, 3], [2, 2, 2], [1] * 6) or _AMOUNT_PATTERN.fullmatch(normalized):
        return False
    return _has_only_filler_words(normalized)


def has_code(text: str) -> bool:
    """Return whether the text contains one six-digit code and no other number."""
    if may_contain_code(text):
        return True
    normalized = _normalize(text[:_MAX_LENGTH])
    groups = [len(group) for group in _DIGITS_PATTERN.findall(normalized)]
    return groups == [6] and has_digits_near_secret_word(normalized)


def mentions_secret(text: str) -> bool:
    """Return whether the text contains a word for a secret, as in "pin4071"."""
    return SECRET_WORD_PATTERN.search(_normalize(text)) is not None


def has_pin_after_transfer(text: str) -> bool:
    return _has_digits_after_transfer(_normalize(text)[:_MAX_LENGTH])


def find_tap_url(text: str) -> str | None:
    """Return the card link in a text, or None."""
    match = _TAP_URL_PATTERN.search(text)
    return None if match is None or parse_tap_url(match[0]) is None else match[0]


def remove_tap_urls(text: str) -> str:
    return _TAP_URL_PATTERN.sub(" ", text)


def _normalize(text: str) -> str:
    """Return the text in lowercase, with ASCII digits, and without accents and card links.

    Each character maps to a single character where possible.
    """
    return "".join(map(_normalize_character, remove_tap_urls(text)))


@lru_cache(maxsize=4096)  # single characters reveal no secret
def _normalize_character(char: str) -> str:
    if char.isascii():
        return char.lower()
    digit = unicodedata.digit(char, None)
    if digit is not None:
        return str(digit)
    parts = unicodedata.normalize("NFKD", char).lower()
    base = "".join(part for part in parts if not unicodedata.combining(part))
    if len(base) == 1:
        return base
    # Characters such as "㊿" expand to digits. All others, such as invisible ones, become spaces.
    return base if any(part.isdigit() for part in base) else " "


def has_digits_near_secret_word(normalized: str) -> bool:
    words = SECRET_WORD_PATTERN.finditer(normalized)
    word = next(words, None)
    for run in DIGIT_RUN_PATTERN.finditer(normalized) if word else ():
        if not could_be_secret(run[0]):
            continue
        # Both go from left to right. A word too far before this run is too far before later ones.
        while word is not None and run.start() - word.end() > MAX_DISTANCE:
            word = next(words, None)
        if word is None:
            return False
        if word.start() - run.end() <= MAX_DISTANCE:
            return True
    return False


def _has_digits_after_transfer(normalized: str) -> bool:
    """Return whether four digits follow a complete transfer, as in "Send 5 to CARD-1 4071"."""
    transfer_ends = [match.end(1) for match in _TRANSFER_PATTERN.finditer(normalized)]
    if not transfer_ends:
        return False
    return _FOUR_DIGITS_PATTERN.search(normalized, min(transfer_ends)) is not None


def could_be_secret(run: str) -> bool:
    """Return whether a digit run may be a PIN, a six-digit code, or an old and a new PIN.

    The secret may be written with separators or be one of several digit groups.
    """
    groups = _DIGITS_PATTERN.findall(run)
    return any(len(group) in {4, 6} for group in groups) or 4 <= len("".join(groups)) <= 8


def _is_bare_pin(normalized: str) -> bool:
    """Return whether the text is only one or two PINs, apart from filler words."""
    groups = _DIGITS_PATTERN.findall(normalized)
    digit_count = sum(map(len, groups))
    if sorted(map(len, groups)) == [4, 6]:  # a one-time code and a new PIN
        return _has_only_filler_words(normalized)
    if digit_count not in {4, 8} or _AMOUNT_PATTERN.fullmatch(normalized):
        return False
    # Eight digits count as a phone number, unless written as two PINs or as single digits.
    if digit_count == 8 and [len(group) for group in groups] not in ([4, 4], [1] * 8):
        return False
    return _has_only_filler_words(normalized)


def _has_only_filler_words(normalized: str) -> bool:
    return all(word in _FILLER_WORDS for word in _WORD_PATTERN.findall(normalized))
