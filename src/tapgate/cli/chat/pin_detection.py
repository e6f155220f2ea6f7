"""Detects PINs and PIN prompts, to keep PINs off the terminal and out of its history."""

import re
from typing import Final

_PIN_PATTERN: Final = re.compile(r"\bPIN\b|\bcode secret\b|\bsecret code\b", re.IGNORECASE)
_PROMPT_PATTERN: Final = re.compile(
    r"""\b(enter|type|give|send|reply|write|choose|pick|repeat|confirm|please|digits?|what\ is
        |entre[rz]|entre|tape[rz]?|saisi\w*|donne[rz]?|envo[iy]\w*|r[ée]pond\w*|[ée]cri\w*|choisi\w*
        |r[ée]p[èée]t\w*|confirme[rz]?|indique[rz]?|compose[rz]?|chiffres?|quel\ est|pla[îi]t|svp
        |stp)\b
        |[:?]$""",
    re.IGNORECASE | re.VERBOSE,
)
_WARNING_PATTERN: Final = re.compile(
    r"""^\W*(nobody|no\ one|ne\b|n['’]|personne)|\b(do\ not|don['’]t)\b
        |\b(never|jamais|ne\ pas)\b.*\bPIN\b""",
    re.IGNORECASE | re.VERBOSE,
)
_MENU_OPTION_PATTERN: Final = re.compile(r"^\W*\d{1,2}\W*([.):]|\s[-–—])\W*\s|^\*\d{1,2}\*\s")
_SENTENCE_END_PATTERN: Final = re.compile(r"(?<=[.!?])\s+")
_FOUR_DIGITS_PATTERN: Final = re.compile(r"(?<!\d)\d{4}(?!\d)")


def asks_for_pin(reply: str) -> bool:
    """Return whether the reply asks for a PIN, so that the next input is hidden.

    Ambiguous replies count as asking. A menu option such as `Change PIN` and a warning do not.
    """
    lines = (line for line in reply.splitlines() if not _MENU_OPTION_PATTERN.match(line))
    sentences = (part.strip(" *_") for line in lines for part in _SENTENCE_END_PATTERN.split(line))
    return any(
        _PIN_PATTERN.search(sentence)
        and _PROMPT_PATTERN.search(sentence)
        and not _WARNING_PATTERN.search(sentence)
        for sentence in sentences
    )


def may_contain_pin(line: str) -> bool:
    return _FOUR_DIGITS_PATTERN.search(line) is not None
