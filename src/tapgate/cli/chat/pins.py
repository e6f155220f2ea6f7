"""What must not be seen on the terminal, nor be found in its history."""

import re
from typing import Final

_PIN: Final = re.compile(r"\bPIN\b|\bcode secret\b|\bsecret code\b", re.IGNORECASE)
_ASKS: Final = re.compile(
    r"""\b(enter|type|give|send|reply|write|choose|pick|repeat|confirm|please|digits?|what\ is
        |entre[rz]|entre|tape[rz]?|saisi\w*|donne[rz]?|envo[iy]\w*|r[ée]pond\w*|[ée]cri\w*|choisi\w*
        |r[ée]p[èée]t\w*|confirme[rz]?|indique[rz]?|compose[rz]?|chiffres?|quel\ est|pla[îi]t|svp
        |stp)\b
        |[:?]$""",
    re.IGNORECASE | re.VERBOSE,
)
_WARNS: Final = re.compile(
    r"""^\W*(nobody|no\ one|ne\b|n['’]|personne)|\b(do\ not|don['’]t)\b
        |\b(never|jamais|ne\ pas)\b.*\bPIN\b""",
    re.IGNORECASE | re.VERBOSE,
)
_OPTION: Final = re.compile(r"^\W*\d{1,2}\W*([.):]|\s[-–—])\W*\s|^\*\d{1,2}\*\s")
_SENTENCE_END: Final = re.compile(r"(?<=[.!?])\s+")
_FOUR_DIGITS: Final = re.compile(r"(?<!\d)\d{4}(?!\d)")


def asks_for_pin(answer: str) -> bool:
    """Whether what is typed next should be hidden. In doubt it is: `Change PIN` in a menu and a
    warning are no doubt."""
    lines = (line for line in answer.splitlines() if not _OPTION.match(line))
    sentences = (part.strip(" *_") for line in lines for part in _SENTENCE_END.split(line))
    return any(
        _PIN.search(sentence) and _ASKS.search(sentence) and not _WARNS.search(sentence)
        for sentence in sentences
    )


def may_hold_pin(typed: str) -> bool:
    return _FOUR_DIGITS.search(typed) is not None
