"""Names that denote secrets, whose values are masked in logs, audit entries and approvals."""

from typing import Final

_SECRET_WORDS: Final = frozenset(
    {"authorization", "key", "otp", "password", "pin", "secret", "signature", "token"}
)
#: Last words that describe a secret without containing it: `key_id`, `pin_locked_until`,
#: `no_pin_limit`.
_DESCRIBING_WORDS: Final = frozenset({"at", "id", "limit", "prefix", "until"})


def is_secret_name(name: str) -> bool:
    """Return whether a name denotes a secret: `old_pin` does, `key_id` does not."""
    words = [word.removesuffix("s") for word in name.lower().replace("-", "_").split("_")]
    return words[-1] not in _DESCRIBING_WORDS and not _SECRET_WORDS.isdisjoint(words)
