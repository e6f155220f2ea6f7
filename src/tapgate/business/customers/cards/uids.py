"""Card chip identifiers: NFC UIDs and MAC addresses."""

import re
from typing import Final

from tapgate.ledger.card_proofs.sun import UID_BYTES

#: ISO 14443-3 defines UIDs of 4, 7 and 10 bytes. A MAC address has 6.
_UID_LENGTHS: Final = frozenset({4, 6, 7, 10})
_MAX_LENGTH: Final = len("00:" * 10) - 1
_UID_PATTERN: Final = re.compile(r"[0-9a-f]{2}([:-]?)[0-9a-f]{2}(?:\1[0-9a-f]{2})*", re.I | re.A)

#: First byte of a 4-byte random UID, which the chip regenerates at every tap.
_RANDOM_UID_PREFIX: Final = "08"


def parse_uid(text: str) -> str | None:
    """Normalize a UID or MAC address, or return None if it is invalid.

    `04-a2-b3-c4` and `04a2b3c4` become `04:A2:B3:C4`.
    """
    if len(text) > _MAX_LENGTH or not _UID_PATTERN.fullmatch(text):
        return None
    octets = bytes.fromhex(re.sub("[:-]", "", text))
    return octets.hex(":").upper() if len(octets) in _UID_LENGTHS else None


def is_signing_uid(uid: str) -> bool:
    """Return whether a UID has 7 bytes, as chips that sign their taps do."""
    return uid.count(":") == UID_BYTES - 1


def is_random_uid(uid: str) -> bool:
    """Return whether a UID is random: it changes at every tap and cannot identify a card."""
    return uid.count(":") == 3 and uid.startswith(_RANDOM_UID_PREFIX)
