"""Corrections of earlier answers: `make it 150`, `not him`, `who is that?`, `wait`."""

import re
from typing import Final, Literal, NamedTuple, cast

from tapgate.messenger.understanding.amounts import parse_amount_in_question
from tapgate.messenger.understanding.normalization import MAX_LENGTH, normalize_text
from tapgate.messenger.understanding.number_words import AMBIGUOUS_NUMBER, write_digits
from tapgate.messenger.understanding.word_lists import load_rules, match_rule

#: What a correction is about. After "amount", the new amount is not known yet.
CorrectionKind = Literal["recipient", "who", "new_amount", "amount", "wait"]

_RULES: Final = load_rules("corrections.txt")
_PHONE_PATTERN: Final = re.compile(r"[0-9]{8}")


class Correction(NamedTuple):
    kind: CorrectionKind
    #: None if the text has no amount, or several.
    amount: str | None = None


def parse_correction(text: str, currency: str) -> Correction | None:
    """Return what the text corrects, or None. An ambiguous amount is repeated as a question."""
    if len(text) > MAX_LENGTH:
        return None
    plain = write_digits(text)
    kind = cast("CorrectionKind | None", match_rule(_RULES, _normalize(plain)))
    if kind is None:
        return None
    if kind == "new_amount" and _PHONE_PATTERN.search(re.sub(r"[ -]", "", plain)):
        return Correction("recipient")
    amount = parse_amount_in_question(text, currency) if kind == "new_amount" else None
    return Correction(kind, amount)


def _normalize(plain: str) -> str:
    return normalize_text(plain.replace(AMBIGUOUS_NUMBER, "0"))
