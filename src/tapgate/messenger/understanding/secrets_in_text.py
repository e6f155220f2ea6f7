"""Whether a text may hold a PIN or a one-time code, decided from the text alone.

What may hold one is kept out of the database and the logs, so in doubt it does. Texts that plainly
are amounts or orders do not.
"""

import re
import unicodedata

_LONGEST = 4096
_WITHHELD = "****"

#: A word for a secret, and not the beginning of another one such as "pinch".
_SECRET = re.compile(
    r"(?<![a-z])(?:p[\W_]{0,2}[i1][\W_]{0,2}n(?:s|code|kod|number|no)?|codes?|kod|passwords?|passcodes?"
    r"|pwd|pw|otp|secrets?|secrete|mdp|mots?\W{0,3}de\W{0,3}passe?|passe|password\w*|cvv)(?![a-z])"
)
#: Digits in a row, also with single signs between them.
_RUN = re.compile(r"[0-9](?:[^0-9a-z]{0,2}[0-9])*")
_DIGITS = re.compile(r"[0-9]+")
_WORD = re.compile(r"[a-z]+")
#: What may stand around a PIN without making it a sentence.
_FILLERS = frozenset(
    """my mi the is its it old new pin pins code codes number no from to then and now here enter this
    am na yes ok okay confirm please pls sir hi hello for with use
    mon ma le la les est c cest voici ancien nouveau et puis de du a oui svp merci bonjour numero pour
    avec voila""".split()
)
#: Near enough to a word for a secret to be one.
_NEAR = 60


def may_hold_a_pin(text: str) -> bool:
    return bool(_secrets(_seen(text)))


def without_pins(text: str) -> str:
    """The text with nothing left of what may be a PIN; other texts as they are."""
    seen = _seen(text)
    spans = _secrets(seen)
    if not spans:
        return text
    if len(seen) != len(text):
        # A sign stood for several: where the digits were can no longer be told.
        return _WITHHELD
    parts, end = [], 0
    for start, stop in spans:
        parts += [text[end:start], _WITHHELD]
        end = stop
    return "".join([*parts, text[end:]])


def _seen(text: str) -> str:
    """Any script's digits as digits, letters small and without accents; a sign stays a sign as
    long as that is possible."""
    return "".join(map(_sign, text))


def _sign(sign: str) -> str:
    if sign.isascii():
        return sign.lower()
    digit = unicodedata.digit(sign, None)
    if digit is not None:
        return str(digit)
    parts = unicodedata.normalize("NFKD", sign).lower()
    kept = "".join(part for part in parts if not unicodedata.combining(part))
    if len(kept) == 1:
        return kept
    # Invisible signs between digits hide nothing; "㊿" and the like do.
    return kept if any(part.isdigit() for part in kept) else " "


def _secrets(seen: str) -> list[tuple[int, int]]:
    """Where what may be PINs begins and ends."""
    if len(seen) > _LONGEST:
        return [(0, len(seen))] if _DIGITS.search(seen) else []
    runs = [match.span() for match in _RUN.finditer(seen) if _could_be(match[0])]
    if not runs:
        return []
    if _is_bare(seen):
        return runs
    words = [match.span() for match in _SECRET.finditer(seen)]
    return [run for run in runs if any(_is_near(run, word) for word in words)]


def _could_be(run: str) -> bool:
    """Four digits, or six of a code; twice over for an old and a new one; or spaced out."""
    groups = _DIGITS.findall(run)
    if any(len(group) in {4, 6} for group in groups):
        return True
    return len("".join(groups)) in {4, 6, 8} and not run.startswith("0")


def _is_bare(seen: str) -> bool:
    """Nothing but one or two PINs, and words that say no more than that."""
    digits = "".join(_DIGITS.findall(seen))
    if len(digits) not in {4, 8} or re.search(r"[0-9][.,][0-9]{1,2}(?![0-9])", seen):
        return False
    if "+" in seen or (len(digits) == 8 and not _two_groups(seen)):
        return False
    return all(word in _FILLERS for word in _WORD.findall(seen))


def _two_groups(seen: str) -> bool:
    groups = _DIGITS.findall(seen)
    return len(groups) != 1 and (len(groups) == 8 or [len(g) for g in groups] == [4, 4])


def _is_near(run: tuple[int, int], word: tuple[int, int]) -> bool:
    return run[0] - word[1] <= _NEAR and word[0] - run[1] <= _NEAR
