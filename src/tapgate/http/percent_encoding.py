"""Strict percent-decoding that rejects invalid input."""

from urllib.parse import unquote_to_bytes

_HEX_DIGITS = frozenset(b"0123456789abcdefABCDEF")


def decode(raw: str) -> str | None:
    """Decode percent-encoded text. Return None if it is malformed or not UTF-8."""
    if "%" not in raw and raw.isascii():
        return raw
    encoded = raw.encode("latin-1")
    for after in encoded.split(b"%")[1:]:
        if len(after) < 2 or not _HEX_DIGITS.issuperset(after[:2]):
            return None
    try:
        return unquote_to_bytes(encoded).decode()
    except UnicodeDecodeError:
        return None
