"""Links of tapped cards in a text."""

import re
from typing import Final

from tapgate_client.schemas.card_proofs import parse_tap_url

_TAP_URL_PATTERN: Final = re.compile(
    r"https?://[a-z0-9.:\[\]-]{1,255}(?:/[a-z0-9._~-]{1,64}){1,4}\?"
    r"(?:picc_data=[0-9a-f]{32}&cmac=[0-9a-f]{16}|cmac=[0-9a-f]{16}&picc_data=[0-9a-f]{32})"
    r"(?![0-9a-z])",
    re.IGNORECASE,
)


def find_tap_url(text: str) -> str | None:
    """Return the link of a tapped card in a text, or None."""
    match = _TAP_URL_PATTERN.search(text)
    return None if match is None or parse_tap_url(match[0]) is None else match[0]


def remove_tap_urls(text: str) -> str:
    return _TAP_URL_PATTERN.sub(" ", text)
