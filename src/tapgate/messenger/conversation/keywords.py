"""Keywords that are commands in any state, regardless of the open question."""

from tapgate.messenger.model.common import Command
from tapgate.messenger.understanding import resolver


def match_command(text: str) -> Command | None:
    """Return the command that the whole text names, or None.

    A text with a digit never matches, because it may be an answer.
    """
    if any(char.isdigit() for char in text):
        return None
    known = resolver.match_literal(text, None)
    return known.command if known is not None and known.is_exact else None
