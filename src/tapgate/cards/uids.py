"""What a card's chip says when it is asked who it is: an NFC UID, or a MAC address."""

import re
from typing import Final

#: ISO 14443-3 has UIDs of 4, 7 and 10 octets; a MAC address has 6.
_UID_LENGTHS: Final = frozenset({4, 6, 7, 10})
_MAX_LENGTH: Final = len("00:" * 10) - 1
_UID_PATTERN: Final = re.compile(r"[0-9a-f]{2}([:-]?)[0-9a-f]{2}(?:\1[0-9a-f]{2})*", re.I | re.A)

#: The first octet of a four-octet UID that the chip makes up anew whenever it is asked.
_RANDOM_UID_PREFIX: Final = "08"


def parse_uid(text: str) -> str | None:
    """`04-a2-b3-c4`, `04a2b3c4` -> `04:A2:B3:C4`; None for what is not one."""
    if len(text) > _MAX_LENGTH or not _UID_PATTERN.fullmatch(text):
        return None
    octets = bytes.fromhex(re.sub("[:-]", "", text))
    return octets.hex(":").upper() if len(octets) in _UID_LENGTHS else None


def is_random_uid(uid: str) -> bool:
    """Whether the next tap would show another one, so that no card can be known by it."""
    return uid.count(":") == 3 and uid.startswith(_RANDOM_UID_PREFIX)
